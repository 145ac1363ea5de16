use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use lock_spi::{Effect, ErrorKind, Holder, InsertOutcome, Instant, LockKey, Payload, Ttl};

use crate::attempt::OpenAttempt;
use crate::backend::{Backend, Unanswered};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::holding::Renewal;
use crate::session::Opened;
use crate::sessions::Sessions;
use crate::timing::Timing;

/// How long a waiter that hears nothing waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest pause between hearing of a release and trying: those who wait spread over it.
const SPREAD: Duration = Duration::from_millis(20);
/// The first pause after the store failed to answer a try.
const FIRST_RETRY: Duration = Duration::from_millis(50);
/// How long a try may go on after the time to wait is over.
const GRACE: Duration = Duration::from_secs(2);
/// How often one try begins anew because its session or attempt was over.
const NEW_BEGINNINGS: u32 = 3;

/// Acquires a lock, waiting for it if need be; made by [`Client::acquire`], run by `.await`.
///
/// # Errors
///
/// - `TimedOut` when the lock was not granted in time. [`Error::holder`] is the last holder seen;
///   the source is the store's last error, if the last try met one.
/// - `InvalidRequest` for a key or a ttl that is out of range.
/// - `ShuttingDown` when the client was shut down.
/// - `Denied`, `Exhausted`, `FloorViolated`, `Incompatible`, `Protocol` as the store says.
///
/// # Cancel safety
///
/// Remote effect: may already have happened. On drop: compensated in the background, at the latest
/// with the next confirmed renewal of the session. Queue place: none.
#[derive(Debug)]
#[must_use = "await it"]
pub struct Acquire<'c> {
    client: &'c Client,
    key: Result<LockKey>,
    wait: Option<Duration>,
    ttl: Option<Ttl>,
    payload: Payload,
    renewal: Renewal,
}

impl<'c> Acquire<'c> {
    pub(crate) fn new(client: &'c Client, key: Result<LockKey>) -> Self {
        Self {
            client,
            key,
            wait: client.default_wait(),
            ttl: None,
            payload: Payload::default(),
            renewal: Renewal::Kept,
        }
    }

    /// Waits for at most this long, instead of the client's default.
    ///
    /// Each try has at least 2 s for its answer, so it may take that much longer when the store is
    /// slow. With zero there is exactly one try; [`Duration::MAX`] waits for ever.
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Holds the lock with this ttl, instead of the client's default.
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Shows this to whoever reads the lock.
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    /// Holds the lock for one ttl at most; then the guard is lost as
    /// [`Expired`](crate::LostReason::Expired), and the client gives the lock back.
    pub fn without_renewal(mut self) -> Self {
        self.renewal = Renewal::Never;
        self
    }

    async fn run(self) -> Result<Guard> {
        let Self {
            client,
            key,
            wait,
            ttl,
            payload,
            renewal,
        } = self;
        let wish = Wish {
            key: key?,
            timing: client.timing(ttl)?,
            payload,
            renewal,
        };
        wish.wait_for(client.sessions(), wait).await
    }
}

impl<'c> IntoFuture for Acquire<'c> {
    type Output = Result<Guard>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Guard>> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// What is wished for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) key: LockKey,
    pub(crate) timing: Timing,
    pub(crate) payload: Payload,
    pub(crate) renewal: Renewal,
}

/// How one try ended.
pub(crate) enum Tried {
    Failed(Error),
    Granted(Guard),
    Held(Option<Holder>),
}

impl Wish {
    /// Tries once. `attempt` is the wish's attempt so far, and stays it while it is not over.
    pub(crate) async fn try_once(
        &self,
        sessions: &Sessions,
        attempt: &mut Option<OpenAttempt>,
    ) -> Tried {
        for _ in 0..NEW_BEGINNINGS {
            let open = match attempt.take() {
                Some(open) => open,
                None => match sessions.begin(self.timing, self.key.clone()) {
                    Ok(open) => open,
                    Err(shut) => return Tried::Failed(shut),
                },
            };
            // In its place while anything is awaited: whoever is dropped there drops it too.
            let open = attempt.insert(open);
            match open.session().opened().await {
                Opened::Yes => {}
                Opened::Failed(error) => {
                    *attempt = None;
                    return Tried::Failed(error);
                }
                Opened::Over => {
                    *attempt = None;
                    continue;
                }
            }
            let sent = open.session().now();
            match open.insert(self.payload.clone()).await {
                Ok(Ok(InsertOutcome::Granted(grant))) => {
                    let held = attempt.take();
                    let held = held.and_then(|open| open.hold(grant, sent, self.renewal));
                    return held.map_or_else(too_late, |held| Tried::Granted(Guard::new(held)));
                }
                Ok(Ok(InsertOutcome::Held(holder))) => return Tried::Held(holder),
                // Nobody asked for a place.
                Ok(Ok(InsertOutcome::Queued(_))) => return Tried::Held(None),
                Ok(Ok(InsertOutcome::Ended)) => *attempt = None,
                Ok(Err(error)) if error.kind() == ErrorKind::SessionGone => {
                    open.session().gone();
                    *attempt = None;
                }
                Ok(Err(error)) => return Tried::Failed(error.into()),
                Err(Unanswered(why)) => {
                    *attempt = None;
                    return Tried::Failed(Error::unavailable(Effect::Unknown, why));
                }
            }
        }
        Tried::Failed(Error::unavailable(
            Effect::None,
            "no session lived long enough for a try",
        ))
    }

    /// Tries until it is granted or the time is over.
    async fn wait_for(&self, sessions: &Sessions, wait: Option<Duration>) -> Result<Guard> {
        let Backend {
            runtime, telemetry, ..
        } = &**sessions.backend();
        let begun = runtime.now();
        let deadline = begun + wait.unwrap_or(Duration::MAX);
        let mut attempt = None;
        let mut holder = None;
        let mut backoff = Backoff::new(FIRST_RETRY, LOOK_AGAIN);
        let mut counted = None;
        loop {
            let cut_off = deadline.max(runtime.now() + GRACE);
            let tried = tokio::select! {
                biased;
                tried = self.try_once(sessions, &mut attempt) => tried,
                () = runtime.sleep_until(cut_off) => {
                    Tried::Failed(Error::unavailable(Effect::Unknown, "no answer in time"))
                }
            };
            let failure = match tried {
                Tried::Granted(guard) => return Ok(guard),
                Tried::Held(seen) => {
                    holder = seen.or(holder);
                    None
                }
                Tried::Failed(error) if error.is_retryable() => Some(error),
                Tried::Failed(error) => return Err(error),
            };
            let now = runtime.now();
            if deadline <= now {
                let unsettled = attempt.as_ref().is_some_and(OpenAttempt::is_unsettled);
                let failed = failure.as_ref().map(Error::effect);
                let effect = match unsettled || failed == Some(Effect::Unknown) {
                    true => Effect::Unknown,
                    false => Effect::None,
                };
                let waited = now.saturating_since(begun);
                return Err(self.timed_out(waited, effect, holder, failure));
            }
            counted.get_or_insert_with(|| telemetry.count_waiter());
            match (&attempt, failure) {
                (Some(attempt), None) => {
                    backoff.reset();
                    let look_again = LOOK_AGAIN - runtime.jitter(LOOK_AGAIN / 4);
                    hint(attempt, deadline.min(now + look_again)).await;
                }
                _ => {
                    let retry = now + backoff.pause(&**runtime);
                    runtime.sleep_until(deadline.min(retry)).await;
                }
            }
        }
    }

    fn timed_out(
        &self,
        waited: Duration,
        effect: Effect,
        holder: Option<Holder>,
        failure: Option<Error>,
    ) -> Error {
        let mut message = format!("lock {} was not granted within {waited:?}", self.key);
        if let Some(Holder { owner, token, .. }) = &holder {
            message.push_str(&format!("; {owner:?} held it with token {token}"));
        }
        Error::timed_out(message, effect, holder, failure)
    }
}

fn too_late() -> Tried {
    Tried::Failed(Error::unavailable(
        Effect::Unknown,
        "the grant came too late and is given back",
    ))
}

/// Waits until the store hints that it is worth trying again, or until `latest`.
async fn hint(attempt: &OpenAttempt, latest: Instant) {
    let Backend { store, runtime, .. } = &*attempt.session().backend;
    let hinted = async {
        match store.await_release(attempt.wait_request()).await {
            Ok(()) => runtime.sleep(SPREAD / 4 + runtime.jitter(SPREAD)).await,
            // It cannot hint now; the timer will do.
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = hinted => {}
        () = runtime.sleep_until(latest) => {}
    }
}
