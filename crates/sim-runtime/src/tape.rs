//! Every choice of a run, in the order in which they were made.

use crate::chance::Chance;

/// One choice: a number below a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Draw {
    /// What was drawn; 0 is the plainest choice.
    pub value: u64,
    /// What it is below.
    pub limit: u64,
}

/// Every choice of a run, recorded; to replay it, or one that is like it.
///
/// Whatever is done to a tape, it is a run: draws that are out of their limit are lowered to the
/// highest that is not, and past its end every draw is 0. As 0 is always the plainest choice (no
/// fault, no delay, the task that waited longest), a tape with fewer draws or lower ones is a
/// simpler run.
///
/// # Examples
///
/// ```
/// use sim_runtime::{Tape, World};
///
/// let rolls = |world: &World| {
///     let runtime = world.runtime("dice");
///     [(); 3].map(|()| 1 + runtime.random_below(6))
/// };
/// let world = World::new(7);
/// let rolled = rolls(&world);
/// assert_eq!(rolls(&World::replay(&world.tape())), rolled);
/// assert_eq!(rolls(&World::replay(&Tape::default())), [1, 1, 1]);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tape {
    draws: Vec<Draw>,
}

impl Tape {
    /// A tape of these choices.
    #[must_use]
    pub const fn new(draws: Vec<Draw>) -> Self {
        Self { draws }
    }

    /// The choices.
    #[must_use]
    pub fn draws(&self) -> &[Draw] {
        &self.draws
    }
}

impl FromIterator<Draw> for Tape {
    fn from_iter<I: IntoIterator<Item = Draw>>(draws: I) -> Self {
        Self::new(draws.into_iter().collect())
    }
}

/// Where a run's choices come from, and where they go.
#[derive(Debug)]
pub(crate) struct Recorder {
    source: Source,
    made: Vec<Draw>,
}

#[derive(Debug)]
enum Source {
    Chance(Chance),
    Tape(std::vec::IntoIter<Draw>),
}

impl Recorder {
    pub(crate) const fn recording(seed: u64) -> Self {
        Self {
            source: Source::Chance(Chance::new(seed)),
            made: Vec::new(),
        }
    }

    pub(crate) fn replaying(tape: &Tape) -> Self {
        Self {
            source: Source::Tape(tape.draws.clone().into_iter()),
            made: Vec::new(),
        }
    }

    /// Chooses a number below `limit`. Where there is nothing to choose, nothing is recorded.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if limit <= 1 {
            return 0;
        }
        let value = match &mut self.source {
            Source::Chance(chance) => chance.draw() % limit,
            Source::Tape(draws) => draws.next().map_or(0, |draw| draw.value.min(limit - 1)),
        };
        self.made.push(Draw { value, limit });
        value
    }

    /// The choices made so far.
    pub(crate) fn tape(&self) -> Tape {
        Tape::new(self.made.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(value: u64, limit: u64) -> Draw {
        Draw { value, limit }
    }

    #[test]
    fn a_tape_replays_what_it_recorded() {
        let mut recording = Recorder::recording(3);
        let drawn: Vec<_> = (1..50).map(|limit| recording.below(limit)).collect();
        let mut replaying = Recorder::replaying(&recording.tape());
        let again: Vec<_> = (1..50).map(|limit| replaying.below(limit)).collect();
        assert_eq!(drawn, again);
        assert_eq!(replaying.tape(), recording.tape());
    }

    #[test]
    fn an_edited_tape_is_a_run_too() {
        let tape = Tape::new(vec![draw(9, 10), draw(3, 10)]);
        let mut replaying = Recorder::replaying(&tape);
        assert_eq!([4, 10, 10].map(|limit| replaying.below(limit)), [3, 3, 0]);
        let made = Tape::new(vec![draw(3, 4), draw(3, 10), draw(0, 10)]);
        assert_eq!(replaying.tape(), made);
    }

    #[test]
    fn where_there_is_nothing_to_choose_nothing_is_recorded() {
        let mut recording = Recorder::recording(3);
        assert_eq!((recording.below(0), recording.below(1)), (0, 0));
        assert!(recording.tape().draws().is_empty());
    }
}
