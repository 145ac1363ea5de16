use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_spi::{AttemptId, Effect, Instant, LockKey};
use tokio::sync::{mpsc, oneshot};

use crate::backoff::Pauses;
use crate::error::{Error, Result};
use crate::guard::Release;
use crate::holding::Holding;
use crate::session::{Phase, Session};

/// How many jobs are done side by side.
const AT_ONCE: usize = 256;
/// How long whoever waits for a release is kept waiting while it is tried again.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is to be undone in the store.
///
/// Handed over synchronously, from any thread and any drop. The channel is unbounded, and bounded
/// by what its senders held: one job for each guard or attempt.
#[derive(Debug)]
pub(crate) enum Job {
    /// An attempt was given up that the store may have granted.
    Abandon {
        session: Arc<Session>,
        key: LockKey,
        attempt: AttemptId,
    },
    /// A guard was given back.
    Release(Return),
    /// A guard was given back, the first try failed, and somebody waits.
    ReleaseAgain(Return, Reply, lock_spi::Error),
}

/// Does the jobs of a client until nobody can send any more.
pub(crate) async fn run(mut jobs: mpsc::UnboundedReceiver<Job>) {
    let mut under_way = FuturesUnordered::new();
    let mut more = true;
    while more || !under_way.is_empty() {
        tokio::select! {
            biased;
            Some(()) = under_way.next() => {}
            job = jobs.recv(), if more && under_way.len() < AT_ONCE => match job {
                Some(job) => under_way.push(job.done()),
                None => more = false,
            },
        }
    }
}

impl Job {
    async fn done(self) {
        match self {
            Self::Abandon {
                session,
                key,
                attempt,
            } => abandon(&session, &key, attempt).await,
            Self::Release(returned) => release(returned, None, None).await,
            Self::ReleaseAgain(returned, reply, failure) => {
                release(returned, Some(reply), Some(failure)).await;
            }
        }
    }
}

/// A grant on its way back to the store.
#[derive(Clone, Debug)]
pub(crate) struct Return {
    holding: Arc<Holding>,
    /// An earlier try may have ended the grant.
    may_be_done: bool,
}

impl Return {
    pub(crate) fn new(holding: Arc<Holding>) -> Self {
        Self {
            holding,
            may_be_done: false,
        }
    }

    /// Asks the store once.
    async fn once(&mut self) -> lock_spi::Result<Release> {
        let session = &self.holding.session;
        let grant = self.holding.grant.clone();
        // So it is when this is dropped before the answer.
        let may_have_been = std::mem::replace(&mut self.may_be_done, true);
        let answer = session
            .backend
            .call(session.timing.call_limit(), move |store| async move {
                store.delete_if_owner(&grant.key, grant.token).await
            })
            .await;
        match answer {
            Ok(ended) => {
                session.settle(&self.holding);
                let by_client = ended || may_have_been || session.is_ended_by_client();
                Ok(match by_client {
                    true => Release::Released,
                    false => Release::AlreadyGone,
                })
            }
            Err(error) => {
                self.may_be_done = may_have_been || error.effect() == Effect::Unknown;
                retire_if_refused(session, &error);
                Err(error)
            }
        }
    }
}

/// Releases a grant for somebody who waits. The first try is made here, since mostly it is all that
/// is needed; when it fails, or its caller is gone, the releaser goes on.
pub(crate) async fn give_back(holding: &Arc<Holding>) -> Result<Release> {
    let session = &holding.session;
    let until = session.now() + PATIENCE;
    let mut first = FirstTry {
        returned: Return::new(Arc::clone(holding)),
        over: false,
    };
    let answer = first.returned.once().await;
    first.over = true;
    let failure = match answer {
        Ok(release) => return Ok(release),
        Err(failure) => failure,
    };
    let (sender, answer) = oneshot::channel();
    let reply = Reply { sender, until };
    session.hand_over(Job::ReleaseAgain(first.returned.clone(), reply, failure));
    match answer.await {
        Ok(answer) => answer,
        Err(_) => Err(Error::unavailable(
            Effect::Unknown,
            "the client has ended; the lock ends with its session",
        )),
    }
}

/// The first try of a release. Dropped before its answer, it is the releaser's job.
struct FirstTry {
    returned: Return,
    over: bool,
}

impl Drop for FirstTry {
    fn drop(&mut self) {
        if !self.over {
            let session = &self.returned.holding.session;
            session.hand_over(Job::Release(self.returned.clone()));
        }
    }
}

/// Abandons an attempt, for as long as its session lives.
async fn abandon(session: &Session, key: &LockKey, attempt: AttemptId) {
    let mut backoff = pauses(session);
    while session.phase() != Phase::Over {
        let (id, key) = (session.id, key.clone());
        let answer = session
            .backend
            .call(session.timing.call_limit(), move |store| async move {
                store.abandon(&key, id, attempt).await
            })
            .await;
        match answer {
            Ok(()) => return,
            Err(error) => retire_if_refused(session, &error),
        }
        pause(session, &mut backoff).await;
    }
}

/// Releases a grant, for as long as its session lives. Whoever waits for it hears the first definite
/// answer, or after a while the error.
async fn release(
    mut returned: Return,
    mut reply: Option<Reply>,
    mut failure: Option<lock_spi::Error>,
) {
    let session = Arc::clone(&returned.holding.session);
    let mut backoff = pauses(&session);
    let answer = loop {
        if let Some(error) = failure {
            let waits_on = |reply: &Reply| error.is_retryable() && session.now() < reply.until;
            if let Some(reply) = reply.take_if(|reply| !waits_on(reply)) {
                reply.send(Err(error.into()));
            }
            pause(&session, &mut backoff).await;
        }
        if session.phase() == Phase::Over {
            break left_to_its_session(&session);
        }
        match returned.once().await {
            Ok(release) => break Ok(release),
            Err(error) => failure = Some(error),
        }
    };
    if let Some(reply) = reply {
        reply.send(answer);
    }
}

fn left_to_its_session(session: &Session) -> Result<Release> {
    match session.is_freed() {
        true => Ok(Release::Released),
        false => Err(Error::unavailable(
            Effect::Unknown,
            "the grant is left to expire with its session",
        )),
    }
}

/// What is refused for good makes the session unfit: it ends with its last guard, and everything
/// under it ends with it.
fn retire_if_refused(session: &Session, error: &lock_spi::Error) {
    if !error.is_retryable() {
        session.retire();
    }
}

fn pauses(session: &Session) -> Pauses {
    Pauses::new(session.timing.first_pause(), session.timing.renew_every)
}

/// Pauses before the next try, unless there is to be none.
async fn pause(session: &Session, backoff: &mut Pauses) {
    let runtime = &session.backend.runtime;
    tokio::select! {
        biased;
        () = session.reached(Phase::Over) => {}
        () = runtime.sleep(backoff.next(&**runtime)) => {}
    }
}

/// Somebody waits for a release, and for how long while it is tried again.
#[derive(Debug)]
pub(crate) struct Reply {
    sender: oneshot::Sender<Result<Release>>,
    until: Instant,
}

impl Reply {
    fn send(self, answer: Result<Release>) {
        // Whoever asked may have gone.
        drop(self.sender.send(answer));
    }
}
