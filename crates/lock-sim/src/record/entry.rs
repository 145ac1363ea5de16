use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::FencingToken;

use super::client::{Answer, Asks, CallId};
use super::commit::Commit;
use super::lane::Lane;

/// One thing that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// When, on the clock of the world.
    pub at: Duration,
    /// Who did it, or to whom it happened. Of a [`Commit`]: who asked for it; the cluster, if nobody
    /// did.
    pub lane: Lane,
    /// What happened.
    pub what: What,
}

/// The name of a fault, as the table of faults has it.
pub type FaultName = &'static str;

/// What can happen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum What {
    /// A call ended.
    Answered {
        /// Which.
        call: CallId,
        /// How.
        answer: Answer,
    },
    /// The client vouches for the grant at this very moment. Written down when it is asked, and
    /// whenever a grant ends that it might still vouch for.
    Believes {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
    },
    /// A call began.
    Called {
        /// Which.
        call: CallId,
        /// For what.
        asks: Asks,
    },
    /// A client's clock goes differently from now on.
    ClockChanged {
        /// Parts per million by which it runs fast, or slow when negative.
        rate: i64,
    },
    /// What is true changed.
    Committed(Commit),
    /// A process ended where it stood, and has forgotten everything.
    Crashed,
    /// A fault began that lasts until it is said to be over.
    FaultBegan(FaultName),
    /// A fault is over.
    FaultEnded(FaultName),
    /// A fault happened that does not last.
    FaultHappened(FaultName),
    /// A client gave up a grant without being asked.
    Lost {
        /// The lock.
        key: Arc<str>,
        /// The grant's.
        token: FencingToken,
        /// Whether it claims a definite answer of the store; otherwise its own time was up.
        definite: bool,
    },
    /// Words for people.
    Note(String),
    /// A task panicked.
    Panicked,
    /// A process stands still; its clock does not.
    Paused,
    /// Another part of the run begins.
    PhaseBegan(Phase),
    /// A process goes on.
    Resumed,
    /// A process began, with nothing in its memory.
    Started,
    /// A client asked a resource to take a write.
    Wrote {
        /// What was written to.
        resource: Arc<str>,
        /// Of the lock that the writer had; none when the resource was not told.
        token: Option<FencingToken>,
        /// Whether the resource took it.
        accepted: bool,
    },
}

/// The parts of a run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Phase {
    /// Faults happen; nothing bad may.
    Safety,
    /// Faults are healed; something good must happen, in time.
    Liveness,
    /// Nobody wants anything any more; nothing may be left.
    Quiet,
    /// The run is over.
    End,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs_f64();
        write!(f, "{seconds:>9.3} s  {}: {}", self.lane, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { call, answer } => write!(f, "call {}: {answer}", call.0),
            Self::Believes { key, token } => write!(f, "believes in token {token} of {key:?}"),
            Self::Called { call, asks } => write!(f, "{asks}, call {}", call.0),
            Self::ClockChanged { rate } => write!(f, "its clock is {rate} ppm fast"),
            Self::Committed(commit) => commit.fmt(f),
            Self::Crashed => f.write_str("crashes"),
            Self::FaultBegan(fault) | Self::FaultHappened(fault) => f.write_str(fault),
            Self::FaultEnded(fault) => write!(f, "{fault} is over"),
            Self::Lost {
                key,
                token,
                definite,
            } => {
                let how = if *definite {
                    "the store says so"
                } else {
                    "its time is up"
                };
                write!(f, "gives up token {token} of {key:?}: {how}")
            }
            Self::Note(words) => f.write_str(words),
            Self::Panicked => f.write_str("panics"),
            Self::Paused => f.write_str("stands still"),
            Self::PhaseBegan(phase) => write!(f, "{phase}"),
            Self::Resumed => f.write_str("goes on"),
            Self::Started => f.write_str("starts"),
            Self::Wrote {
                resource,
                token,
                accepted,
            } => {
                let verdict = if *accepted { "taken" } else { "refused" };
                match token {
                    Some(token) => write!(f, "writes to {resource} with token {token}: {verdict}"),
                    None => write!(f, "writes to {resource} without a token: {verdict}"),
                }
            }
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safety => "faults begin",
            Self::Liveness => "faults are healed",
            Self::Quiet => "work is over",
            Self::End => "the end",
        })
    }
}
