use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use super::report::{Played, Report};
use super::seeds::Seeds;

/// Plays all seeds, so many at a time, each in a world of its own. `tell` hears of the report after
/// each, and may stop the seeds.
///
/// The report is the same however many workers there are, if all seeds are played.
pub fn survey(
    seeds: &Seeds,
    workers: NonZero<usize>,
    play: impl Fn(u64) -> Played + Sync,
    tell: impl Fn(&Report) + Sync,
) -> Report {
    let report = Mutex::new(Report::default());
    let work = || {
        while let Some(seed) = seeds.take() {
            let first = contained(&play, seed);
            let twice = first.is_ok() && Seeds::is_played_twice(seed);
            let second = twice.then(|| contained(&play, seed).map_or(0, |played| played.hash));
            let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
            report.add(seed, first, second);
            tell(&report);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.get() {
            scope.spawn(work);
        }
        work();
    });
    report.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Plays a seed; a panic is what is wrong with it.
fn contained(play: &impl Fn(u64) -> Played, seed: u64) -> Result<Played, String> {
    catch_unwind(AssertUnwindSafe(|| play(seed))).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&words| words.into()));
        words.unwrap_or_else(|| "without words".into())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::campaign::Wrong;
    use crate::check::{Invariant, Violation};

    fn workers(count: usize) -> NonZero<usize> {
        NonZero::new(count).unwrap()
    }

    fn toy(seed: u64) -> Played {
        assert_ne!(seed, 13, "planted");
        let violation = Violation::new(Invariant::Own, Duration::ZERO, "planted");
        Played {
            hash: seed,
            violation: (seed % 10 == 7).then_some(violation),
            ..Played::default()
        }
    }

    #[test]
    fn every_seed_is_played_and_what_is_wrong_bears_its_seed() {
        for count in [1, 4] {
            let report = survey(&Seeds::new(0, 40), workers(count), toy, |_| {});
            assert_eq!((report.seeds, report.twice), (40, 2));
            let wrong: Vec<_> = report.wrong.keys().copied().collect();
            assert_eq!(wrong, [7, 13, 17, 27, 37]);
            assert!(matches!(&report.wrong[&7], Wrong::Broken(_)));
            let panicked = report.wrong[&13].to_string();
            assert!(panicked.contains("planted"), "{panicked}");
        }
    }

    #[test]
    fn a_seed_that_goes_two_ways_is_wrong() {
        let plays = AtomicU64::new(0);
        let fickle = |_| Played {
            hash: plays.fetch_add(1, Ordering::Relaxed),
            ..Played::default()
        };
        let report = survey(&Seeds::new(20, 21), workers(1), fickle, |_| {});
        assert_eq!(report.wrong[&20], Wrong::TwoWays(0, 1));
    }

    #[test]
    fn whoever_listens_may_say_that_it_is_enough() {
        let seeds = Seeds::new(0, u64::MAX);
        let report = survey(&seeds, workers(2), toy, |report| {
            if report.seeds >= 10 {
                seeds.stop();
            }
        });
        assert!((10..13).contains(&report.seeds), "{}", report.seeds);
    }
}
