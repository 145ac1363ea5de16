//! Records written by hand, for tests.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, SessionId};

use crate::check::{Bounds, Checkers, Violation};
use crate::record::{Answer, Asks, CallId, Commit, EndCause, Entry, Lane, Phase, What};

/// Of every session in these records.
pub(crate) const TTL: Duration = Duration::from_secs(10);

pub(crate) const BOUNDS: Bounds = Bounds {
    clock_rate: 1_000,
    hand_over: Duration::from_secs(30),
    margin: Duration::from_secs(1),
    skip_after: Duration::from_secs(12),
};

pub(crate) fn a() -> Lane {
    Lane::client("a", 0)
}

pub(crate) fn b() -> Lane {
    Lane::client("b", 0)
}

pub(crate) fn key() -> Arc<str> {
    "k".into()
}

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

pub(crate) fn session(number: i64) -> SessionId {
    SessionId::new(number).unwrap()
}

/// Writes a record, entry by entry.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) entries: Vec<Entry>,
    now: Duration,
    calls: u64,
}

impl Script {
    /// Two clients with a session each, in the midst of faults: session 1 of a, session 2 of b.
    pub(crate) fn new() -> Self {
        let mut script = Self::default();
        script.add(Lane::World, What::PhaseBegan(Phase::Safety));
        for (lane, number) in [(a(), 1), (b(), 2)] {
            script.add(lane.clone(), What::Started);
            script.commit(
                lane,
                Commit::SessionOpened {
                    session: session(number),
                    owner: "owner".into(),
                    ttl: TTL,
                },
            );
        }
        script
    }

    pub(crate) fn add(&mut self, lane: Lane, what: What) -> &mut Self {
        let at = self.now;
        self.entries.push(Entry { at, lane, what });
        self
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, millis: u64) -> &mut Self {
        self.now += Duration::from_millis(millis);
        self
    }

    pub(crate) fn commit(&mut self, lane: Lane, commit: Commit) -> &mut Self {
        self.add(lane, What::Committed(commit))
    }

    pub(crate) fn call(&mut self, lane: Lane, asks: Asks) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.add(lane, What::Called { call, asks });
        call
    }

    pub(crate) fn answer(&mut self, lane: Lane, call: CallId, answer: Answer) -> &mut Self {
        self.add(lane, What::Answered { call, answer })
    }

    pub(crate) fn acquire(&mut self, lane: Lane) -> CallId {
        self.call(lane, Asks::Acquire { key: key() })
    }

    pub(crate) fn granted(&mut self, lane: Lane, number: u64, of: i64) -> &mut Self {
        self.commit(
            lane,
            Commit::Granted {
                key: key(),
                token: token(number),
                session: session(of),
                attempt: AttemptId::from_u128(number.into()),
            },
        )
    }

    /// A grant from the wish to the answer.
    pub(crate) fn grant(&mut self, lane: Lane, number: u64, of: i64) -> &mut Self {
        let call = self.acquire(lane.clone());
        self.wait(10).granted(lane.clone(), number, of);
        self.wait(10)
            .answer(lane, call, Answer::Granted(token(number)))
    }

    pub(crate) fn ended(&mut self, lane: Lane, number: u64, cause: EndCause) -> &mut Self {
        self.commit(
            lane,
            Commit::Ended {
                key: key(),
                token: token(number),
                cause,
            },
        )
    }

    pub(crate) fn session_ended(&mut self, lane: Lane, of: i64, cause: EndCause) -> &mut Self {
        self.commit(
            lane,
            Commit::SessionEnded {
                session: session(of),
                cause,
            },
        )
    }

    pub(crate) fn queued(&mut self, lane: Lane, attempt: u128, of: i64) -> &mut Self {
        self.commit(
            lane,
            Commit::Queued {
                key: key(),
                session: session(of),
                attempt: AttemptId::from_u128(attempt),
            },
        )
    }

    pub(crate) fn left(&mut self, lane: Lane, attempt: u128, cause: EndCause) -> &mut Self {
        self.commit(
            lane,
            Commit::Left {
                key: key(),
                attempt: AttemptId::from_u128(attempt),
                cause,
            },
        )
    }

    pub(crate) fn release_call(&mut self, lane: Lane, number: u64) -> CallId {
        self.call(
            lane,
            Asks::Release {
                key: key(),
                token: token(number),
            },
        )
    }

    /// A release from the wish to the answer.
    pub(crate) fn release(&mut self, lane: Lane, number: u64) -> &mut Self {
        let call = self.release_call(lane.clone(), number);
        self.wait(10).ended(lane.clone(), number, EndCause::Deleted);
        self.wait(10).answer(lane, call, Answer::Released)
    }

    /// A renewal, with a round trip of 20 ms.
    pub(crate) fn renew(&mut self, lane: Lane, of: i64) -> &mut Self {
        let call = self.call(
            lane.clone(),
            Asks::Renew {
                session: session(of),
            },
        );
        let until = self.wait(10).now + TTL;
        self.commit(
            lane.clone(),
            Commit::SessionRenewed {
                session: session(of),
                until,
            },
        );
        let left = TTL - Duration::from_millis(20);
        self.wait(10).answer(lane, call, Answer::Renewed(left))
    }

    pub(crate) fn believes(&mut self, lane: Lane, number: u64) -> &mut Self {
        self.add(
            lane,
            What::Believes {
                key: key(),
                token: token(number),
            },
        )
    }

    pub(crate) fn lost(&mut self, lane: Lane, number: u64, definite: bool) -> &mut Self {
        self.add(
            lane,
            What::Lost {
                key: key(),
                token: token(number),
                definite,
            },
        )
    }

    pub(crate) fn wrote(&mut self, lane: Lane, number: u64, accepted: bool) -> &mut Self {
        self.add(
            lane,
            What::Wrote {
                resource: key(),
                token: Some(token(number)),
                accepted,
            },
        )
    }

    pub(crate) fn phase(&mut self, phase: Phase) -> &mut Self {
        self.add(Lane::World, What::PhaseBegan(phase))
    }

    /// What the checkers find in it.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut checkers = Checkers::new(BOUNDS);
        for entry in &self.entries {
            checkers.observe(entry);
        }
        checkers.finish();
        checkers.violations().to_vec()
    }
}
