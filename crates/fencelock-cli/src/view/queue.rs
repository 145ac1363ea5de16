use std::io::{self, Write};
use std::time::Duration;

use fencelock::spi::{SessionInfo, WaiterInfo};
use serde::Serialize;

use super::{brief, milliseconds, moment, one_line, or_dash};
use crate::output::{Answer, Table};

/// A place in a queue.
#[derive(Debug, Serialize)]
pub(crate) struct WaiterView {
    /// How many stand before it, if the store looked.
    pub(crate) ahead: Option<u32>,
    pub(crate) owner: String,
    pub(crate) session: String,
    pub(crate) attempt: String,
    /// By its machine's clock.
    pub(crate) queued_at: String,
}

/// An open session.
#[derive(Debug, Serialize)]
pub(crate) struct SessionView {
    pub(crate) session: String,
    pub(crate) owner: String,
    pub(crate) ttl_ms: u64,
    /// By its machine's clock.
    pub(crate) opened_at: String,
    /// Unless renewed; `null` where the store does not know.
    pub(crate) remaining_ms: Option<u64>,
}

impl From<&WaiterInfo> for WaiterView {
    fn from(waiter: &WaiterInfo) -> Self {
        let WaiterInfo {
            attempt,
            session,
            owner,
            place,
            queued_at,
        } = waiter;
        Self {
            ahead: place.ahead,
            owner: owner.to_string(),
            session: session.to_string(),
            attempt: attempt.to_string(),
            queued_at: moment(*queued_at),
        }
    }
}

impl From<&SessionInfo> for SessionView {
    fn from(info: &SessionInfo) -> Self {
        let SessionInfo {
            session,
            owner,
            ttl,
            opened_at,
            remaining,
        } = info;
        Self {
            session: session.to_string(),
            owner: owner.to_string(),
            ttl_ms: milliseconds(ttl.as_duration()),
            opened_at: moment(*opened_at),
            remaining_ms: remaining.map(milliseconds),
        }
    }
}

/// A queue, first in line first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Waiters(pub(crate) Vec<WaiterView>);

impl Answer for Waiters {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.is_empty() {
            return writeln!(out, "nobody waits");
        }
        let mut table = Table::new(["ahead", "owner", "since", "session"]);
        for waiter in &self.0 {
            table.row([
                or_dash(waiter.ahead),
                one_line(&waiter.owner),
                waiter.queued_at.clone(),
                waiter.session.clone(),
            ]);
        }
        table.write(out)
    }
}

/// Open sessions.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Sessions(pub(crate) Vec<SessionView>);

impl Answer for Sessions {
    fn to_people(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.0.is_empty() {
            return writeln!(out, "no session is open");
        }
        let text = |milliseconds| brief(Duration::from_millis(milliseconds));
        let mut table = Table::new(["session", "owner", "ttl", "opened", "lives"]);
        for session in &self.0 {
            table.row([
                session.session.clone(),
                one_line(&session.owner),
                text(session.ttl_ms),
                session.opened_at.clone(),
                or_dash(session.remaining_ms.map(text)),
            ]);
        }
        table.write(out)
    }
}
