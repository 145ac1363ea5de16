mod call;
mod events;
mod meters;
mod owners;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tracing::Instrument;

use self::call::Call;
use self::events::{Events, Subject};
use self::meters::Operation;
use self::owners::Owners;
use crate::admin::StoreAdmin;
use crate::descriptor::Descriptor;
use crate::error::Result;
use crate::id::{AttemptId, SessionId};
use crate::names::{metric, outcome};
use crate::outcome::{
    Grant, InsertOutcome, KeptAlive, LockInfo, LockOutcome, Page, Revocation, SessionLease,
};
use crate::request::{
    InsertRequest, KeepAliveRequest, OpenSessionRequest, PageRequest, RevokeRequest, RevokeTarget,
    WaitRequest,
};
use crate::runtime::Runtime;
use crate::store::LockStore;
use crate::text::{KeyPrefix, LockKey};
use crate::token::FencingToken;

/// A store whose operations are counted, timed and told.
///
/// Through the `metrics` facade and `tracing`, under the names of [`names`](crate::names):
///
/// | operation | metric | outcomes besides the kinds of errors and `dropped` |
/// |---|---|---|
/// | `try_insert` | `lock.acquire` | `granted`, `queued`, `held`, `ended` |
/// | `keep_alive`, `extend` | `lock.renew` | `kept`, `reduced`, `gone` |
/// | `delete_if_owner` | `lock.release` | `released`, `not_held` |
/// | `revoke` | `lock.revoke` | `revoked`, `floor_raised`, `unchanged` |
/// | `await_release` | `lock.wait` | `woken` |
///
/// A call that is dropped before its answer counts as `dropped`; what it began goes on. Each of these
/// operations is a span as well, of its metric's name, at the level debug.
///
/// An event tells what the store answered. So a grant that is asked for again after it was answered
/// (same attempt, same token) is told again, and so is a revoke that is repeated. A token floor that
/// is violated is told at incident grade, once for each answer that says so, whichever method gave
/// it: a store need not tell it itself.
///
/// What operators do through [`LockStore::admin`] is passed on without being observed.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "tokio")]
/// # {
/// use std::sync::Arc;
/// use lock_spi::{LockStore, Observed, TokioRuntime};
///
/// fn observed(store: impl LockStore) -> impl LockStore {
///     Observed::new(store, Arc::new(TokioRuntime::current()))
/// }
/// # }
/// ```
pub struct Observed<S> {
    store: S,
    runtime: Arc<dyn Runtime>,
    events: Events,
    owners: Owners,
}

impl<S: LockStore> Observed<S> {
    /// Observes `store`; durations are taken on `runtime`'s clock.
    ///
    /// Tells the recorder that is installed now the units of all metrics.
    pub fn new(store: S, runtime: Arc<dyn Runtime>) -> Self {
        metric::describe();
        let Descriptor {
            name, namespace, ..
        } = store.descriptor();
        Self {
            store,
            runtime,
            events: Events::new(name, namespace),
            owners: Owners::default(),
        }
    }

    fn begin(&self, operation: Operation) -> Call<'_> {
        Call::begin(operation, self.events.meters(), &*self.runtime)
    }

    /// Passes an answer on; an error that is an incident is told.
    fn checked<T>(&self, answer: Result<T>, subject: Subject<'_>) -> Result<T> {
        if let Err(error) = &answer {
            self.events.failed(subject, error);
        }
        answer
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: LockStore> LockStore for Observed<S> {
    fn descriptor(&self) -> Descriptor {
        self.store.descriptor()
    }

    async fn open_session(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        let (session, owner) = (request.session, request.owner.clone());
        let answer = self.store.open_session(request).await;
        if answer.is_ok() {
            self.owners.remember(session, owner);
        }
        self.checked(answer, Subject::of_session(session))
    }

    async fn adopt_session(&self, session: SessionId) -> Result<Option<SessionLease>> {
        let answer = self.store.adopt_session(session).await;
        self.checked(answer, Subject::of_session(session))
    }

    async fn keep_alive(&self, request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        let session = request.session;
        let call = self.begin(Operation::Renew);
        let span = (self.events).span(Operation::Renew, Subject::of_session(session));
        let answer = self.store.keep_alive(request).instrument(span).await;
        call.end(&answer, |kept| match kept {
            Some(kept) if kept.gone.is_empty() => outcome::KEPT,
            Some(_) => outcome::REDUCED,
            None => outcome::GONE,
        });
        match &answer {
            Ok(Some(_)) => {
                let owner = self.owners.of(session);
                self.events.session_renewed(session, owner.as_ref());
            }
            Ok(None) => self.owners.forget(session),
            Err(_) => {}
        }
        self.checked(answer, Subject::of_session(session))
    }

    async fn close_session(&self, session: SessionId) -> Result<()> {
        let answer = self.store.close_session(session).await;
        if answer.is_ok() {
            self.owners.forget(session);
        }
        self.checked(answer, Subject::of_session(session))
    }

    async fn try_insert(&self, request: InsertRequest) -> Result<InsertOutcome> {
        let (key, session) = (request.key.clone(), request.session);
        let subject = Subject::of_both(&key, session);
        let call = self.begin(Operation::Acquire);
        let span = self.events.span(Operation::Acquire, subject);
        let answer = self.store.try_insert(request).instrument(span).await;
        call.end(&answer, |inserted| match inserted {
            InsertOutcome::Ended => outcome::ENDED,
            InsertOutcome::Granted(_) => outcome::GRANTED,
            InsertOutcome::Held(_) => outcome::HELD,
            InsertOutcome::Queued(_) => outcome::QUEUED,
        });
        match &answer {
            Ok(InsertOutcome::Granted(grant)) => {
                let owner = self.owners.of(session);
                self.events.granted(grant, owner.as_ref());
            }
            Ok(InsertOutcome::Queued(_)) => {
                let owner = self.owners.of(session);
                self.events.queued(&key, session, owner.as_ref());
            }
            Ok(InsertOutcome::Ended | InsertOutcome::Held(_)) | Err(_) => {}
        }
        self.checked(answer, subject)
    }

    async fn await_release(&self, request: WaitRequest) -> Result<()> {
        let (key, session) = (request.key.clone(), request.session);
        let subject = Subject::of_both(&key, session);
        let call = self.begin(Operation::Wait);
        let span = self.events.span(Operation::Wait, subject);
        let answer = self.store.await_release(request).instrument(span).await;
        call.end(&answer, |()| outcome::WOKEN);
        self.checked(answer, subject)
    }

    async fn extend(&self, key: &LockKey, token: FencingToken) -> Result<Option<Grant>> {
        let call = self.begin(Operation::Renew);
        let span = self.events.span(Operation::Renew, Subject::of_key(key));
        let answer = self.store.extend(key, token).instrument(span).await;
        call.end(&answer, |grant| match grant {
            Some(_) => outcome::KEPT,
            None => outcome::GONE,
        });
        if let Ok(Some(grant)) = &answer {
            let owner = self.owners.of(grant.session);
            self.events.grant_renewed(grant, owner.as_ref());
        }
        self.checked(answer, Subject::of_key(key))
    }

    async fn delete_if_owner(&self, key: &LockKey, token: FencingToken) -> Result<bool> {
        let call = self.begin(Operation::Release);
        let span = self.events.span(Operation::Release, Subject::of_key(key));
        let answer = self.store.delete_if_owner(key, token);
        let answer = answer.instrument(span).await;
        call.end(&answer, |ended| match ended {
            true => outcome::RELEASED,
            false => outcome::NOT_HELD,
        });
        if let Ok(true) = answer {
            self.events.released(key, token);
        }
        self.checked(answer, Subject::of_key(key))
    }

    async fn abandon(&self, key: &LockKey, session: SessionId, attempt: AttemptId) -> Result<()> {
        let answer = self.store.abandon(key, session, attempt).await;
        self.checked(answer, Subject::of_both(key, session))
    }

    async fn read(&self, key: &LockKey) -> Result<LockInfo> {
        let answer = self.store.read(key).await;
        self.checked(answer, Subject::of_key(key))
    }

    async fn list(&self, prefix: &KeyPrefix, page: PageRequest) -> Result<Page<LockInfo>> {
        let answer = self.store.list(prefix, page).await;
        self.checked(answer, Subject::default())
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<LockOutcome> {
        let (key, target) = (request.key.clone(), request.target);
        let (by, reason) = (request.by.clone(), request.reason.clone());
        let call = self.begin(Operation::Revoke);
        let span = self.events.span(Operation::Revoke, Subject::of_key(&key));
        let answer = self.store.revoke(request).instrument(span).await;
        call.end(&answer, |done| match (done.revoked, target) {
            (true, _) => outcome::REVOKED,
            (false, RevokeTarget::Whoever) => outcome::FLOOR_RAISED,
            (false, RevokeTarget::Grant(_)) => outcome::UNCHANGED,
        });
        if let Ok(done) = &answer
            && (done.revoked || target == RevokeTarget::Whoever)
        {
            self.events.revoked(&key, done, &by, &reason);
        }
        self.checked(answer, Subject::of_key(&key))
    }

    async fn revocations(&self, key: &LockKey, page: PageRequest) -> Result<Page<Revocation>> {
        let answer = self.store.revocations(key, page).await;
        self.checked(answer, Subject::of_key(key))
    }

    async fn reap_expired(&self, limit: u32) -> Result<u32> {
        let answer = self.store.reap_expired(limit).await;
        self.checked(answer, Subject::default())
    }

    fn admin(&self) -> Option<&dyn StoreAdmin> {
        self.store.admin()
    }
}

impl<S: fmt::Debug> fmt::Debug for Observed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.store).finish()
    }
}
