//! The reference store's means for operators.

use async_trait::async_trait;
use lock_spi::{
    Finding, LockKey, Migration, Page, PageRequest, Place, RecoverRequest, Recovery, Result,
    SessionInfo, StoreAdmin, WaiterInfo,
};

use crate::state::{Moment, State};
use crate::store::{ReferenceStore, page};

const FORMAT: Migration = Migration {
    found: Some(1),
    wanted: 1,
};

fn recover(state: &mut State, request: RecoverRequest, at: Moment) -> Recovery {
    let RecoverRequest {
        id,
        above,
        hold_off,
    } = request;
    let known = state.recovery.filter(|(known, _)| *known == id);
    let (_, opens) = known.unwrap_or_else(|| {
        let sessions: Vec<_> = state.sessions.keys().copied().collect();
        for session in sessions {
            state.end_session(session, at.now);
        }
        let seen = above.map_or(0, |token| token.term());
        state.term = state.term.max(seen) + 1;
        (id, at.now + hold_off)
    });
    state.recovery = Some((id, opens));
    Recovery {
        term: state.term,
        closed_for: opens.saturating_since(at.now),
    }
}

#[async_trait]
impl StoreAdmin for ReferenceStore {
    async fn sessions(&self, request: PageRequest) -> Result<Page<SessionInfo>> {
        let infos = self.look(|state| {
            let sessions = state.sessions.iter();
            let infos = sessions.map(|(&session, known)| SessionInfo {
                session,
                owner: known.owner.clone(),
                ttl: known.ttl,
                opened_at: known.opened_at,
                remaining: None,
            });
            infos.collect::<Vec<_>>()
        });
        page(infos.await?.into_iter(), &request)
    }

    async fn waiters(&self, key: &LockKey) -> Result<Vec<WaiterInfo>> {
        let waiters = self.look(|state| {
            let line = state.queues.get(key).into_iter().flatten();
            let infos = line.enumerate().map(|(ahead, ticket)| WaiterInfo {
                attempt: ticket.attempt,
                session: ticket.session,
                owner: state.sessions[&ticket.session].owner.clone(),
                place: Place {
                    position: ticket.position,
                    ahead: u32::try_from(ahead).ok(),
                },
                queued_at: ticket.queued_at,
            });
            infos.collect()
        });
        waiters.await
    }

    async fn diagnose(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }

    async fn migration(&self) -> Result<Migration> {
        Ok(FORMAT)
    }

    async fn migrate(&self) -> Result<Migration> {
        Ok(FORMAT)
    }

    async fn recover(&self, request: RecoverRequest) -> Result<Recovery> {
        self.run(move |state, at| recover(state, request, at)).await
    }
}
