use super::passes;
use crate::check::{Invariant, Violation};

/// A run that went wrong, and the draws that it made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// What was drawn, in order. Draws that are missing are 0, the simplest choice.
    pub draws: Vec<u64>,
    /// How much happened until it went wrong.
    pub events: u64,
    /// What went wrong first.
    pub violation: Violation,
}

impl Failure {
    fn size(&self) -> (u64, Weight<'_>) {
        (self.events, weight(&self.draws))
    }
}

/// How many runs may be spent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// Runs at most.
    pub runs: usize,
}

/// What is left of a failure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Small {
    /// The same invariant, broken with fewer and lower draws.
    pub failure: Failure,
    /// Runs that were spent.
    pub runs: usize,
}

/// Cuts a failure down: deletes spans of its draws, makes spans 0, lowers single ones. Less has to
/// happen, or as much by fewer draws.
///
/// `run` plays a tape and answers with what went wrong and with the draws that were really made;
/// `None` when nothing went wrong. It may give up after as many events as it is told: what takes
/// longer is not smaller. Only a run in which the same invariant broke counts.
pub fn minimize(
    failure: Failure,
    budget: Budget,
    run: impl FnMut(&[u64], u64) -> Option<Failure>,
) -> Small {
    let mut search = Search {
        invariant: failure.violation.invariant,
        best: trimmed(failure),
        left: budget.runs,
        run,
    };
    loop {
        let before = search.best.draws.clone();
        for pass in [
            passes::keep_beginnings,
            passes::cut_tail,
            passes::delete_spans,
            passes::zero_spans,
            passes::lower,
        ] {
            pass(&mut search);
        }
        if search.left == 0 || search.best.draws == before {
            break;
        }
    }
    Small {
        runs: budget.runs - search.left,
        failure: search.best,
    }
}

/// The smallest failure so far, and the means to look for a smaller one.
pub(super) struct Search<R> {
    invariant: Invariant,
    best: Failure,
    left: usize,
    run: R,
}

/// What passes need of a search.
pub(super) trait Shrinks {
    /// The draws of the smallest failure so far.
    fn draws(&self) -> &[u64];

    /// Plays other draws; keeps them if the same invariant breaks and they are simpler.
    fn accepts(&mut self, draws: Vec<u64>) -> bool;

    fn is_spent(&self) -> bool;
}

impl<R: FnMut(&[u64], u64) -> Option<Failure>> Shrinks for Search<R> {
    fn draws(&self) -> &[u64] {
        &self.best.draws
    }

    fn accepts(&mut self, draws: Vec<u64>) -> bool {
        if self.left == 0 || weight(&draws) >= weight(&self.best.draws) {
            return false;
        }
        self.left -= 1;
        let Some(failure) = (self.run)(&draws, self.best.events) else {
            return false;
        };
        let failure = trimmed(failure);
        let good =
            failure.violation.invariant == self.invariant && failure.size() < self.best.size();
        if good {
            self.best = failure;
        }
        good
    }

    fn is_spent(&self) -> bool {
        self.left == 0
    }
}

/// Without the zeros at the end, which come by themselves.
fn trimmed(mut failure: Failure) -> Failure {
    let len = failure.draws.iter().rposition(|draw| *draw > 0);
    failure.draws.truncate(len.map_or(0, |last| last + 1));
    failure
}

type Weight<'a> = (usize, usize, &'a [u64]);

/// Fewer choices other than the simplest one weigh less; then fewer draws; then lower ones.
fn weight(draws: &[u64]) -> Weight<'_> {
    let chosen = draws.iter().filter(|draw| **draw > 0).count();
    let len = draws.iter().rposition(|draw| *draw > 0);
    (chosen, len.map_or(0, |last| last + 1), draws)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A toy world: it reads its draws one by one, as a simulated one does, and goes wrong when a
    /// client is stopped for long enough while it holds a lock.
    fn toy(draws: &[u64]) -> Option<Failure> {
        let mut made = Vec::new();
        let mut draw = |limit: u64| {
            let drawn = draws.get(made.len()).copied().unwrap_or(0) % limit;
            made.push(drawn);
            drawn
        };
        let mut held = false;
        let mut broken = None;
        for step in 0..20 {
            match draw(4) {
                1 => held = true,
                2 => held = false,
                3 => {
                    let invariant = match (held, draw(100)) {
                        (true, pause) if pause >= 50 => Invariant::NoFalseHold,
                        (false, 77) => Invariant::OneGrant,
                        _ => continue,
                    };
                    broken = Some(Violation::new(
                        invariant,
                        Duration::from_secs(step),
                        "broken",
                    ));
                    break;
                }
                _ => {}
            }
        }
        broken.map(|violation| Failure {
            events: violation.at.as_secs(),
            draws: made,
            violation,
        })
    }

    fn found() -> Failure {
        let draws = [2, 0, 3, 12, 1, 2, 3, 76, 1, 0, 3, 20, 0, 2, 1, 3, 91, 2];
        let failure = toy(&draws).unwrap();
        assert_eq!(failure.violation.invariant, Invariant::NoFalseHold);
        failure
    }

    #[test]
    fn what_is_not_needed_goes() {
        let small = minimize(found(), Budget { runs: 500 }, |draws, _| toy(draws));
        assert_eq!(small.failure.draws, [1, 3, 50]);
        assert!(small.runs < 200, "{}", small.runs);
    }

    #[test]
    fn another_invariant_is_another_failure() {
        let mut seen = 0;
        let small = minimize(found(), Budget { runs: 500 }, |draws, _| {
            let failure = toy(draws);
            let other = |failure: &Failure| failure.violation.invariant == Invariant::OneGrant;
            seen += usize::from(failure.as_ref().is_some_and(other));
            // Every other run goes wrong in some other way.
            failure.or_else(|| {
                Some(Failure {
                    draws: Vec::new(),
                    events: 0,
                    violation: Violation::new(Invariant::OneGrant, Duration::ZERO, "other"),
                })
            })
        });
        assert_eq!(small.failure.violation.invariant, Invariant::NoFalseHold);
        assert_eq!(small.failure.draws, [1, 3, 50]);
    }

    #[test]
    fn no_more_runs_are_spent_than_allowed() {
        let mut runs = 0;
        let small = minimize(found(), Budget { runs: 7 }, |draws, _| {
            runs += 1;
            toy(draws)
        });
        assert_eq!((runs, small.runs), (7, 7));
        assert!(toy(&small.failure.draws).is_some());
    }

    #[test]
    fn what_takes_longer_is_not_smaller() {
        let small = minimize(found(), Budget { runs: 500 }, |draws, most| {
            let failure = toy(draws).map(|mut failure| {
                // Whoever chooses the plainest has more happen.
                failure.events = 20 - u64::try_from(failure.draws.len().min(20)).unwrap();
                failure
            });
            failure.filter(|failure| failure.events <= most)
        });
        let events = |failure: &Failure| failure.events;
        assert!(events(&small.failure) <= events(&found()), "{small:?}");
        assert!(toy(&small.failure.draws).is_some());
    }

    #[test]
    fn a_failure_that_needs_nothing_becomes_nothing() {
        let always = |_: &[u64], _| {
            Some(Failure {
                draws: vec![0; 9],
                events: 1,
                violation: Violation::new(Invariant::Own, Duration::ZERO, "always"),
            })
        };
        let failure = Failure {
            draws: vec![3; 40],
            ..always(&[], 0).unwrap()
        };
        let small = minimize(failure, Budget { runs: 100 }, always);
        assert!(small.failure.draws.is_empty());
    }
}
