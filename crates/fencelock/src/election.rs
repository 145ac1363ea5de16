mod leadership;
mod observation;

use std::time::Duration;

use futures_util::Stream;
use lock_spi::{FencingToken, Holder, LockKey, Owner, Payload};

pub use self::leadership::Leadership;
use crate::client::Client;
use crate::error::{Error, Result};
use crate::timing::Timing;

/// How long an observer that hears nothing waits before it looks again.
const OBSERVE_EVERY: Duration = Duration::from_secs(2);

/// An election: of all who campaign for a key, one leads at a time; made by [`Client::election`].
///
/// To lead is to hold the lock of that key, so an election has the guarantees of a lock and no
/// more: a leader that was suspended may not know yet that another one leads. What it writes goes
/// with the token of its reign, and the resource refuses lower ones; [`fence`](crate::fence) does.
///
/// Cheap to clone. It is a clone of its client too, which lives for as long as it does.
///
/// # Examples
///
/// ```
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "memory")] {
/// let locks = fencelock::Client::connect("memory:").await?;
/// let election = locks.election("scheduler")?;
/// let leadership = election.campaign("10.0.0.7:8080").await?;
/// let leader = election.leader().await?.ok_or("nobody leads")?;
/// assert_eq!(leader.token, leadership.token());
/// assert_eq!(leader.payload.as_bytes(), b"10.0.0.7:8080");
/// leadership.resign().await?;
/// locks.shutdown().await;
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    client: Client,
    key: LockKey,
    timing: Timing,
    observe_every: Duration,
}

/// Who leads, as the store showed it; see [`Election::leader`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Leader {
    /// The fencing token of its reign.
    pub token: FencingToken,
    /// The label of its client.
    pub owner: Owner,
    /// What it shows, as an address where it is reached.
    pub payload: Payload,
    /// When its reign began by the granting machine's clock, since the Unix epoch; for people.
    pub granted_at: Duration,
}

impl Leader {
    fn of(holder: Holder) -> Self {
        let Holder {
            token,
            owner,
            payload,
            granted_at,
            ..
        } = holder;
        Self {
            token,
            owner,
            payload,
            granted_at,
        }
    }
}

impl Election {
    pub(crate) fn new(client: Client, key: LockKey) -> Result<Self> {
        Ok(Self {
            timing: client.timing(None)?,
            client,
            key,
            observe_every: OBSERVE_EVERY,
        })
    }

    /// What is campaigned for.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The longest time between two looks of those who [observe](Self::observe), 2 s unless set; up
    /// to a half is cut off at random.
    ///
    /// Where the store does not tell of the end of a reign ([`WakeUp`](crate::spi::WakeUp)), it is
    /// how late a change may be told.
    #[must_use]
    pub fn observe_every(mut self, period: Duration) -> Self {
        self.observe_every = period;
        self
    }

    /// Waits, for ever if need be, until this client leads. Stop waiting by dropping the future.
    ///
    /// `payload` is what others see of the leader: its address, say.
    ///
    /// # Errors
    ///
    /// Those of [`Acquire`](crate::Acquire) but `TimedOut`: what the store cannot answer now is
    /// tried again, and what waiting does not mend is told at once. And `InvalidRequest` for a bad
    /// payload.
    ///
    /// # Cancel safety
    ///
    /// That of [`Acquire`](crate::Acquire): what was begun is undone in the background.
    pub async fn campaign<P>(&self, payload: P) -> Result<Leadership>
    where
        P: TryInto<Payload>,
        Error: From<P::Error>,
    {
        self.stand(payload.try_into()?).await
    }

    async fn stand(&self, payload: Payload) -> Result<Leadership> {
        let acquire = self.client.acquire(&self.key).payload(payload);
        let guard = acquire.wait_at_most(Duration::MAX).await?;
        Ok(Leadership::new(guard))
    }

    /// Who leads. It may be out of date when it arrives: good to find the leader by, never to
    /// decide that oneself leads.
    ///
    /// # Errors
    ///
    /// Those of the store.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        let key = self.key.clone();
        let limit = self.timing.call_limit();
        let backend = self.client.sessions().backend();
        let info = backend
            .call(limit, move |store| async move { store.read(&key).await })
            .await?;
        Ok(info.holder.map(Leader::of))
    }

    /// Tells who leads: at once, and each time that another leads, or nobody.
    ///
    /// Like [`leader`](Self::leader) it shows what the store showed, and may lag behind. An older
    /// leader is never told after a newer one. Between two looks a short reign may be passed over,
    /// and so may the time between two reigns; where the store answers from members that lag, one
    /// leader may be told again after nobody was.
    ///
    /// Errors do not end it: it looks again after pauses that grow up to
    /// [`observe_every`](Self::observe_every), and tells nothing meanwhile. It ends when the client
    /// is shut down.
    ///
    /// It looks only while it is polled, so that a slow reader gets the present state and no
    /// backlog. Where the store watches ([`WakeUp::Watch`](crate::spi::WakeUp::Watch)), the end of
    /// a reign is heard of at once; that takes a session of the client in the store, as a lock
    /// does.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_util::StreamExt;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "memory")] {
    /// let locks = fencelock::Client::connect("memory:").await?;
    /// let election = locks.election("scheduler")?;
    /// let mut leaders = election.observe();
    /// assert_eq!(leaders.next().await, Some(None));
    /// let leadership = election.campaign("10.0.0.7:8080").await?;
    /// let leader = leaders.next().await.flatten().ok_or("nobody leads")?;
    /// assert_eq!(leader.token, leadership.token());
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(&self) -> impl Stream<Item = Option<Leader>> + Send + Unpin + 'static + use<> {
        observation::of(self.clone())
    }
}
