//! What is told of a session to those who watch over the client.

use std::time::Duration;

use super::{Cause, Phase, Session};
use crate::health::{SessionHealth, SessionPhase};
use crate::holding::Renewal;

impl Session {
    /// How it is doing; `None` once nothing is done for it any more.
    pub(crate) fn health(&self) -> Option<SessionHealth> {
        let phase = self.expire();
        let now = self.now();
        let state = self.state();
        let phase = match (phase, state.cause) {
            (Phase::Opening, _) => SessionPhase::Opening,
            (Phase::Open, _) => SessionPhase::Open,
            (Phase::Ending, Some(Cause::Client)) => SessionPhase::Closing,
            (Phase::Ending, _) => SessionPhase::Lost,
            (Phase::Over, _) => return None,
        };
        let was_open = phase != SessionPhase::Opening && state.failure.is_none();
        let overdue_at = state.confirmed + self.timing.overdue_after();
        let overdue = phase == SessionPhase::Open && now >= overdue_at;
        let renewed = state.book.held();
        let renewed = renewed.filter(|holding| holding.renewal == Renewal::Kept);
        let guards = state.book.held().count();
        Some(SessionHealth {
            session: self.id,
            ttl: self.timing.ttl,
            phase,
            renewed_ago: was_open.then(|| now.saturating_since(state.confirmed)),
            remaining: match phase {
                SessionPhase::Open => state.believed(&self.timing).saturating_since(now),
                _ => Duration::ZERO,
            },
            overdue,
            guards,
            in_jeopardy: if overdue { renewed.count() } else { 0 },
            waiters: state.book.users() - guards,
        })
    }
}
