//! Whether a stream still lives, by when it was last heard.

use std::time::Duration;

use lock_spi::Instant;

/// A stream on which nobody watches any more is kept for the next one who does.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Pulse {
    /// So long may the answer to a request take.
    limit: Duration,
    /// So long may nothing come.
    silence: Duration,
    /// When something came, or when waiting for it began.
    since: Instant,
    was_asked: bool,
    is_doubted: bool,
    is_idle: bool,
}

/// What is to be done about a stream on which nothing came until it was due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Act {
    Wait,
    AskForLife,
    /// Nobody wants it any more.
    Close,
    /// It is dead.
    GiveUp,
}

impl Pulse {
    pub(super) const fn new(now: Instant, limit: Duration, silence: Duration) -> Self {
        Self {
            limit,
            silence,
            since: now,
            was_asked: false,
            is_doubted: false,
            is_idle: false,
        }
    }

    pub(super) const fn heard(&mut self, now: Instant) {
        self.since = now;
        self.was_asked = false;
        self.is_doubted = false;
    }

    /// Notes whether anybody watches: nothing comes when nobody does.
    pub(super) const fn note(&mut self, now: Instant, is_idle: bool) {
        if self.is_idle != is_idle {
            self.is_idle = is_idle;
            self.heard(now);
        }
    }

    /// When to act, unless something comes before.
    pub(super) fn due(&self, unanswered_since: Option<Instant>) -> Instant {
        if self.is_idle {
            return self.since + LINGER;
        }
        let silences = if self.was_asked { 2 } else { 1 };
        let silent = self.since + self.silence.saturating_mul(silences);
        let grace = if self.is_doubted {
            self.grace()
        } else {
            Duration::ZERO
        };
        let unanswered = unanswered_since.map(|since| since.max(self.since) + self.limit + grace);
        unanswered.map_or(silent, |unanswered| silent.min(unanswered))
    }

    /// A process that was held up finds itself late before it has read what lies there.
    fn grace(&self) -> Duration {
        self.limit / 4
    }

    /// What to do now.
    pub(super) fn act(&mut self, now: Instant, unanswered_since: Option<Instant>) -> Act {
        if now < self.due(unanswered_since) {
            return Act::Wait;
        }
        if self.is_idle {
            return Act::Close;
        }
        let answer_is_late = self.due(None) > now;
        if answer_is_late && !self.is_doubted {
            self.is_doubted = true;
            return Act::Wait;
        }
        if answer_is_late || self.was_asked {
            return Act::GiveUp;
        }
        self.was_asked = true;
        Act::AskForLife
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);
    const SILENCE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn silence_is_asked_about_and_then_believed() {
        let mut pulse = Pulse::new(at(0), LIMIT, SILENCE);
        assert_eq!(pulse.act(at(9), None), Act::Wait);
        assert_eq!(pulse.act(at(10), None), Act::AskForLife);
        assert_eq!(pulse.act(at(10), None), Act::Wait);
        pulse.heard(at(11));
        assert_eq!(pulse.act(at(20), None), Act::Wait);
        assert_eq!(pulse.act(at(21), None), Act::AskForLife);
        assert_eq!(pulse.due(None), at(31));
        assert_eq!(pulse.act(at(31), None), Act::GiveUp);
    }

    #[test]
    fn who_asks_for_a_watch_does_not_wait_for_long() {
        let mut pulse = Pulse::new(at(0), LIMIT, SILENCE);
        assert_eq!(pulse.act(at(5), Some(at(5))), Act::Wait);
        assert_eq!(pulse.due(Some(at(5))), at(6));
        assert_eq!(pulse.act(at(6), Some(at(5))), Act::Wait);
        assert_eq!(pulse.due(Some(at(5))), at(6) + LIMIT / 4);
        assert_eq!(pulse.act(at(7), Some(at(5))), Act::GiveUp);
        // Slow, but alive.
        pulse.heard(at(6));
        assert_eq!(pulse.act(at(6), Some(at(5))), Act::Wait);
        assert_eq!(pulse.due(Some(at(5))), at(7));
    }

    #[test]
    fn a_stream_that_nobody_uses_is_closed_after_a_while() {
        let mut pulse = Pulse::new(at(0), LIMIT, SILENCE);
        pulse.note(at(9), true);
        assert_eq!(pulse.act(at(10), None), Act::Wait);
        pulse.note(at(10), true);
        assert_eq!(pulse.act(at(11), None), Act::Close);
        // Used again in time: the silence meanwhile does not count.
        pulse.note(at(11), false);
        assert_eq!(pulse.act(at(20), None), Act::Wait);
    }
}
