use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;

use lock_spi::{
    BoxFuture, Effect, ErrorKind, Instant, KeepAliveRequest, KeptAlive, OpenSessionRequest,
};

use crate::backoff::Pauses;
use crate::holding::Holding;
use crate::session::{Closing, Origin, Phase, Session, Step};

/// Opens a session, keeps it alive for as long as somebody uses it, and closes it.
///
/// One task for each session, however many locks are held under it.
pub(crate) fn keep(session: Arc<Session>) -> BoxFuture<()> {
    // Made here and not in the task, so that a runtime that never runs the task is noticed too.
    let kept = Kept(session);
    Box::pin(async move {
        let session = &kept.0;
        if begin(session).await {
            let _counted = session.backend.telemetry.count_session();
            renew_while_used(session).await;
        }
        let freed = close(session).await;
        session.finish(freed);
    })
}

/// Finishes the session when its task is dropped, so that nobody waits for it in vain.
struct Kept(Arc<Session>);

impl Drop for Kept {
    fn drop(&mut self) {
        if self.0.phase() != Phase::Over {
            self.0.finish(false);
        }
    }
}

/// A renewal under way.
struct Flight {
    asked: KeepAliveRequest,
    sent: Instant,
    answer: BoxFuture<lock_spi::Result<Option<KeptAlive>>>,
}

async fn begin(session: &Arc<Session>) -> bool {
    match session.origin {
        Origin::Adopted => adopt(session).await,
        Origin::Opened => open(session).await,
    }
    session.phase() == Phase::Open
}

/// Takes a session over, trying again for as long as it may live. One that cannot be reached is left
/// to whoever comes next.
async fn adopt(session: &Arc<Session>) {
    let runtime = &session.backend.runtime;
    let until = session.now() + session.timing.ttl.as_duration();
    let mut pauses = Pauses::new(session.timing.first_pause(), session.timing.renew_every);
    loop {
        let (id, sent) = (session.id, session.now());
        let answer = session
            .backend
            .call(session.timing.call_limit(), move |store| async move {
                store.adopt_session(id).await
            })
            .await;
        match answer {
            Ok(Some(lease)) => return session.confirm_opened(&lease, sent),
            Ok(None) => return session.gone(),
            Err(error) if !error.is_retryable() || session.now() >= until => {
                return session.fail_to_open(error.into(), true);
            }
            Err(_) => runtime.sleep(pauses.next(&**runtime)).await,
        }
    }
}

async fn open(session: &Arc<Session>) {
    let request = OpenSessionRequest {
        session: session.id,
        owner: session.owner.clone(),
        ttl: session.timing.ttl,
    };
    let sent = session.now();
    let answer = session
        .backend
        .call(session.timing.call_limit(), move |store| async move {
            store.open_session(request).await
        })
        .await;
    match answer {
        Ok(lease) => session.confirm_opened(&lease, sent),
        Err(error) => {
            let freed = error.effect() == Effect::None;
            session.fail_to_open(error.into(), freed);
        }
    }
}

async fn renew_while_used(session: &Arc<Session>) {
    let mut flight: Option<Flight> = None;
    loop {
        let wait = match session.step() {
            Step::Close => return,
            Step::Renew => {
                flight = Some(set_out(session).await);
                continue;
            }
            Step::Wait(until) => session.backend.runtime.sleep_until(until),
        };
        tokio::select! {
            biased;
            answer = arrival(&mut flight), if flight.is_some() => {
                if let Some(Flight { asked, sent, .. }) = flight.take() {
                    settle(session, &asked, sent, answer);
                }
            }
            () = session.kick.notified() => {}
            () = wait => {}
        }
    }
}

/// Begins to renew what the session has at this moment.
async fn set_out(session: &Arc<Session>) -> Flight {
    poll_fn(|context| {
        // Dropped when the store has looked, which it does when it is first polled.
        let _nobody_passes = session.setting_out();
        let (own, asked) = (Arc::clone(session), session.to_renew());
        let (request, sent) = (asked.clone(), session.now());
        let mut answer: BoxFuture<_> = Box::pin(async move {
            own.backend
                .call(own.timing.renewal_limit(), move |store| async move {
                    store.keep_alive(request).await
                })
                .await
        });
        if let Poll::Ready(early) = answer.as_mut().poll(context) {
            answer = Box::pin(ready(early));
        }
        Poll::Ready(Flight {
            asked,
            sent,
            answer,
        })
    })
    .await
}

async fn arrival(flight: &mut Option<Flight>) -> lock_spi::Result<Option<KeptAlive>> {
    match flight {
        Some(flight) => flight.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

fn settle(
    session: &Arc<Session>,
    asked: &KeepAliveRequest,
    sent: Instant,
    answer: lock_spi::Result<Option<KeptAlive>>,
) {
    match answer {
        Ok(Some(kept)) => {
            for holding in session.confirm(asked, sent, kept) {
                let runtime = &session.backend.runtime;
                runtime.spawn(Box::pin(renew_alone(holding)));
            }
        }
        Ok(None) => session.gone(),
        Err(error) if error.kind() == ErrorKind::SessionGone => session.gone(),
        Err(error) => session.fail(error),
    }
}

/// Renews a grant that the store was late to renew with its session. Without an answer the next
/// renewal of the session is the next try.
async fn renew_alone(holding: Arc<Holding>) {
    let session = &holding.session;
    let (grant, sent) = (holding.grant.clone(), session.now());
    let answer = session
        .backend
        .call(session.timing.call_limit(), move |store| async move {
            store.extend(&grant.key, grant.token).await
        })
        .await;
    if let Ok(grant) = answer {
        session.follow_up(&holding, sent, grant);
    }
}

/// Closes it, trying again for as long as the store may have it. Answers whether the store is known
/// to have nothing of it any more.
async fn close(session: &Arc<Session>) -> bool {
    if session.is_freed() {
        return true;
    }
    let runtime = &session.backend.runtime;
    let Closing { not_before, until } = session.closing();
    runtime.sleep_until(not_before).await;
    let mut backoff = Pauses::new(session.timing.first_pause(), session.timing.renew_every);
    loop {
        let id = session.id;
        let answer = session
            .backend
            .call(session.timing.call_limit(), move |store| async move {
                store.close_session(id).await
            })
            .await;
        if answer.is_ok() {
            return true;
        }
        if runtime.now() >= until {
            return false;
        }
        runtime.sleep(backoff.next(&**runtime)).await;
    }
}
