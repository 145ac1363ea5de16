use std::ops::Range;
use std::time::Duration;

use lock_spi::Runtime;

const LONGEST_STRAGGLING: Duration = Duration::from_secs(10);

/// What befalls the calls between a store and its server. Chances are per mille of the calls.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Weather {
    /// How long a request travels, and how long its reply does; drawn for each.
    pub delay: Range<Duration>,
    /// Calls that are not sent, and whose callers are told so.
    pub refusals: u16,
    /// Requests that never arrive.
    pub lost_requests: u16,
    /// Replies that never arrive, although the request did.
    pub lost_replies: u16,
    /// Requests, and as many replies, that take up to ten seconds instead of their time, while later
    /// ones overtake them; a server that lost its quorum for a while does that.
    pub stragglers: u16,
    /// Changing requests of which a copy arrives up to ten seconds later, as a proxy that repeats
    /// requests makes it. The answer to the copy reaches nobody.
    pub duplicates: u16,
    /// Losses, per mille of them, that show as a reset connection; the others show as nothing at
    /// all, and the caller waits until its own time limit.
    pub resets: u16,
}

impl Weather {
    /// No delay and no faults.
    #[must_use]
    pub const fn calm() -> Self {
        Self {
            delay: Duration::ZERO..Duration::ZERO,
            refusals: 0,
            lost_requests: 0,
            lost_replies: 0,
            stragglers: 0,
            duplicates: 0,
            resets: 0,
        }
    }

    /// Up to 30 ms each way; of a hundred calls one is refused, three lose their request, three
    /// their reply, half of these in silence, and one straggles; of two hundred one arrives twice.
    #[must_use]
    pub const fn stormy() -> Self {
        Self {
            delay: Duration::from_micros(200)..Duration::from_millis(30),
            refusals: 10,
            lost_requests: 30,
            lost_replies: 30,
            stragglers: 10,
            duplicates: 5,
            resets: 500,
        }
    }

    /// Draws how long a request or a reply travels, and whether that is far longer than others.
    pub(crate) fn journey(&self, runtime: &dyn Runtime) -> (Duration, bool) {
        if happens(self.stragglers, runtime) {
            return (Self::straggling(runtime), true);
        }
        (self.delay(runtime), false)
    }

    /// Draws how much later something straggles in.
    pub(crate) fn straggling(runtime: &dyn Runtime) -> Duration {
        runtime.jitter(LONGEST_STRAGGLING)
    }

    /// Draws how long what keeps its place in a stream travels.
    pub(crate) fn delay(&self, runtime: &dyn Runtime) -> Duration {
        let spread = self.delay.end.saturating_sub(self.delay.start);
        self.delay.start + runtime.jitter(spread)
    }
}

/// Draws whether something happens that has this chance, per mille.
pub(crate) fn happens(chance: u16, runtime: &dyn Runtime) -> bool {
    // The lowest draw is the one at which nothing happens.
    chance > 0 && runtime.random_below(1000).saturating_add(u64::from(chance)) >= 1000
}
