//! Makes the calls of a history on a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::{
    AttemptId, FencingToken, GoneReason, GrantRef, InsertOutcome, InsertRequest, KeepAliveRequest,
    KeptAlive, KeyPrefix, LockKey, LockStore, OpenSessionRequest, Owner, PageRequest, Payload,
    Place, Reason, Result, RevocationId, RevokeRequest, RevokeTarget, Runtime, SessionId, Ttl,
    WaitRequest,
};

use super::answer::Answer;
use super::call::{Call, Lists, NODES, Target, Wish, elsewhere, is_brief, node_of};
use crate::fixture::Deployment;

/// The ttl of sessions that last.
const LASTING: Duration = Duration::from_secs(600);
/// Within this time a waiter that has reason to try again is woken.
const WOKEN: Duration = Duration::from_secs(10);

/// The clients of a history.
pub(super) struct Performer {
    deployment: Arc<dyn Deployment>,
    pub(super) runtime: Arc<dyn Runtime>,
    stores: Vec<Arc<dyn LockStore>>,
    sessions: BTreeMap<u8, SessionId>,
    attempts: BTreeMap<Wish, AttemptId>,
    revocations: BTreeMap<(u8, u8), RevocationId>,
    /// What the clients were told.
    tokens: BTreeMap<Wish, FencingToken>,
    places: BTreeMap<Wish, Place>,
}

impl Performer {
    pub(super) async fn new(deployment: Arc<dyn Deployment>) -> Self {
        let mut stores = Vec::new();
        for _ in 0..NODES {
            stores.push(deployment.connect().await.store);
        }
        Self {
            runtime: deployment.runtime(),
            deployment,
            stores,
            sessions: BTreeMap::new(),
            attempts: BTreeMap::new(),
            revocations: BTreeMap::new(),
            tokens: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    pub(super) fn store(&self, node: u8) -> &Arc<dyn LockStore> {
        &self.stores[usize::from(node % NODES)]
    }

    /// The id of a session, drawn when it is first spoken of.
    pub(super) fn session(&mut self, session: u8) -> SessionId {
        let runtime = &self.runtime;
        let known = self.sessions.entry(session);
        *known.or_insert_with(|| SessionId::random(&**runtime))
    }

    fn attempt(&mut self, wish: Wish) -> AttemptId {
        let runtime = &self.runtime;
        let known = self.attempts.entry(wish);
        *known.or_insert_with(|| AttemptId::random(&**runtime))
    }

    fn revocation(&mut self, key: u8, number: u8) -> RevocationId {
        let runtime = &self.runtime;
        let known = self.revocations.entry((key, number));
        *known.or_insert_with(|| RevocationId::random(&**runtime))
    }

    /// What the store answers.
    pub(super) async fn perform(&mut self, call: Call) -> Answer {
        let answer = match call {
            Call::Open(session) => self.open(session, node_of(session)).await,
            Call::OpenElsewhere(session) => self.open(session, elsewhere(session)).await,
            Call::Keep(session, lists) => self.keep(session, lists).await,
            Call::Close(session) => {
                let id = self.session(session);
                let closed = self.store(node_of(session)).close_session(id).await;
                closed.map(|()| Answer::Done)
            }
            Call::Kill(session) => {
                let id = self.session(session);
                self.deployment.end_session(id).await;
                Ok(Answer::Done)
            }
            Call::Insert(wish, queue) => self.insert(wish, queue).await,
            Call::Wait(wish) => self.wait(wish).await,
            Call::Extend(wish) => self.extend(wish).await,
            Call::Release(wish, node) => self.release(wish, node).await,
            Call::Abandon(wish) => {
                let (id, attempt) = (self.session(wish.session), self.attempt(wish));
                let store = self.store(wish.node());
                let abandoned = store.abandon(&key(wish.key), id, attempt).await;
                abandoned.map(|()| Answer::Done)
            }
            Call::Revoke(of, number, target) => self.revoke(of, number, target).await,
            Call::Read(of, node) => self.read(of, node).await,
            Call::List(limit, node) => self.list(limit, node).await,
            Call::Records(of, node) => self.records(of, node).await,
            Call::Reap(node) => self.store(node).reap_expired(100).await.map(Answer::Reaped),
            Call::Pass(millis) => {
                self.runtime
                    .sleep(Duration::from_millis(millis.into()))
                    .await;
                Ok(Answer::Done)
            }
        };
        answer.unwrap_or_else(|error| Answer::Refused(error.kind(), error.effect()))
    }

    async fn open(&mut self, session: u8, node: u8) -> Result<Answer> {
        let least = self.store(node).descriptor().capabilities.min_ttl;
        let ttl = match is_brief(session) {
            true => least,
            false => Ttl::new(LASTING)?,
        };
        let request = OpenSessionRequest {
            session: self.session(session),
            owner: Owner::new(owner(session))?,
            ttl,
        };
        let lease = self.store(node).open_session(request).await?;
        Ok(Answer::Open {
            ttl: lease.ttl.as_duration(),
            remaining: lease.remaining,
        })
    }

    async fn keep(&mut self, session: u8, lists: Lists) -> Result<Answer> {
        let of_session = |wish: &&Wish| wish.session == session;
        let (grants, attempts) = match lists {
            Lists::Everything => (true, true),
            Lists::Grants => (true, false),
            Lists::Attempts => (false, true),
            Lists::Nothing => (false, false),
        };
        let told = self.tokens.keys().filter(of_session).filter(|_| grants);
        let told: BTreeMap<_, _> = told.map(|wish| (self.grant(*wish), *wish)).collect();
        let asked = self.attempts.keys().filter(of_session).filter(|_| attempts);
        let request = KeepAliveRequest {
            grants: told.keys().filter_map(Clone::clone).collect(),
            attempts: asked.map(|wish| self.attempts[wish]).collect(),
            session: self.session(session),
        };
        let kept = self.store(node_of(session)).keep_alive(request).await?;
        let Some(KeptAlive {
            remaining,
            gone,
            late,
        }) = kept
        else {
            return Ok(Answer::Gone);
        };
        let named = |key, token| told.get(&Some(GrantRef { key, token })).copied();
        let late = late
            .into_iter()
            .filter_map(|(late, _)| named(late.key, late.token));
        let gone = gone.into_iter().filter_map(|gone| {
            let revoked = matches!(gone.why, GoneReason::Revoked { .. });
            Some((named(gone.key, gone.token)?, revoked))
        });
        Ok(Answer::Kept {
            remaining,
            gone: gone.collect(),
            late: late.collect(),
        })
    }

    fn grant(&self, wish: Wish) -> Option<GrantRef> {
        Some(GrantRef {
            key: key(wish.key),
            token: *self.tokens.get(&wish)?,
        })
    }

    async fn insert(&mut self, wish: Wish, queue: lock_spi::Queue) -> Result<Answer> {
        let request = InsertRequest {
            key: key(wish.key),
            session: self.session(wish.session),
            attempt: self.attempt(wish),
            payload: Payload::default(),
            queue,
        };
        let outcome = self.store(wish.node()).try_insert(request).await?;
        Ok(match outcome {
            InsertOutcome::Ended => Answer::Ended,
            InsertOutcome::Granted(grant) => {
                self.tokens.insert(wish, grant.token);
                Answer::Granted {
                    token: grant.token,
                    remaining: grant.remaining,
                }
            }
            InsertOutcome::Held(holder) => Answer::Held(holder.map(Into::into)),
            InsertOutcome::Queued(place) => {
                self.places.insert(wish, place.clone());
                Answer::Queued {
                    position: place.position,
                    ahead: place.ahead,
                }
            }
        })
    }

    async fn wait(&mut self, wish: Wish) -> Result<Answer> {
        let request = WaitRequest {
            key: key(wish.key),
            session: self.session(wish.session),
            attempt: self.attempt(wish),
            place: self.places.get(&wish).cloned(),
        };
        let wait = self.store(wish.node()).await_release(request);
        match self.runtime.timeout(WOKEN, wait).await {
            Ok(woken) => woken.map(|()| Answer::Done),
            Err(_) => Ok(Answer::Gone),
        }
    }

    async fn extend(&mut self, wish: Wish) -> Result<Answer> {
        let Some(GrantRef { key, token }) = self.grant(wish) else {
            return Ok(Answer::Gone);
        };
        let grant = self.store(wish.node()).extend(&key, token).await?;
        Ok(grant.map_or(Answer::Gone, |grant| Answer::Granted {
            token: grant.token,
            remaining: grant.remaining,
        }))
    }

    async fn release(&mut self, wish: Wish, node: u8) -> Result<Answer> {
        let Some(GrantRef { key, token }) = self.grant(wish) else {
            return Ok(Answer::Released(false));
        };
        let released = self.store(node).delete_if_owner(&key, token).await?;
        Ok(Answer::Released(released))
    }

    async fn revoke(&mut self, of: u8, number: u8, target: Target) -> Result<Answer> {
        let target = match target {
            Target::Whoever => RevokeTarget::Whoever,
            Target::Grant(wish) => match self.grant(wish) {
                Some(grant) => RevokeTarget::Grant(grant.token),
                None => return Ok(Answer::Done),
            },
        };
        let request = RevokeRequest {
            key: key(of),
            target,
            id: self.revocation(of, number),
            by: Owner::new("operator")?,
            reason: Reason::new("a history")?,
        };
        let outcome = self.store(number).revoke(request).await?;
        Ok(Answer::Revoked(outcome))
    }

    async fn read(&self, of: u8, node: u8) -> Result<Answer> {
        let info = self.store(node).read(&key(of)).await?;
        Ok(Answer::Info {
            floor: info.floor,
            waiting: info.waiter_count,
            holder: info.holder.map(Into::into),
        })
    }

    async fn list(&self, limit: u32, node: u8) -> Result<Answer> {
        let mut page = PageRequest { after: None, limit };
        let mut listed = Vec::new();
        loop {
            let answer = self
                .store(node)
                .list(&KeyPrefix::default(), page.clone())
                .await?;
            listed.extend(answer.entries.into_iter().map(|info| {
                let number = number_of(&info.key);
                (number, info.holder.map(Into::into))
            }));
            match answer.next {
                Some(next) => page.after = Some(next),
                None => return Ok(Answer::Listed(listed)),
            }
        }
    }

    async fn records(&self, of: u8, node: u8) -> Result<Answer> {
        let page = PageRequest::default();
        let answer = self.store(node).revocations(&key(of), page).await?;
        let number = |id| {
            let known = self.revocations.iter().find(|(_, known)| **known == id);
            known.map_or(u8::MAX, |((_, number), _)| *number)
        };
        let records = answer.entries.into_iter();
        let records = records.map(|record| (number(record.id), record.outcome));
        Ok(Answer::Records(records.collect()))
    }
}

/// The label of a session's owner.
pub(super) fn owner(session: u8) -> String {
    format!("owner {session}")
}

fn key(number: u8) -> LockKey {
    let text = format!("key/{number}");
    // Invariant: short and without control characters.
    LockKey::new(text).expect("a key")
}

fn number_of(key: &LockKey) -> u8 {
    let number = key.as_str().rsplit('/').next().map(str::parse);
    number.and_then(std::result::Result::ok).unwrap_or(u8::MAX)
}
