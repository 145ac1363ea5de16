//! One session of this store object, and the table of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, Instant, LockKey, SessionId, Ttl};

use crate::attempts::{Attempts, Granted};
use crate::recent::Recent;

/// At least so many closed sessions are remembered.
const CLOSED_REMEMBERED: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) ttl: Ttl,
    /// Of one call for this session.
    pub(crate) limit: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    deadline: Instant,
    attempts: Attempts,
}

impl Session {
    pub(crate) fn new(id: SessionId, (ttl, limit): (Ttl, Duration), deadline: Instant) -> Self {
        let state = State {
            deadline,
            attempts: Attempts::new(),
        };
        Self {
            id,
            ttl,
            limit,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it lives by the last confirmed renewal.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.state().deadline.saturating_since(now)
    }

    /// Until when to rely on what was told to be left, counted from when it was asked: no longer than
    /// the ttl. A server whose clock has stepped back tells of more, until the clock is put right.
    pub(crate) fn until(&self, asked: Instant, left: Duration) -> Instant {
        asked + left.min(self.ttl.as_duration())
    }

    /// A renewal was confirmed.
    pub(crate) fn confirm(&self, until: Instant) {
        let mut state = self.state();
        state.deadline = state.deadline.max(until);
    }

    pub(crate) fn with_attempts<T>(&self, act: impl FnOnce(&mut Attempts) -> T) -> T {
        act(&mut self.state().attempts)
    }

    pub(crate) fn grant(&self, token: FencingToken) -> Option<Granted> {
        self.state().attempts.grant(token)
    }
}

/// An attempt at work: from before the first byte leaves until this is dropped, somebody accounts
/// for it.
#[derive(Debug)]
pub(crate) struct AtWork {
    session: Arc<Session>,
    attempt: AttemptId,
}

impl AtWork {
    /// Registers an attempt; `None` when it has ended.
    pub(crate) fn begin(session: &Arc<Session>, attempt: AttemptId, key: &LockKey) -> Option<Self> {
        let begun = session.with_attempts(|attempts| attempts.begin(attempt, key));
        begun.then(|| Self {
            session: Arc::clone(session),
            attempt,
        })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.session
            .with_attempts(|attempts| attempts.leave(self.attempt));
    }
}

/// The sessions of this store object.
#[derive(Debug)]
pub(crate) struct Sessions(Mutex<Table>);

#[derive(Debug)]
struct Table {
    open: BTreeMap<SessionId, Arc<Session>>,
    closed: Recent<SessionId, ()>,
    by_token: BTreeMap<FencingToken, SessionId>,
}

impl Sessions {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Table {
            open: BTreeMap::new(),
            closed: Recent::new(CLOSED_REMEMBERED),
            by_token: BTreeMap::new(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<Arc<Session>> {
        self.table().open.get(&session).cloned()
    }

    pub(crate) fn was_closed(&self, session: SessionId) -> bool {
        self.table().closed.contains(&session)
    }

    /// Adds a session that was opened, unless it is there or was closed meanwhile.
    pub(crate) fn add(&self, session: Session) -> Option<Arc<Session>> {
        let mut table = self.table();
        if table.closed.contains(&session.id) {
            return None;
        }
        let entry = table.open.entry(session.id);
        Some(Arc::clone(entry.or_insert_with(|| Arc::new(session))))
    }

    /// Adds a session that was taken over, in place of what is remembered of the same one.
    pub(crate) fn adopt(&self, session: Session) -> Arc<Session> {
        let mut table = self.table();
        table.forget(session.id);
        table.closed.forget(&session.id);
        let session = Arc::new(session);
        table.open.insert(session.id, Arc::clone(&session));
        session
    }

    /// The session is gone for good, and everything under it.
    pub(crate) fn closed(&self, session: SessionId) {
        let mut table = self.table();
        table.closed.remember(session, ());
        table.forget(session);
    }

    /// Those whose time has been up for longer than a whole ttl: nobody renews them any more.
    pub(crate) fn deserted(&self, now: Instant) -> Vec<SessionId> {
        let table = self.table();
        let deserted = table.open.values().filter(|session| {
            let ttl = session.ttl.as_duration();
            session.remaining(now - ttl).is_zero()
        });
        deserted.map(|session| session.id).collect()
    }

    /// The session that holds this grant, as far as this store object knows.
    pub(crate) fn holding(&self, token: FencingToken) -> Option<Arc<Session>> {
        let table = self.table();
        let session = table.by_token.get(&token)?;
        table.open.get(session).cloned()
    }

    /// Notes a grant; `false` when the attempt has ended meanwhile.
    pub(crate) fn granted(
        &self,
        session: &Session,
        attempt: AttemptId,
        token: FencingToken,
    ) -> bool {
        let noted = session.with_attempts(|attempts| attempts.granted(attempt, token));
        if noted {
            self.table().by_token.insert(token, session.id);
        }
        noted
    }

    /// The database has nothing of an attempt any more and will have nothing.
    pub(crate) fn end(&self, session: &Session, attempt: AttemptId, key: &LockKey) {
        if let Some(token) = session.with_attempts(|attempts| attempts.end(attempt, key)) {
            self.table().by_token.remove(&token);
        }
    }
}

impl Table {
    fn forget(&mut self, session: SessionId) {
        if let Some(session) = self.open.remove(&session) {
            for token in session.with_attempts(|attempts| attempts.tokens()) {
                self.by_token.remove(&token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_origin(Duration::from_secs(seconds))
    }

    fn session(id: i64) -> Session {
        let limits = (Ttl::DEFAULT, Duration::from_secs(1));
        Session::new(SessionId::new(id).unwrap(), limits, at(15))
    }

    #[test]
    fn a_closed_session_is_never_added_again() {
        let sessions = Sessions::new();
        let id = sessions.add(session(1)).unwrap().id;
        sessions.closed(id);
        assert!(sessions.get(id).is_none() && sessions.was_closed(id));
        assert!(sessions.add(session(1)).is_none());
    }

    #[test]
    fn tokens_lead_to_their_session_until_they_end() {
        let sessions = Sessions::new();
        let one = sessions.add(session(1)).unwrap();
        let (attempt, token) = (AttemptId::from_u128(1), FencingToken::new(9).unwrap());
        let key = LockKey::new("k").unwrap();
        assert!(!sessions.granted(&one, attempt, token), "never begun");
        let at_work = AtWork::begin(&one, attempt, &key).unwrap();
        assert!(sessions.granted(&one, attempt, token));
        drop(at_work);
        assert_eq!(sessions.holding(token).unwrap().id, one.id);
        sessions.end(&one, attempt, &key);
        assert!(sessions.holding(token).is_none());
        assert!(AtWork::begin(&one, attempt, &key).is_none());
    }

    #[test]
    fn a_deadline_only_moves_forward() {
        let session = session(1);
        session.confirm(at(10));
        assert_eq!(session.remaining(at(5)), Duration::from_secs(10));
        session.confirm(at(20));
        assert_eq!(session.remaining(at(5)), Duration::from_secs(15));
    }

    #[test]
    fn nothing_is_relied_on_for_longer_than_the_ttl() {
        let session = session(1);
        assert_eq!(session.until(at(5), Duration::from_secs(9)), at(14));
        assert_eq!(session.until(at(5), Duration::from_secs(99)), at(20));
    }

    #[test]
    fn who_is_not_renewed_for_two_ttls_is_deserted() {
        let sessions = Sessions::new();
        let id = sessions.add(session(1)).unwrap().id;
        assert!(sessions.deserted(at(29)).is_empty());
        assert_eq!(sessions.deserted(at(31)), [id]);
    }
}
