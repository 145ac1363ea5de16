use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Effect, Holder, Instant, LockKey, Payload, Queue, Ttl};

use crate::attempt::OpenAttempt;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::holding::Renewal;
use crate::line::{Begun, Seen};
use crate::sessions::Sessions;
use crate::wish::{Tried, Wish};

/// How long the first try may go on after the time to wait is over.
const GRACE: Duration = Duration::from_secs(2);
/// How long one whose time is over may take to learn who stood in the way.
const LAST_LOOK: Duration = Duration::from_millis(200);

/// Acquires a lock, waiting for it if need be; made by [`Client::acquire`], run by `.await`.
///
/// Those who wait are served in the order in which they took their places. A place is taken with the
/// first call that is refused, and kept while the session lives. Those of one client who wait for the
/// same key with the same ttl line up there, in the order in which they came, and have one place
/// together: when the lock goes from one of them to the next, nobody else's turn is passed over.
///
/// Waiting is done by a task of the client, so that a turn is taken though the future is not polled
/// at that moment.
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
/// with the next confirmed renewal of the session. Queue place: given up, or passed on to the next
/// of the same client.
#[derive(Debug)]
#[must_use = "await it"]
pub struct Acquire<'c> {
    client: &'c Client,
    key: Result<LockKey>,
    wait: Option<Duration>,
    ttl: Option<Ttl>,
    payload: Payload,
    renewal: Renewal,
    transferable: bool,
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
            transferable: false,
        }
    }

    /// Waits for at most this long, instead of the client's default.
    ///
    /// The first try has at least 2 s for its answer, so it may take that much longer when the store
    /// is slow. With zero there is exactly one try and no place is taken; [`Duration::MAX`] waits for
    /// ever.
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

    /// Holds the lock so that it can be handed to another process, by
    /// [`into_grant`](Guard::into_grant): under a session of its own, which costs as much to open and
    /// to renew as one for many locks.
    pub fn transferable(mut self) -> Self {
        self.transferable = true;
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
            transferable,
        } = self;
        let wish = Wish {
            key: key?,
            timing: client.timing(ttl)?,
            payload,
            renewal,
            transferable,
        };
        wish.acquire(client.sessions(), wait).await
    }
}

impl<'c> IntoFuture for Acquire<'c> {
    type Output = Result<Guard>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Guard>> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl Wish {
    /// Tries, and waits in line if that does not do.
    async fn acquire(&self, sessions: &Arc<Sessions>, wait: Option<Duration>) -> Result<Guard> {
        let runtime = &sessions.backend().runtime;
        let begun = runtime.now();
        let deadline = begun + wait.unwrap_or(Duration::MAX);
        let lines = sessions.lines();
        let mut waiting = match lines.occupy_free(&self.key) {
            // With no time to wait it is the store that says who is in the way.
            None if begun < deadline => lines.join(sessions, self, None),
            occupied => {
                let _occupied = occupied.unwrap_or_else(|| lines.occupy(&self.key));
                let mut attempt = None;
                let queue = match begun < deadline {
                    true => Queue::Join,
                    false => Queue::Never,
                };
                let tried = self.first_try(sessions, deadline, &mut attempt, queue);
                let tried = match tried.await {
                    Tried::Granted(guard) => return Ok(guard),
                    Tried::Failed(error) if !error.is_retryable() => return Err(error),
                    tried => tried,
                };
                let first = Begun::new(tried, attempt);
                if deadline <= runtime.now() {
                    let seen = first.into_seen();
                    let effect = seen.effect();
                    return Err(self.timed_out(sessions, begun, seen, effect).await);
                }
                lines.join(sessions, self, Some(first))
            }
        };
        tokio::select! {
            biased;
            answer = &mut waiting => answer,
            () = runtime.sleep_until(deadline) => {
                let (seen, effect) = waiting.seen();
                drop(waiting);
                Err(self.timed_out(sessions, begun, seen, effect).await)
            }
        }
    }

    async fn first_try(
        &self,
        sessions: &Sessions,
        deadline: Instant,
        attempt: &mut Option<OpenAttempt>,
        queue: Queue,
    ) -> Tried {
        let runtime = &sessions.backend().runtime;
        let cut_off = deadline.max(runtime.now() + GRACE);
        tokio::select! {
            biased;
            tried = self.try_once(sessions, attempt, queue) => tried,
            () = runtime.sleep_until(cut_off) => {
                Tried::Failed(Error::unavailable(Effect::Unknown, "no answer in time"))
            }
        }
    }

    async fn timed_out(
        &self,
        sessions: &Sessions,
        begun: Instant,
        seen: Seen,
        effect: Effect,
    ) -> Error {
        let backend = sessions.backend();
        let waited = backend.runtime.now().saturating_since(begun);
        let mut holder = seen.holder;
        if holder.is_none() && seen.failure.is_none() {
            let key = self.key.clone();
            let read = backend.call(
                LAST_LOOK,
                move |store| async move { store.read(&key).await },
            );
            holder = read.await.ok().and_then(|info| info.holder);
        }
        let mut message = format!("lock {} was not granted within {waited:?}", self.key);
        if let Some(Holder { owner, token, .. }) = &holder {
            message.push_str(&format!("; {owner:?} held it with token {token}"));
        }
        let failure = seen.failure.map(|failure| failure.share());
        Error::timed_out(message, effect, holder, failure)
    }
}
