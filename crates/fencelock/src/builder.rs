use std::sync::Arc;
use std::time::Duration;

use lock_spi::{LockStore, Owner, Runtime, TokioRuntime, Ttl};

use crate::backend::Backend;
use crate::backoff::{Backoff, ExponentialBackoff};
use crate::client::{Client, too_short};
use crate::error::{Error, Result};
use crate::line::Pace;
use crate::sessions::Sessions;
use crate::timing::Timing;

/// Builds a [`Client`]; made by [`Client::builder`].
///
/// | setting | default |
/// |---|---|
/// | `owner` | none |
/// | `ttl` | 15 s |
/// | `renew_every` | a third of the ttl |
/// | `renew_deadline` | the ttl less the margin: the larger of a tenth of it and 200 ms |
/// | `default_wait` | 30 s |
/// | `look_again` | 2 s |
/// | `backoff` | [`ExponentialBackoff`], from 50 ms to 2 s |
/// | `runtime` | the tokio runtime that `build` is called in |
#[derive(Debug)]
#[must_use = "nothing happens before it is built"]
pub struct ClientBuilder {
    store: Arc<dyn LockStore>,
    owner: Owner,
    ttl: Ttl,
    renew_every: Option<Duration>,
    renew_deadline: Option<Duration>,
    default_wait: Option<Duration>,
    look_again: Duration,
    backoff: Arc<dyn Backoff>,
    runtime: Option<Arc<dyn Runtime>>,
}

impl ClientBuilder {
    /// How long an acquire waits unless it says otherwise.
    const DEFAULT_WAIT: Duration = Duration::from_secs(30);
    /// How often who is next in line looks again.
    const LOOK_AGAIN: Duration = Duration::from_secs(2);
    /// Twice this and a call must fit into the time that a store leaves to who is next in line.
    const LONGEST_LOOK_AGAIN: Duration = Duration::from_secs(2);

    pub(crate) fn new(store: Arc<dyn LockStore>) -> Self {
        Self {
            store,
            owner: Owner::default(),
            ttl: Ttl::DEFAULT,
            renew_every: None,
            renew_deadline: None,
            default_wait: Some(Self::DEFAULT_WAIT),
            look_again: Self::LOOK_AGAIN,
            backoff: Arc::new(ExponentialBackoff::default()),
            runtime: None,
        }
    }

    /// The label that readers of the client's locks see.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = owner;
        self
    }

    /// How long the store keeps locks that are not renewed. An acquire may choose another; then the
    /// period and the deadline of renewals are the defaults of that ttl.
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long after one renewal was sent the next is sent.
    pub fn renew_every(mut self, period: Duration) -> Self {
        self.renew_every = Some(period);
        self
    }

    /// How long after the last confirmed renewal was sent a lock counts as held.
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.renew_deadline = Some(deadline);
        self
    }

    /// How long an acquire waits unless it says otherwise; `None` for ever.
    pub fn default_wait(mut self, wait: Option<Duration>) -> Self {
        self.default_wait = wait;
        self
    }

    /// How often one who waits looks again though it heard nothing: what a lost wake-up costs. This
    /// is for who is next in line; the others take two and a half times as long.
    ///
    /// At most 2 s, since a store passes over who is next in line and does not come.
    pub fn look_again(mut self, period: Duration) -> Self {
        self.look_again = period;
        self
    }

    /// How long those who wait pause after the store failed to answer them.
    pub fn backoff(mut self, backoff: impl Backoff) -> Self {
        self.backoff = Arc::new(backoff);
        self
    }

    /// Where the client gets time, tasks and chance.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the client. The store is not asked anything yet.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` that names the constraint when `ttl > renew_deadline > renew_every > 0` does
    /// not hold, when the deadline leaves less than the margin, when the ttl is below the store's
    /// least, when the look-again period is out of range, and when there is no runtime.
    pub fn build(self) -> Result<Client> {
        let Self {
            store,
            owner,
            ttl,
            renew_every,
            renew_deadline,
            default_wait,
            look_again,
            backoff,
            runtime,
        } = self;
        if look_again.is_zero() || look_again > Self::LONGEST_LOOK_AGAIN {
            return Err(Error::invalid(format!(
                "look-again period {look_again:?} is not above 0 and at most {:?}",
                Self::LONGEST_LOOK_AGAIN
            )));
        }
        let timing = Timing::new(ttl, renew_every, renew_deadline)?;
        let min_ttl = store.descriptor().capabilities.min_ttl;
        if ttl < min_ttl {
            return Err(too_short(ttl, min_ttl));
        }
        let runtime = match runtime {
            Some(runtime) => runtime,
            None => tokio_runtime()?,
        };
        let backend = Arc::new(Backend::new(store, runtime));
        let sessions = Arc::new(Sessions::new(
            backend,
            owner.clone(),
            Pace {
                look_again,
                backoff,
            },
        ));
        Ok(Client::new(sessions, owner, timing, default_wait))
    }
}

/// The tokio runtime that this is called in.
pub(crate) fn tokio_runtime() -> Result<Arc<dyn Runtime>> {
    match TokioRuntime::try_current() {
        Some(runtime) => Ok(Arc::new(runtime)),
        None => Err(Error::invalid(
            "there is no tokio runtime here, and no other was given to the builder",
        )),
    }
}
