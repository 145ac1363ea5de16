use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use lock_spi::{
    AttemptId, BoxFuture, Capabilities, Descriptor, Expiry, FencingToken, Grant, InsertOutcome,
    InsertRequest, Instant, KeepAliveRequest, KeptAlive, KeyPrefix, LockInfo, LockKey, LockOutcome,
    LockStore, Namespace, OpenSessionRequest, Page, PageRequest, Result, Revocation, RevokeRequest,
    Runtime, SessionId, SessionLease, StoreAdmin, TokenSource, WaitRequest, WakeUp,
};

/// A clock that moves when it is told to.
#[derive(Debug, Default)]
pub(crate) struct Clock(Mutex<Duration>);

impl Clock {
    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Runtime for Clock {
    fn now(&self) -> Instant {
        Instant::from_origin(*self.0.lock().unwrap())
    }

    fn wall_clock(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: BoxFuture<()>) {}

    fn random(&self) -> u64 {
        0
    }
}

/// What the store is to answer next.
#[derive(Debug)]
pub(crate) enum Answer {
    Abandon(Result<()>),
    AwaitRelease(Result<()>),
    CloseSession(Result<()>),
    Delete(Result<bool>),
    Extend(Result<Option<Grant>>),
    Insert(Result<InsertOutcome>),
    KeepAlive(Result<Option<KeptAlive>>),
    OpenSession(Result<SessionLease>),
    Read(Result<LockInfo>),
    Revoke(Result<LockOutcome>),
    /// None, ever.
    Never,
}

/// A store that answers as written, and takes [`Scripted::TAKES`] for each answer.
#[derive(Debug)]
pub(crate) struct Scripted {
    clock: Arc<Clock>,
    answers: Mutex<VecDeque<Answer>>,
}

impl Scripted {
    pub(crate) const TAKES: Duration = Duration::from_millis(250);

    pub(crate) fn new(clock: Arc<Clock>, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            clock,
            answers: Mutex::new(answers.into_iter().collect()),
        }
    }

    async fn next(&self) -> Answer {
        self.clock.advance(Self::TAKES);
        let answer = self.answers.lock().unwrap().pop_front();
        match answer {
            Some(Answer::Never) => std::future::pending().await,
            Some(answer) => answer,
            None => panic!("the script is at its end"),
        }
    }
}

macro_rules! scripted {
    ($self:ident, $variant:ident) => {
        match $self.next().await {
            Answer::$variant(answer) => answer,
            other => panic!("the script has {other:?} here"),
        }
    };
}

#[async_trait]
impl LockStore for Scripted {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            name: "scripted",
            namespace: Namespace::new("tests").unwrap(),
            capabilities: Capabilities::new(
                TokenSource::Sequence,
                Expiry::ByItself,
                WakeUp::Watch,
                Duration::ZERO,
            ),
        }
    }

    async fn open_session(&self, _: OpenSessionRequest) -> Result<SessionLease> {
        scripted!(self, OpenSession)
    }

    async fn adopt_session(&self, _: SessionId) -> Result<Option<SessionLease>> {
        panic!("takes no part")
    }

    async fn keep_alive(&self, _: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        scripted!(self, KeepAlive)
    }

    async fn close_session(&self, _: SessionId) -> Result<()> {
        scripted!(self, CloseSession)
    }

    async fn try_insert(&self, _: InsertRequest) -> Result<InsertOutcome> {
        scripted!(self, Insert)
    }

    async fn await_release(&self, _: WaitRequest) -> Result<()> {
        scripted!(self, AwaitRelease)
    }

    async fn extend(&self, _: &LockKey, _: FencingToken) -> Result<Option<Grant>> {
        scripted!(self, Extend)
    }

    async fn delete_if_owner(&self, _: &LockKey, _: FencingToken) -> Result<bool> {
        scripted!(self, Delete)
    }

    async fn abandon(&self, _: &LockKey, _: SessionId, _: AttemptId) -> Result<()> {
        scripted!(self, Abandon)
    }

    async fn read(&self, _: &LockKey) -> Result<LockInfo> {
        scripted!(self, Read)
    }

    async fn list(&self, _: &KeyPrefix, _: PageRequest) -> Result<Page<LockInfo>> {
        panic!("takes no part")
    }

    async fn revoke(&self, _: RevokeRequest) -> Result<LockOutcome> {
        scripted!(self, Revoke)
    }

    async fn revocations(&self, _: &LockKey, _: PageRequest) -> Result<Page<Revocation>> {
        panic!("takes no part")
    }

    async fn reap_expired(&self, _: u32) -> Result<u32> {
        panic!("takes no part")
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        None
    }
}
