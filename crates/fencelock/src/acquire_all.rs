use std::collections::BTreeSet;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{LockKey, Payload, Ttl};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::guards::Guards;

/// Acquires several locks, all or none; made by [`Client::acquire_all`], run by `.await`.
///
/// They are acquired one after the other, in the byte order of their keys, whatever order they were
/// given in; a key that is given twice counts once. So those who acquire sets that overlap, and
/// hold nothing else, never wait for each other in a circle. Those that are had already are held,
/// and keep others waiting, while the next is waited for.
///
/// # Errors
///
/// Whatever it is, the locks that were had by then are given back, in the background.
///
/// - `TimedOut` when one of the locks was not granted in time; the message names it, and
///   [`Error::holder`] is its last holder seen.
/// - `InvalidRequest` for a key or a ttl that is out of range, for no key at all, and for more keys
///   than one session may hold
///   ([`max_grants_per_session`](crate::spi::Capabilities::max_grants_per_session)).
/// - `Lost` when one of the locks was lost again before the last was granted.
/// - Any other of [`Acquire`](crate::Acquire).
///
/// # Cancel safety
///
/// That of [`Acquire`](crate::Acquire), for each of the locks: on drop all of them are given back
/// in the background.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "memory")] {
/// let locks = fencelock::Client::connect("memory:").await?;
/// let accounts = ["account/2", "account/1"];
/// let guards = locks.acquire_all(accounts).wait_at_most(Duration::from_secs(5)).await?;
/// for (account, token) in guards.check()? {
///     println!("writing to {account} with token {token}");
/// }
/// guards.release().await?;
/// locks.shutdown().await;
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "await it"]
pub struct AcquireAll<'c> {
    client: &'c Client,
    keys: Result<BTreeSet<LockKey>>,
    wait: Option<Duration>,
    ttl: Option<Ttl>,
    payload: Payload,
}

impl<'c> AcquireAll<'c> {
    pub(crate) fn new(client: &'c Client, keys: Result<BTreeSet<LockKey>>) -> Self {
        Self {
            client,
            keys,
            wait: client.default_wait(),
            ttl: None,
            payload: Payload::default(),
        }
    }

    /// Waits for at most this long for all of them together, instead of the client's default.
    ///
    /// Each lock is tried at least once, with at least 2 s for the answer, so it may take longer
    /// when the store is slow. With zero there is exactly one try for each; [`Duration::MAX`] waits
    /// for ever.
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Holds the locks with this ttl, instead of the client's default.
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Shows this to whoever reads one of the locks.
    pub fn payload(mut self, payload: Payload) -> Self {
        self.payload = payload;
        self
    }

    async fn run(self) -> Result<Guards> {
        let Self {
            client,
            keys,
            wait,
            ttl,
            payload,
        } = self;
        let keys = checked(client, keys?)?;
        let runtime = Arc::clone(&client.sessions().backend().runtime);
        let deadline = runtime.now() + wait.unwrap_or(Duration::MAX);
        let mut guards = Guards::default();
        for key in keys {
            let left = deadline.saturating_since(runtime.now());
            let mut next = client.acquire(key).wait_at_most(left);
            next = next.payload(payload.clone());
            if let Some(ttl) = ttl {
                next = next.ttl(ttl);
            }
            let guard = tokio::select! {
                biased;
                lost = guards.lost() => return Err(lost.into()),
                guard = next.into_future() => guard?,
            };
            guards.push(guard);
        }
        guards.check()?;
        Ok(guards)
    }
}

fn checked(client: &Client, keys: BTreeSet<LockKey>) -> Result<BTreeSet<LockKey>> {
    if keys.is_empty() {
        return Err(Error::invalid("there is no key to acquire"));
    }
    let store = &client.sessions().backend().store;
    let most = store.descriptor().capabilities.max_grants_per_session;
    let wanted = keys.len();
    match most {
        Some(most) if usize::try_from(most).is_ok_and(|most| wanted > most) => Err(Error::invalid(
            format!("{wanted} keys are more than the {most} that one session may hold"),
        )),
        _ => Ok(keys),
    }
}

impl<'c> IntoFuture for AcquireAll<'c> {
    type Output = Result<Guards>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Guards>> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
