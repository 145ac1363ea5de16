use std::time::Duration;

use crate::check::Violation;
use crate::record::Entry;
use crate::shrink::story;

/// What stands before and after the events of a story, in parts of its length.
const AIR: u32 = 12;
/// A story that is over in no time is shown in this much.
const LEAST: Duration = Duration::from_millis(500);

/// The part of a run that is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Window {
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl Window {
    /// The story of the violation; without one, the whole run.
    pub(super) fn of(entries: &[Entry], violation: Option<&Violation>) -> Self {
        let (from, to) = match violation {
            Some(violation) => {
                let story = story(entries, violation);
                // What came before anything was held is not worth the room.
                let first = story.events.iter().find(|event| event.lane.is_client());
                let first = first.or(story.events.first());
                (first.map_or(violation.at, |event| event.at), violation.at)
            }
            None => {
                let last = entries.last().map_or(Duration::ZERO, |entry| entry.at);
                (Duration::ZERO, last)
            }
        };
        let air = (to.saturating_sub(from) / AIR).max(LEAST / 2);
        Self {
            from: from.saturating_sub(air),
            to: to + air,
        }
    }

    pub(super) fn length(self) -> Duration {
        self.to.saturating_sub(self.from)
    }

    /// Where a moment is, between 0 and 1; before or after the window, at its edge.
    pub(super) fn place(self, at: Duration) -> f64 {
        let at = at.clamp(self.from, self.to).saturating_sub(self.from);
        at.as_secs_f64() / self.length().as_secs_f64()
    }

    pub(super) fn shows(self, from: Duration, to: Duration) -> bool {
        from <= self.to && to >= self.from
    }
}
