use std::time::Duration;

use lock_spi::{SessionId, Ttl};

/// How a client's sessions are doing; made by [`Client::health`](crate::Client::health).
///
/// It tells what the client knows, and asks the store nothing: one that holds nothing, and waits
/// for nothing, has no session, and is well.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// Whether the client was shut down.
    pub shut_down: bool,
    /// Its sessions: one for each ttl in use, and more where one does not do.
    pub sessions: Vec<SessionHealth>,
}

/// How one session is doing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct SessionHealth {
    /// Its id, as the store's operators see it.
    pub session: SessionId,
    /// Its ttl.
    pub ttl: Ttl,
    /// How far it has come.
    pub phase: SessionPhase,
    /// How long ago its last confirmed renewal was sent, its opening included; `None` before that.
    pub renewed_ago: Option<Duration>,
    /// How long its guards are held without a further renewal.
    pub remaining: Duration,
    /// Whether a renewal is overdue, as [`Guard::jeopardy`](crate::Guard::jeopardy) tells.
    pub overdue: bool,
    /// How many locks are held under it.
    pub guards: usize,
    /// How many of these are in jeopardy: all that are renewed, when a renewal is overdue.
    pub in_jeopardy: usize,
    /// How many keys are waited for under it, by acquires and by observers of elections.
    pub waiters: usize,
}

/// How far a session has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionPhase {
    /// The store was asked for it and has not answered.
    Opening,
    /// It is open and renewed.
    Open,
    /// It was lost, and what it held with it; it is being closed.
    Lost,
    /// Nobody needs it any more; it is being closed.
    Closing,
}

impl Health {
    /// Whether nothing is known to be wrong: the client was not shut down, no session was lost, and
    /// no renewal is overdue.
    #[must_use]
    pub fn is_well(&self) -> bool {
        !self.shut_down && self.sessions.iter().all(SessionHealth::is_well)
    }
}

impl SessionHealth {
    /// Whether it was not lost, and its renewal is not overdue.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.phase != SessionPhase::Lost && !self.overdue
    }
}
