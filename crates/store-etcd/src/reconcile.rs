//! Comparing what a session's lease holds with what is accounted for, at every renewal.
//!
//! What is surplus is ended: the grant of an acquire that was given up, or a copy of a request that
//! somebody on the way made. What is missing is told.

use std::collections::{BTreeMap, BTreeSet};

use etcd_kv::{KeyValue, MetadataStore, RangeRequest};
use lock_spi::{
    AttemptId, ErrorKind, FencingToken, Gone, GoneReason, GrantRef, KeepAliveRequest, KeyPrefix,
    LockKey, Result,
};

use crate::codec::{LockEntry, Name, RevocationValue, Value, revision};
use crate::core::{Core, covers};
use crate::error::not_now;
use crate::ops::{Abandon, AbandonForm, Verify, lease};
use crate::session::Session;

/// So many locks are read in one transaction.
const LOCKS_AT_ONCE: usize = 64;

pub(crate) struct Reconciliation<'a, M> {
    core: &'a Core<M>,
    session: &'a Session,
    grants: &'a [GrantRef],
    tokens: BTreeSet<FencingToken>,
    /// The attempts that the caller accounts for.
    listed: BTreeSet<AttemptId>,
    /// Attempts at work since then are accounted for as well.
    since: u64,
}

impl<'a, M: MetadataStore> Reconciliation<'a, M> {
    pub(crate) fn new(
        core: &'a Core<M>,
        session: &'a Session,
        request: &'a KeepAliveRequest,
        since: u64,
    ) -> Self {
        Self {
            core,
            session,
            grants: &request.grants,
            tokens: request.grants.iter().map(|grant| grant.token).collect(),
            listed: request.attempts.iter().copied().collect(),
            since,
        }
    }

    /// Ends what is surplus and answers with the grants that are missing.
    pub(crate) async fn run(&self) -> Result<Vec<Gone>> {
        let mut held_locks = BTreeSet::new();
        for name in self.held().await? {
            match name {
                Name::Lock(key) => drop(held_locks.insert(key)),
                Name::Ticket(key, attempt) => self.judge_ticket(&key, attempt).await,
                _ => {}
            }
        }
        let locks = self.read(self.doubtful(&held_locks)).await?;
        for (key, lock) in &locks {
            self.judge_lock(key, lock.as_ref()).await;
        }
        let mut gone = Vec::new();
        for grant in self.grants {
            let Some(lock) = locks.get(&grant.key) else {
                continue;
            };
            if !self.is_that(lock.as_ref(), grant.token) {
                gone.push(self.gone(grant).await?);
            }
        }
        let (listed, since) = (&self.listed, self.since);
        self.session
            .with_attempts(|attempts| attempts.forget_idle(listed, since));
        Ok(gone)
    }

    /// What the session's lease holds, as far as it is ours.
    async fn held(&self) -> Result<Vec<Name>> {
        match self.told_of_lease().await {
            // A lease is told with all of its keys at once, and a message can carry so many only.
            Err(error) if error.kind() == ErrorKind::Protocol => self.found_under_lease().await,
            told => told,
        }
    }

    async fn told_of_lease(&self) -> Result<Vec<Name>> {
        let (core, limit) = (self.core, self.session.limit);
        let before = core.seen();
        let asked = core.kv.lease_time_to_live(lease(self.session.id));
        let lease = core.call(limit, asked).await?;
        core.admit(limit, before, lease.header).await?;
        if lease.ttl < 0 {
            return Err(not_now("the lease of a session that stands is not known"));
        }
        let names = lease.keys.iter().filter_map(|key| core.keys.name(key));
        Ok(names.collect())
    }

    /// The same, out of all locks and places of the namespace.
    async fn found_under_lease(&self) -> Result<Vec<Name>> {
        let core = self.core;
        let mut names = Vec::new();
        for family in [core.keys.locks(&KeyPrefix::default()), core.keys.queues()] {
            let all = RangeRequest {
                keys_only: true,
                ..RangeRequest::prefix(family)
            };
            let all = core.range(self.session.limit, all).await?.kvs.into_iter();
            let own = all.filter(|kv| kv.lease == Some(lease(self.session.id)));
            names.extend(own.filter_map(|kv| core.keys.name(&kv.key)));
        }
        Ok(names)
    }

    /// The keys whose lock has to be read: those that the lease holds without a clear account, and
    /// those of grants that it does not clearly hold.
    fn doubtful(&self, held: &BTreeSet<LockKey>) -> BTreeSet<LockKey> {
        let (known, crowded) = self
            .session
            .with_attempts(|attempts| (attempts.grants_by_key(), attempts.crowded_keys()));
        let clear: BTreeMap<_, _> = known
            .into_iter()
            .filter(|(key, (token, attempt))| {
                let accounted = self.tokens.contains(token) || self.accounts_for(*attempt);
                accounted && held.contains(key) && !crowded.contains(key)
            })
            .map(|(key, (token, _))| (key, token))
            .collect();
        let unclear = held.iter().filter(|key| !clear.contains_key(*key));
        let missing = self.grants.iter().filter_map(|grant| {
            let stands = clear.get(&grant.key) == Some(&grant.token);
            (!stands).then_some(&grant.key)
        });
        unclear.chain(missing).cloned().collect()
    }

    /// Reads locks linearizably.
    async fn read(&self, keys: BTreeSet<LockKey>) -> Result<BTreeMap<LockKey, Option<KeyValue>>> {
        let (core, limit) = (self.core, self.session.limit);
        let keys: Vec<_> = keys.into_iter().collect();
        let mut found = BTreeMap::new();
        for locks in keys.chunks(LOCKS_AT_ONCE) {
            let verify = Verify {
                keys: &core.keys,
                session: self.session.id,
                locks,
            };
            let answer = core.execute(limit, &verify).await?;
            core.admit(limit, answer.before, answer.header).await?;
            let asked = self
                .grants
                .iter()
                .filter(|grant| locks.contains(&grant.key));
            let newest = asked
                .map(|grant| grant.token)
                .filter(|token| self.is_of_this_term(*token));
            if let Some(newest) = newest.max() {
                covers(answer.header, newest)?;
            }
            found.extend(locks.iter().cloned().zip(answer.reply.locks));
        }
        Ok(found)
    }

    fn accounts_for(&self, attempt: AttemptId) -> bool {
        self.session
            .with_attempts(|attempts| attempts.is_known(attempt, &self.listed, self.since))
    }

    fn is_of_this_term(&self, token: FencingToken) -> bool {
        token.term() == self.core.meta().value.term
    }

    fn is_that(&self, lock: Option<&KeyValue>, token: FencingToken) -> bool {
        let named = lock.is_some_and(|kv| kv.mod_revision == revision(token));
        named && self.is_of_this_term(token)
    }

    /// A ticket is surplus when nobody accounts for its attempt, or the attempt was granted.
    async fn judge_ticket(&self, key: &LockKey, attempt: AttemptId) {
        let (core, session) = (self.core, self.session);
        let accounted = self.accounts_for(attempt);
        if accounted && session.facts(attempt).grant.is_none() {
            return;
        }
        if !accounted {
            core.sessions.end(session, attempt);
        }
        let drop_ticket = Abandon {
            wish: core.wish(key, session.id, attempt),
            form: AbandonForm::Answered,
        };
        if let Err(error) = core.execute(session.limit, &drop_ticket).await {
            tracing::debug!(%error, "a surplus place stands until the next renewal");
        }
    }

    /// A lock of this session is surplus when neither its token nor its attempt is accounted for.
    async fn judge_lock(&self, key: &LockKey, lock: Option<&KeyValue>) {
        let (core, session) = (self.core, self.session);
        let Some(Ok(entry)) = lock.map(LockEntry::read) else {
            return;
        };
        let own = entry.value.session == session.id && entry.leased;
        let attempt = entry.value.attempt;
        if !own || self.tokens.contains(&entry.token) || self.accounts_for(attempt) {
            return;
        }
        core.sessions.end(session, attempt);
        let ended = core.end_grant(session.limit, key, entry.token, session.id);
        if let Err(error) = ended.await {
            tracing::debug!(%error, "a surplus grant stands until the next renewal");
        }
    }

    /// A grant is gone for good; says how it ended.
    async fn gone(&self, grant: &GrantRef) -> Result<Gone> {
        let (core, session) = (self.core, self.session);
        if let Some(granted) = session.grant(grant.token) {
            core.sessions.end(session, granted.attempt);
        }
        let records = RangeRequest::prefix(core.keys.revocations(&grant.key));
        let records = core.range(session.limit, records).await?.kvs;
        let records = records
            .iter()
            .filter_map(|kv| RevocationValue::decode(&kv.value).ok());
        let of_this = |record: &RevocationValue| record.previous_token == Some(grant.token);
        let why = records.into_iter().find(of_this).map_or(
            GoneReason::Ended,
            |RevocationValue { by, reason, .. }| GoneReason::Revoked { by, reason },
        );
        Ok(Gone {
            key: grant.key.clone(),
            token: grant.token,
            why,
        })
    }
}
