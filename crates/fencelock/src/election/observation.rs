//! How an election is observed: by reading, on a timer and when the store hints.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, unfold};
use lock_spi::{BoxFuture, FencingToken, WakeUp};

use super::{Election, Leader};
use crate::backoff::Pauses;
use crate::session::Opened;

/// The first pause after a change: another may follow, as while nobody leads.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The first pause after the store failed to answer.
const FIRST_RETRY: Duration = Duration::from_millis(50);

pub(super) fn of(
    election: Election,
) -> impl Stream<Item = Option<Leader>> + Send + Unpin + 'static {
    let observation = Observation::new(election);
    Box::pin(unfold(observation, |mut observation| async move {
        let told = observation.next().await?;
        Some((told, observation))
    }))
}

struct Observation {
    election: Election,
    told: Told,
    /// What comes before the next look.
    before: Before,
    /// Between looks that are answered.
    pace: Pauses,
    /// Between looks that are not.
    retry: Pauses,
    hints: Hints,
}

#[derive(Clone, Copy)]
enum Before {
    Nothing,
    HintOrPause,
    Retry,
}

/// Hints of the store that a reign has ended.
enum Hints {
    /// There are none.
    Never,
    /// One is waited for with the next pause.
    Wanted,
    /// One is waited for, from one pause to the next.
    Awaited(BoxFuture<Hint>),
    /// None is waited for in the next pause, so that hints that nothing follows keep nobody busy.
    Enough,
}

enum Hint {
    Given,
    NotNow,
    Never,
}

impl Observation {
    fn new(election: Election) -> Self {
        let longest = election.observe_every.max(FIRST_PAUSE);
        let store = &election.client.sessions().backend().store;
        let hints = match store.descriptor().capabilities.wake_up {
            WakeUp::Watch => Hints::Wanted,
            // Nobody is told who has no place.
            _ => Hints::Never,
        };
        Self {
            election,
            told: Told::default(),
            before: Before::Nothing,
            pace: Pauses::new(FIRST_PAUSE, longest),
            retry: Pauses::new(FIRST_RETRY, longest),
            hints,
        }
    }

    /// What is to be told next; `None` once the client is shut down.
    async fn next(&mut self) -> Option<Option<Leader>> {
        let sessions = Arc::clone(self.election.client.sessions());
        let runtime = &*sessions.backend().runtime;
        loop {
            match self.before {
                Before::Nothing => {}
                Before::HintOrPause => self.hint_or_pause().await,
                Before::Retry => runtime.sleep(self.retry.next(runtime)).await,
            }
            if sessions.is_shut() {
                return None;
            }
            let Ok(leader) = self.election.leader().await else {
                self.before = Before::Retry;
                continue;
            };
            self.before = Before::HintOrPause;
            self.retry.reset();
            let leads = leader.as_ref().map(|leader| leader.token);
            if self.told.is_news(leads) {
                self.pace.reset();
                return Some(leader);
            }
        }
    }

    /// Pauses, unless the store hints that a reign has ended.
    ///
    /// Pauses are short at first: what changes between a look and the beginning of a wait is nothing
    /// that the store would hint at.
    async fn hint_or_pause(&mut self) {
        let sessions = Arc::clone(self.election.client.sessions());
        let runtime = &*sessions.backend().runtime;
        let mut pause = runtime.sleep(self.pace.next(runtime));
        match &self.hints {
            Hints::Wanted if self.told.somebody_leads() => {
                self.hints = Hints::Awaited(Box::pin(hint(self.election.clone())));
            }
            Hints::Enough => self.hints = Hints::Wanted,
            Hints::Wanted | Hints::Awaited(_) | Hints::Never => {}
        }
        if let Hints::Awaited(hint) = &mut self.hints {
            tokio::select! {
                biased;
                hint = hint => match hint {
                    Hint::Given => {
                        self.hints = Hints::Enough;
                        // Those who observe spread, and the next leader may be there already.
                        return runtime.sleep(runtime.jitter(FIRST_PAUSE)).await;
                    }
                    Hint::NotNow => self.hints = Hints::Enough,
                    Hint::Never => self.hints = Hints::Never,
                },
                () = &mut pause => return,
            }
        }
        pause.await;
    }
}

/// Waits for a hint that the reign of now has ended, under a session as the store wants it.
async fn hint(election: Election) -> Hint {
    let Election {
        client,
        key,
        timing,
        ..
    } = election;
    // It asks for nothing; while it lives the session is kept.
    let Ok(attempt) = client.sessions().begin(timing, key, false) else {
        return Hint::Never;
    };
    match attempt.session().opened().await {
        Opened::Yes => {}
        Opened::Failed(error) if !error.is_retryable() => return Hint::Never,
        Opened::Failed(_) | Opened::Over => return Hint::NotNow,
    }
    let store = &client.sessions().backend().store;
    match store.await_release(attempt.wait_request(None)).await {
        Ok(()) => Hint::Given,
        Err(_) => Hint::NotNow,
    }
}

/// What was told so far: enough to tell each change once, and none that is older than what was
/// told.
#[derive(Debug, Default)]
struct Told {
    /// Whose reign was told last, if anything was told.
    last: Option<Option<FencingToken>>,
    newest: Option<FencingToken>,
}

impl Told {
    fn somebody_leads(&self) -> bool {
        self.last.flatten().is_some()
    }

    /// Whether this is to be told; then it counts as told.
    fn is_news(&mut self, leads: Option<FencingToken>) -> bool {
        let outdated = leads.is_some() && leads < self.newest;
        if outdated || self.last == Some(leads) {
            return false;
        }
        self.last = Some(leads);
        self.newest = self.newest.max(leads);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seen: &[u64]) -> Vec<bool> {
        let mut told = Told::default();
        let seen = seen.iter().map(|seen| FencingToken::new(*seen).ok());
        seen.map(|leads| told.is_news(leads)).collect()
    }

    #[test]
    fn the_present_state_is_news_whatever_it_is() {
        assert_eq!(told(&[0, 0, 0]), [true, false, false]);
        assert_eq!(told(&[5, 5, 5]), [true, false, false]);
    }

    #[test]
    fn every_change_is_news_once() {
        assert_eq!(
            told(&[5, 7, 7, 0, 0, 9]),
            [true, true, false, true, false, true]
        );
    }

    #[test]
    fn an_older_leader_is_no_news_after_a_newer_one() {
        assert_eq!(told(&[7, 5, 7, 0, 5]), [true, false, false, true, false]);
        assert_eq!(told(&[7, 0, 7]), [true, true, true], "told again");
    }
}
