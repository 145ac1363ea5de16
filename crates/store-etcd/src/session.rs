//! One session of this store object, and the table of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_spi::{AttemptId, FencingToken, Instant, LockKey, Owner, SessionId, Ttl};

use crate::attempts::{Attempts, Facts, Granted};
use crate::config::margin;
use crate::epoch::Epoch;
use crate::recent::Recent;

/// At least so many closed sessions are remembered.
const CLOSED_REMEMBERED: usize = 100_000;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Owner,
    /// The lease's own.
    pub(crate) ttl: Ttl,
    /// Of one call for this session.
    pub(crate) limit: Duration,
    /// Held while a bump is in flight.
    pub(crate) bumping: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    deadline: Instant,
    closing: bool,
    epoch: Epoch,
    attempts: Attempts,
}

impl Session {
    pub(crate) fn new(
        (id, owner): (SessionId, Owner),
        (ttl, limit): (Ttl, Duration),
        deadline: Instant,
        epoch: Option<i64>,
    ) -> Self {
        let state = State {
            deadline,
            closing: false,
            epoch: Epoch::new(epoch),
            attempts: Attempts::new(),
        };
        Self {
            id,
            owner,
            ttl,
            limit,
            bumping: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.state().deadline
    }

    /// How long it lives by the last confirmed renewal.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        self.deadline().saturating_since(now)
    }

    pub(crate) fn has_margin(&self, now: Instant) -> bool {
        self.remaining(now) > margin(self.ttl.as_duration())
    }

    /// Whether it is over by its own deadline, or given up: it is never kept alive again.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let state = self.state();
        state.closing || state.deadline <= now
    }

    /// A renewal was confirmed.
    pub(crate) fn confirm(&self, until: Instant) {
        let mut state = self.state();
        state.deadline = state.deadline.max(until);
    }

    pub(crate) fn begin_closing(&self) {
        self.state().closing = true;
    }

    pub(crate) fn with_epoch<T>(&self, act: impl FnOnce(&mut Epoch) -> T) -> T {
        act(&mut self.state().epoch)
    }

    pub(crate) fn with_attempts<T>(&self, act: impl FnOnce(&mut Attempts) -> T) -> T {
        act(&mut self.state().attempts)
    }

    pub(crate) fn facts(&self, attempt: AttemptId) -> Facts {
        self.state().attempts.facts(attempt)
    }

    pub(crate) fn has_ended(&self, attempt: AttemptId) -> bool {
        self.state().attempts.has_ended(attempt)
    }

    pub(crate) fn grant(&self, token: FencingToken) -> Option<Granted> {
        self.state().attempts.grant(token).cloned()
    }
}

/// An attempt at work: from before the first byte leaves until this is dropped, somebody accounts
/// for it.
#[derive(Debug)]
pub(crate) struct AtWork {
    session: Arc<Session>,
    attempt: AttemptId,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl AtWork {
    /// Registers an attempt; `None` when it has ended.
    pub(crate) fn begin(session: &Arc<Session>, attempt: AttemptId, key: &LockKey) -> Option<Self> {
        let turn = session.with_attempts(|attempts| attempts.begin(attempt, key))?;
        Some(Self {
            session: Arc::clone(session),
            attempt,
            turn,
        })
    }

    /// Waits for other calls of the same attempt.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.session
            .with_attempts(|attempts| attempts.leave(self.attempt));
    }
}

/// A grant on its way back: until this is dropped a renewal leaves it alone.
#[derive(Debug)]
pub(crate) struct Releasing {
    session: Arc<Session>,
    attempt: AttemptId,
}

impl Releasing {
    pub(crate) fn begin(session: &Arc<Session>, attempt: AttemptId) -> Self {
        session.with_attempts(|attempts| attempts.begin_release(attempt));
        let session = Arc::clone(session);
        Self { session, attempt }
    }
}

impl Drop for Releasing {
    fn drop(&mut self) {
        self.session
            .with_attempts(|attempts| attempts.leave_release(self.attempt));
    }
}

/// A creating request on its way; lost unless it is said to be answered.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    session: &'a Session,
    request: u64,
}

impl<'a> Sent<'a> {
    /// Notes that it leaves; `None` when the attempt has ended, and then it must not.
    pub(crate) fn now(session: &'a Session, attempt: AttemptId) -> Option<Self> {
        let mut state = session.state();
        let ended = state.attempts.has_ended(attempt);
        let request = (!ended).then(|| state.epoch.send(attempt))?;
        Some(Self { session, request })
    }

    pub(crate) fn answered(self) {
        self.session
            .with_epoch(|epoch| epoch.answered(self.request));
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        // Of an answered one nothing is known any more, so this does nothing.
        self.session.with_epoch(|epoch| epoch.lost(self.request));
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

    /// Ends an attempt for good.
    pub(crate) fn end(&self, session: &Session, attempt: AttemptId) {
        if let Some(token) = session.with_attempts(|attempts| attempts.end(attempt)) {
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

    fn session(id: i64) -> Session {
        let limits = (Ttl::DEFAULT, Duration::from_secs(1));
        let id = SessionId::new(id).unwrap();
        let deadline = Instant::from_origin(Duration::from_secs(15));
        Session::new((id, Owner::default()), limits, deadline, Some(1))
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
        one.with_attempts(|attempts| attempts.begin(attempt, &key))
            .unwrap();
        assert!(sessions.granted(&one, attempt, token));
        assert_eq!(sessions.holding(token).unwrap().id, one.id);
        sessions.end(&one, attempt);
        assert!(sessions.holding(token).is_none());
    }

    #[test]
    fn a_deadline_only_moves_forward_and_closing_is_for_good() {
        let at = |seconds| Instant::from_origin(Duration::from_secs(seconds));
        let session = session(1);
        session.confirm(at(10));
        assert_eq!(session.remaining(at(5)), Duration::from_secs(10));
        assert!(session.has_margin(at(13)) && !session.has_margin(at(14)));
        assert!(!session.is_over(at(14)) && session.is_over(at(15)));
        session.begin_closing();
        assert!(session.is_over(at(1)));
    }

    #[test]
    fn a_request_that_is_dropped_is_lost() {
        let session = session(1);
        let attempt = AttemptId::from_u128(1);
        Sent::now(&session, attempt).unwrap().answered();
        assert_eq!(session.with_epoch(|epoch| epoch.current()), Some(1));
        drop(Sent::now(&session, attempt));
        assert_eq!(session.with_epoch(|epoch| epoch.current()), None);
    }

    #[test]
    fn nothing_leaves_for_an_attempt_that_has_ended() {
        let session = session(1);
        let attempt = AttemptId::from_u128(1);
        session.with_attempts(|attempts| attempts.end(attempt));
        assert!(Sent::now(&session, attempt).is_none());
    }
}
