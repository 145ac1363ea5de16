//! How many seeds it takes to catch a bug.

use super::report::Played;
use crate::check::Violation;

/// Seeds of one sample begin so far apart from those of the next.
const APART: u64 = 1_000_000;

/// One time that a bug was looked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Catch {
    /// The seed that showed it.
    pub seed: u64,
    /// Seeds that were played until then, with it.
    pub needed: u64,
    /// What it broke.
    pub violation: Violation,
}

/// Several times that a bug was looked for, each time among other seeds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Catches {
    /// Those in which it was caught.
    pub caught: Vec<Catch>,
    /// How often it was not caught in time.
    pub missed: u64,
}

impl Catches {
    /// How many seeds were needed in the middle of all times, those in which it was missed being
    /// the longest. None, if it was missed as often as caught.
    #[must_use]
    pub fn median(&self) -> Option<u64> {
        let mut needed: Vec<_> = self.caught.iter().map(|catch| catch.needed).collect();
        needed.sort_unstable();
        let times = self.caught.len() + usize::try_from(self.missed).unwrap_or(usize::MAX);
        needed.get(times / 2).copied()
    }

    /// The most that were needed, if it was never missed.
    #[must_use]
    pub fn most(&self) -> Option<u64> {
        let most = self.caught.iter().map(|catch| catch.needed).max();
        most.filter(|_| self.missed == 0)
    }
}

/// Looks for a bug so many times, each time in at most `limit` seeds.
pub fn catches(times: u64, limit: u64, play: impl Fn(u64) -> Played) -> Catches {
    let mut catches = Catches::default();
    for time in 0..times {
        let first = time * APART;
        let caught = (0..limit).find_map(|count| {
            let seed = first + count;
            Some(Catch {
                seed,
                needed: count + 1,
                violation: play(seed).violation?,
            })
        });
        match caught {
            Some(catch) => catches.caught.push(catch),
            None => catches.missed += 1,
        }
    }
    catches
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::check::Invariant;

    fn shows_at(places: &'static [u64]) -> impl Fn(u64) -> Played {
        move |seed| Played {
            violation: places
                .contains(&seed)
                .then(|| Violation::new(Invariant::Own, Duration::ZERO, "planted")),
            ..Played::default()
        }
    }

    #[test]
    fn the_median_counts_seeds_from_the_first_of_each_time() {
        let found = catches(3, 10, shows_at(&[2, 1_000_000, 2_000_009]));
        let needed: Vec<_> = found.caught.iter().map(|catch| catch.needed).collect();
        assert_eq!(needed, [3, 1, 10]);
        assert_eq!((found.median(), found.most()), (Some(3), Some(10)));
    }

    #[test]
    fn what_was_missed_counts_as_the_longest() {
        let found = catches(3, 10, shows_at(&[2, 1_000_004]));
        assert_eq!(
            (found.missed, found.median(), found.most()),
            (1, Some(5), None)
        );
        let found = catches(3, 10, shows_at(&[2]));
        assert_eq!(found.median(), None);
    }
}
