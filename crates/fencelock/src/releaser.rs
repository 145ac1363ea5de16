use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_spi::{AttemptId, Effect, LockKey};
use tokio::sync::{mpsc, oneshot};

use crate::backoff::Backoff;
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
    Release {
        holding: Arc<Holding>,
        reply: Option<oneshot::Sender<Result<Release>>>,
    },
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
            Self::Release { holding, reply } => release(&holding, reply).await,
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
async fn release(holding: &Holding, reply: Option<oneshot::Sender<Result<Release>>>) {
    let session = &holding.session;
    let mut reply = Reply(reply);
    let mut backoff = pauses(session);
    let patience = session.now() + PATIENCE;
    // An earlier try may have ended the grant.
    let mut may_be_done = false;
    while session.phase() != Phase::Over {
        let grant = holding.grant.clone();
        let answer = session
            .backend
            .call(session.timing.call_limit(), move |store| async move {
                store.delete_if_owner(&grant.key, grant.token).await
            })
            .await;
        match answer {
            Ok(ended) => {
                session.settle(holding);
                let by_client = ended || may_be_done || session.is_ended_by_client();
                return reply.send(Ok(match by_client {
                    true => Release::Released,
                    false => Release::AlreadyGone,
                }));
            }
            Err(error) => {
                may_be_done |= error.effect() == Effect::Unknown;
                retire_if_refused(session, &error);
                if !error.is_retryable() || session.now() >= patience {
                    reply.send(Err(error.into()));
                }
            }
        }
        pause(session, &mut backoff).await;
    }
    reply.send(match session.is_freed() {
        true => Ok(Release::Released),
        false => Err(Error::unavailable(
            Effect::Unknown,
            "the grant is left to expire with its session",
        )),
    });
}

/// What is refused for good makes the session unfit: it ends with its last guard, and everything
/// under it ends with it.
fn retire_if_refused(session: &Session, error: &lock_spi::Error) {
    if !error.is_retryable() {
        session.retire();
    }
}

fn pauses(session: &Session) -> Backoff {
    Backoff::new(session.timing.first_pause(), session.timing.renew_every)
}

/// Pauses before the next try, unless there is to be none.
async fn pause(session: &Session, backoff: &mut Backoff) {
    let runtime = &session.backend.runtime;
    tokio::select! {
        biased;
        () = session.reached(Phase::Over) => {}
        () = runtime.sleep(backoff.pause(&**runtime)) => {}
    }
}

/// Answers the one who waits, once.
struct Reply(Option<oneshot::Sender<Result<Release>>>);

impl Reply {
    fn send(&mut self, answer: Result<Release>) {
        if let Some(reply) = self.0.take() {
            // Whoever asked may have gone.
            drop(reply.send(answer));
        }
    }
}
