use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Holder, LockKey, LockStore, Owner, Payload, Queue, Ttl};

use crate::acquire::Acquire;
use crate::acquire_all::AcquireAll;
use crate::admin::Admin;
use crate::adopt;
use crate::builder::ClientBuilder;
use crate::connect;
use crate::election::Election;
use crate::error::{Error, Result};
use crate::grant::Grant;
use crate::guard::Guard;
use crate::health::Health;
use crate::held::Held;
use crate::holding::Renewal;
use crate::sessions::{Sessions, Shutdown};
use crate::timing::Timing;
use crate::wish::{Tried, Wish};

/// Locks in a store, for one process. Cheap to clone; clones are one client.
///
/// It keeps one session in the store for each ttl in use, opens it when first needed, renews it with
/// one call however many locks are held, and closes it when a renewal is due that nobody needs.
///
/// End it with [`shutdown`](Self::shutdown). When the last clone is dropped without one, the same
/// happens in the background: guards that still live are lost at once as
/// [`SessionClosed`](crate::LostReason::SessionClosed), and what cannot be closed ends with its ttl.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> fencelock::Result<()> {
/// # #[cfg(feature = "memory")] {
/// let locks = fencelock::Client::connect("memory:").await?;
/// let guard = locks.acquire("nightly-report").await?;
/// println!("writing with token {}", guard.check()?);
/// guard.release().await?;
/// locks.shutdown().await;
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    sessions: Arc<Sessions>,
    owner: Owner,
    timing: Timing,
    min_ttl: Ttl,
    default_wait: Option<Duration>,
}

/// What [`Client::try_acquire`] found.
#[derive(Debug)]
#[must_use = "a guard may be in it"]
pub enum Attempt {
    /// The lock is held now.
    Acquired(Guard),
    /// Someone else has it; who, if the store looked.
    Held(Option<Holder>),
}

impl Attempt {
    /// The guard, if the lock was acquired.
    #[must_use]
    pub fn guard(self) -> Option<Guard> {
        match self {
            Self::Acquired(guard) => Some(guard),
            Self::Held(_) => None,
        }
    }
}

impl Client {
    /// Connects to the store that `url` names; runs on the tokio runtime that it is called in.
    ///
    /// | URL | store |
    /// |---|---|
    /// | `memory:` | embedded, of this client and its clones |
    /// | `memory:NAME` | embedded, shared in the process by all clients of that name |
    /// | `etcd://HOST,HOST` | a cluster of etcd, by some or all of its members; the port is 2379 unless given |
    /// | `etcds://HOST,HOST` | the same over TLS |
    /// | `postgres://HOST,HOST/DATABASE` | a database of PostgreSQL that has the locks' schema; the port is 5432 unless given |
    ///
    /// Parameters follow a `?`: `namespace=NAME`, `owner=LABEL`, and `ttl=15s` or `ttl=1500ms`. These
    /// are taken as they stand: nothing is percent-decoded. For etcd and Postgres there is also
    /// `request_timeout=2s`, how long one request may take: 1 s unless given, and never more than a
    /// third of the ttl.
    ///
    /// For etcd there are also `ca=PATH`, `cert=PATH` and `key=PATH`, all in PEM, `tls=true`,
    /// `ping=SECONDS` for how often a connection in use is asked for a sign of life, and
    /// `allow_unsafe_version=true` for the servers 3.5.0 to 3.5.6, which can lose data. User and
    /// password stand percent-encoded before the hosts, as in `etcd://user:password@host`, or in the
    /// variables `FENCELOCK_ETCD_USER` and `FENCELOCK_ETCD_PASSWORD`. No log and no error shows the
    /// password.
    ///
    /// For Postgres there are those of libpq: `sslmode`, `sslrootcert`, `sslcert`, `sslkey`,
    /// `connect_timeout`, `application_name`, `host`, `port`, `user`, `password` and `dbname`, and
    /// its variables, as `PGPASSWORD`. Of several hosts the one that takes writes is used. The schema
    /// is never made here: `store-postgres` tells how.
    ///
    /// # Errors
    ///
    /// - `InvalidRequest` for an unknown scheme or parameter, a scheme whose feature this build is
    ///   without, a value that is out of range, and outside a tokio runtime.
    /// - `Incompatible` for a server that must not be used.
    /// - Those of the store when it is opened.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened, once for all clients. On drop: nothing to
    /// compensate. Queue place: none.
    pub async fn connect(url: &str) -> Result<Self> {
        connect::connect(url).await
    }

    /// Builds a client on any store.
    pub fn builder(store: impl LockStore) -> ClientBuilder {
        ClientBuilder::new(Arc::new(store))
    }

    pub(crate) fn new(
        sessions: Arc<Sessions>,
        owner: Owner,
        timing: Timing,
        default_wait: Option<Duration>,
    ) -> Self {
        let capabilities = sessions.backend().store.descriptor().capabilities;
        Self {
            inner: Arc::new(Inner {
                sessions,
                owner,
                timing,
                min_ttl: capabilities.min_ttl,
                default_wait,
            }),
        }
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.inner.sessions
    }

    pub(crate) fn default_wait(&self) -> Option<Duration> {
        self.inner.default_wait
    }

    /// The timing of a ttl, or of the client's own.
    pub(crate) fn timing(&self, ttl: Option<Ttl>) -> Result<Timing> {
        let Inner {
            timing, min_ttl, ..
        } = &*self.inner;
        match ttl {
            Some(ttl) if ttl < *min_ttl => Err(too_short(ttl, *min_ttl)),
            Some(ttl) if ttl != timing.ttl => Ok(Timing::of(ttl)),
            _ => Ok(*timing),
        }
    }

    /// Tries to acquire a lock, at once.
    ///
    /// That someone else has it is an answer, not an error.
    ///
    /// # Errors
    ///
    /// - `InvalidRequest` for a bad key.
    /// - `ShuttingDown` when the client was shut down.
    /// - `Unavailable`, `NotLeader` when the store did not answer; what may have been granted all the
    ///   same is given back in the background.
    /// - `Denied`, `Exhausted`, `FloorViolated`, `Incompatible`, `Protocol` as the store says.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: compensated in the background, at the
    /// latest with the next confirmed renewal of the session. Queue place: none.
    pub async fn try_acquire<K>(&self, key: K) -> Result<Attempt>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        let wish = Wish {
            key: key.try_into()?,
            timing: self.inner.timing,
            payload: Payload::default(),
            renewal: Renewal::Kept,
            transferable: false,
        };
        let lines = self.sessions().lines();
        // Those of this client who wait in line are in the queue as well.
        if let Some(holder) = lines.refusal(&wish.key) {
            return Ok(Attempt::Held(holder));
        }
        let _occupied = lines.occupy(&wish.key);
        let mut attempt = None;
        let tried = wish.try_once(self.sessions(), &mut attempt, Queue::Never);
        match tried.await {
            Tried::Failed(error) => Err(error),
            Tried::Granted(guard) => Ok(Attempt::Acquired(guard)),
            Tried::Held(holder) => Ok(Attempt::Held(holder)),
            // Nobody asked for a place.
            Tried::Queued(_) => Ok(Attempt::Held(None)),
        }
    }

    /// Acquires a lock, waiting for it if need be: `client.acquire("key").await`.
    ///
    /// It waits for at most the client's default, 30 s unless the builder was told otherwise. A bad
    /// key is an error of the acquire.
    pub fn acquire<K>(&self, key: K) -> Acquire<'_>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        Acquire::new(self, key.try_into().map_err(Error::from))
    }

    /// Takes over a lock that another process, or another client of this one, has
    /// [handed over](Guard::into_grant): the guard that comes out holds the same grant, with the same
    /// token.
    ///
    /// # Errors
    ///
    /// - `Lost` when the grant has ended meanwhile, or was given in another store or namespace.
    /// - `Unavailable`, `NotLeader` when the store did not answer for as long as the grant could live.
    ///   A clone of the grant can be tried again.
    /// - `ShuttingDown` when the client was shut down.
    /// - `Denied`, `Incompatible`, `Protocol` as the store says.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: the lock is given back in the background.
    /// Queue place: none.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> fencelock::Result<()> {
    /// # #[cfg(feature = "memory")] {
    /// let here = fencelock::Client::connect("memory:jobs").await?;
    /// let there = fencelock::Client::connect("memory:jobs").await?;
    ///
    /// let guard = here.acquire("migration").transferable().await?;
    /// let token = guard.check()?;
    /// let line = guard.into_grant()?.to_string(); // goes to the other process
    ///
    /// let guard = there.adopt(line.parse()?).await?;
    /// assert_eq!(guard.check()?, token);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn adopt(&self, grant: Grant) -> Result<Guard> {
        let timing = self.timing(Some(grant.ttl))?;
        adopt::adopt(self.sessions(), timing, grant).await
    }

    /// Runs `work` while holding a lock: acquires it, runs the work, and gives it back.
    ///
    /// On loss the work is dropped where it stands. The lock is given back only after the work has
    /// ended or was dropped; when the future is dropped, so is the work first.
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire), and `Lost` when the lock was lost before the work was
    /// done. What the release met does not matter: the work was done while the lock was held.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: the work is dropped, and the lock is given
    /// back in the background. Queue place: none.
    pub async fn with_lock<K, F, Fut, T>(&self, key: K, work: F) -> Result<T>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
        F: FnOnce(Held) -> Fut + Send,
        Fut: Future<Output = T> + Send,
        T: Send,
    {
        let acquire = self.acquire(key);
        let guard = acquire.await?;
        let output = guard.run(work(guard.held())).await?;
        // Where it has no answer the releaser goes on.
        drop(guard.release().await);
        Ok(output)
    }

    /// What operators do with locks that others hold.
    #[must_use]
    pub fn admin(&self) -> Admin {
        let backend = self.sessions().backend();
        Admin::new(
            Arc::clone(&backend.store),
            Arc::clone(&backend.runtime),
            self.inner.owner.clone(),
        )
    }

    /// Gives everything back and ends the client, for all its clones; their calls answer
    /// `ShuttingDown` from now on.
    ///
    /// Guards that still live are lost as [`SessionClosed`](crate::LostReason::SessionClosed). It
    /// takes as long as the store takes to answer, and no longer than the sessions live.
    ///
    /// # Errors
    ///
    /// None: the answer tells what the store did not confirm.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: once begun it goes on in the background.
    /// Queue place: none.
    pub async fn shutdown(self) -> Shutdown {
        self.sessions().shut_down().await
    }

    /// Stands for an election: of all who campaign for `key`, one leads at a time. Nothing is asked
    /// of the store yet.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key.
    pub fn election<K>(&self, key: K) -> Result<Election>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        Election::new(self.clone(), key.try_into()?)
    }

    /// Acquires the locks of all these keys or none, in an order that keeps those who do so from
    /// waiting for each other in a circle: `client.acquire_all(["a", "b"]).await`.
    ///
    /// It waits for at most the client's default for all of them together. A bad key is an error of
    /// the acquire.
    pub fn acquire_all<I, K>(&self, keys: I) -> AcquireAll<'_>
    where
        I: IntoIterator<Item = K>,
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        let keys = keys.into_iter().map(|key| key.try_into());
        AcquireAll::new(self, keys.collect::<Result<_, _>>().map_err(Error::from))
    }

    /// How the client's sessions are doing, as far as is known now. The store is not asked, and
    /// nothing is waited for.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> fencelock::Result<()> {
    /// # #[cfg(feature = "memory")] {
    /// let locks = fencelock::Client::connect("memory:").await?;
    /// let _guard = locks.acquire("nightly-report").await?;
    /// let health = locks.health();
    /// assert!(health.is_well());
    /// for session in &health.sessions {
    ///     println!("{} locks, renewed {:?} ago", session.guards, session.renewed_ago);
    /// }
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            shut_down: self.sessions().is_shut(),
            sessions: self.sessions().health(),
        }
    }
}

pub(crate) fn too_short(ttl: Ttl, min_ttl: Ttl) -> Error {
    Error::invalid(format!("ttl {ttl} is below the store's least, {min_ttl}"))
}
