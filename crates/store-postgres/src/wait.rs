//! Waiting for a reason to try again: `await_release`. It writes nothing and holds no connection
//! while it waits.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Effect, FencingToken, Result, WaitRequest};

use crate::calls::{Look, Sight};
use crate::core::Core;
use crate::error::task_lost;
use crate::wakes::Told;

/// The database knows nobody who has no place, so that such a one asks, at first after this pause.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Nobody asks again sooner than this.
const LEAST_PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn await_release(core: &Arc<Core>, request: &WaitRequest) -> Result<()> {
    if core.sessions.was_closed(request.session) {
        return Ok(());
    }
    core.listen();
    // Told from here on, so that nothing is missed between the look and the wait.
    let waiting = core.wakes.register(request.attempt);
    let mut refused_by = core.refused_by(request);
    let mut pause = FIRST_PAUSE;
    loop {
        let sight = core.look(request).await?;
        if is_reason(&sight, refused_by) {
            return Ok(());
        }
        refused_by = refused_by.or(sight.holder);
        let look_again = core.runtime.sleep(core.next_look(&sight, pause));
        tokio::select! {
            biased;
            told = waiting.told() => match told {
                Told::Turn => return Ok(()),
                Told::Gap => {}
            },
            () = look_again => pause = (pause * 2).min(core.config.look_again()),
        }
    }
}

/// Whether what is seen is a reason to try again, for one who was last refused over this grant.
fn is_reason(sight: &Sight, refused_by: Option<FencingToken>) -> bool {
    if !sight.session_stands || sight.attempt_holds {
        return true;
    }
    if sight.has_place {
        return sight.first && sight.holder.is_none();
    }
    match refused_by {
        Some(_) => sight.holder != refused_by,
        None => sight.holder.is_none() && !sight.anybody,
    }
}

impl Core {
    fn refused_by(&self, request: &WaitRequest) -> Option<FencingToken> {
        let own = self.sessions.get(request.session)?;
        own.with_attempts(|attempts| attempts.facts(request.attempt).refused_by)
    }

    async fn look(self: &Arc<Self>, request: &WaitRequest) -> Result<Sight> {
        let (core, request) = (Arc::clone(self), request.clone());
        // To its end, even if nobody waits any more.
        let look = self.runtime.run_to_end(async move {
            let own = core.sessions.get(request.session);
            let look = Look {
                namespace: core.namespace(),
                key: &request.key,
                session: request.session,
                attempt: request.attempt,
            };
            let answer = core.call(core.limit_of(own.as_deref()), &look).await;
            answer.map(|answer| answer.reply)
        });
        let sight = look.await.map_err(task_lost).flatten();
        sight.map_err(|error| error.with_effect(Effect::None))
    }

    /// When to look without having been told: in time for the end of the holder, which nobody
    /// tells; for those who have no place soon, and soon again; for all of them now and then.
    fn next_look(&self, sight: &Sight, pause: Duration) -> Duration {
        let now_and_then = self.config.look_again();
        let next_in_line = sight.first || !sight.has_place;
        let pause = match sight.has_place {
            true => now_and_then,
            false => pause.min(now_and_then),
        };
        let pause = pause - self.runtime.jitter(pause / 8);
        let holder_ends = sight.remaining.filter(|_| next_in_line);
        // Half a millisecond and more is cut off of what is told to be left.
        let holder_ends = holder_ends.map(|left| left + Duration::from_millis(2));
        pause.min(holder_ends.unwrap_or(pause)).max(LEAST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Sight = Sight {
        session_stands: true,
        has_place: false,
        first: false,
        anybody: false,
        holder: None,
        attempt_holds: false,
        remaining: None,
    };

    fn token(value: u64) -> Option<FencingToken> {
        Some(FencingToken::new(value).unwrap())
    }

    #[test]
    fn who_has_a_place_waits_for_its_turn() {
        let placed = Sight {
            has_place: true,
            anybody: true,
            ..WAITS
        };
        let first = Sight {
            first: true,
            ..placed
        };
        let held = Sight {
            holder: token(5),
            ..first
        };
        assert!(is_reason(&first, None));
        assert!(!is_reason(&held, token(4)), "another has it now");
        assert!(!is_reason(&placed, token(5)), "it is another's turn");
    }

    #[test]
    fn who_has_none_waits_for_the_end_of_what_refused_it() {
        let held = Sight {
            holder: token(5),
            ..WAITS
        };
        let called = Sight {
            anybody: true,
            ..WAITS
        };
        assert!(!is_reason(&held, token(5)) && !is_reason(&held, None));
        assert!(is_reason(&held, token(4)));
        assert!(is_reason(&WAITS, token(5)) && is_reason(&WAITS, None));
        assert!(is_reason(&called, token(5)) && !is_reason(&called, None));
    }

    #[test]
    fn the_end_of_its_session_is_a_reason_for_everybody() {
        let over = Sight {
            session_stands: false,
            holder: token(5),
            ..WAITS
        };
        assert!(is_reason(&over, token(5)));
        let holds = Sight {
            attempt_holds: true,
            holder: token(5),
            ..WAITS
        };
        assert!(is_reason(&holds, token(5)));
    }
}
