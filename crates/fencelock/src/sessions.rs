use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_spi::{AttemptId, FencingToken, GrantRef, LockKey, Owner, SessionId};
use tokio::sync::mpsc;

use crate::attempt::OpenAttempt;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::grant::Grant;
use crate::health::SessionHealth;
use crate::keeper;
use crate::line::{Lines, Pace};
use crate::releaser::{self, Job};
use crate::session::{Origin, Phase, Session};
use crate::timing::Timing;

/// The sessions of a client: one for each ttl in use, unless one is on its way out or full.
#[derive(Debug)]
pub(crate) struct Sessions {
    backend: Arc<Backend>,
    owner: Owner,
    /// The most grants and attempts that a session takes.
    most_users: usize,
    releaser: mpsc::UnboundedSender<Job>,
    lines: Arc<Lines>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: Vec<Arc<Session>>,
    shut: bool,
}

/// What became of the locks that a client still had when it was [shut
/// down](crate::Client::shutdown).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Shutdown {
    /// Given back, by the store's word.
    pub released: Vec<(LockKey, FencingToken)>,
    /// The store did not confirm it; they end with their session's ttl.
    pub left_to_expire: Vec<(LockKey, FencingToken)>,
}

impl Sessions {
    /// Starts with none, and with a releaser.
    pub(crate) fn new(backend: Arc<Backend>, owner: Owner, pace: Pace) -> Self {
        let (releaser, jobs) = mpsc::unbounded_channel();
        backend.runtime.spawn(Box::pin(releaser::run(jobs)));
        let limit = backend
            .store
            .descriptor()
            .capabilities
            .max_grants_per_session;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        Self {
            backend,
            owner,
            most_users: limit.unwrap_or(usize::MAX),
            releaser,
            lines: Lines::new(pace),
            state: Mutex::default(),
        }
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    pub(crate) fn lines(&self) -> &Arc<Lines> {
        &self.lines
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws and registers a new attempt, under a new session if need be. Nothing is awaited, so
    /// nothing can be cut off half-way.
    ///
    /// One that is `transferable` gets a session of its own.
    pub(crate) fn begin(
        &self,
        timing: Timing,
        key: LockKey,
        transferable: bool,
    ) -> Result<OpenAttempt> {
        let id = AttemptId::random(&*self.backend.runtime);
        let mut state = self.state();
        if state.shut {
            return Err(Error::shutting_down());
        }
        state.known.retain(|session| session.phase() != Phase::Over);
        let mut of_ttl = state
            .known
            .iter()
            .filter(|known| known.timing.ttl == timing.ttl && !transferable);
        if let Some(session) = of_ttl.find(|known| known.register(id, self.most_users)) {
            return Ok(OpenAttempt::new(Arc::clone(session), key, id));
        }
        let new = SessionId::random(&*self.backend.runtime);
        let session = self.session((Origin::Opened, new), transferable, timing);
        session.register(id, self.most_users);
        if transferable {
            session.retire();
        }
        state.known.push(Arc::clone(&session));
        drop(state);
        self.keep(&session);
        Ok(OpenAttempt::new(session, key, id))
    }

    /// Begins to take a session over that another client has handed over.
    pub(crate) fn adopt(&self, timing: Timing, grant: &Grant) -> Result<OpenAttempt> {
        let id = AttemptId::random(&*self.backend.runtime);
        let mut state = self.state();
        if state.shut {
            return Err(Error::shutting_down());
        }
        let session = self.session((Origin::Adopted, grant.session), true, timing);
        session.register(id, self.most_users);
        let expected = GrantRef {
            key: grant.key.clone(),
            token: grant.token,
        };
        session.expect(id, expected);
        session.retire();
        state.known.push(Arc::clone(&session));
        drop(state);
        self.keep(&session);
        Ok(OpenAttempt::new(session, grant.key.clone(), id))
    }

    fn session(
        &self,
        origin: (Origin, SessionId),
        transferable: bool,
        timing: Timing,
    ) -> Arc<Session> {
        Arc::new(Session::new(
            origin,
            transferable,
            Arc::clone(&self.backend),
            timing,
            self.owner.clone(),
            self.releaser.downgrade(),
        ))
    }

    fn keep(&self, session: &Arc<Session>) {
        let keeper = keeper::keep(Arc::clone(session));
        self.backend.runtime.spawn(keeper);
    }

    /// Takes nothing new any more and ends everything: keepers and releaser tell the store, in the
    /// background. Answers with the sessions, and what each held or was giving back.
    fn end(&self) -> Vec<(Arc<Session>, Vec<GrantRef>)> {
        let mut state = self.state();
        state.shut = true;
        let known = state.known.clone();
        drop(state);
        let ended = known.into_iter().map(|session| {
            let grants = session.end();
            (session, grants)
        });
        ended.collect()
    }

    /// Ends everything and waits for it.
    pub(crate) async fn shut_down(&self) -> Shutdown {
        let mut report = Shutdown::default();
        for (session, grants) in self.end() {
            session.reached(Phase::Over).await;
            let left: BTreeSet<_> = session.left_behind().into_iter().collect();
            for grant in grants {
                let list = match left.contains(&grant) {
                    true => &mut report.left_to_expire,
                    false => &mut report.released,
                };
                list.push((grant.key, grant.token));
            }
        }
        report
    }

    /// Whether it takes nothing new any more.
    pub(crate) fn is_shut(&self) -> bool {
        self.state().shut
    }

    /// How all of them are doing.
    pub(crate) fn health(&self) -> Vec<SessionHealth> {
        let state = self.state();
        let known = state.known.iter();
        known.filter_map(|session| session.health()).collect()
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        drop(self.end());
    }
}
