//! Operations sent to a server in memory.

use std::time::Duration;

use etcd_kv::MetadataStore;
use etcd_mock::MockStore;
use lock_spi::{
    AttemptId, FencingToken, LockKey, Namespace, Owner, Payload, Reason, SessionId, Ttl,
};

use super::super::*;
use crate::codec::{
    KeySpace, LockValue, MetaValue, RevocationValue, SessionValue, TicketValue, token,
};
use crate::meta::Meta;

/// A namespace with one session, and values to write.
pub(super) struct Bench {
    pub(super) server: MockStore,
    pub(super) keys: KeySpace,
    pub(super) key: LockKey,
    pub(super) session: SessionId,
    pub(super) meta: i64,
    pub(super) epoch: i64,
}

impl Bench {
    pub(super) async fn new() -> Self {
        let bench = Self {
            server: MockStore::new(),
            keys: KeySpace::new(&Namespace::default()),
            key: LockKey::new("k").unwrap(),
            session: SessionId::new(7).unwrap(),
            meta: 2,
            epoch: 3,
        };
        let created = bench
            .send(&WriteMeta {
                keys: &bench.keys,
                expected: 0,
                value: &meta_value(),
            })
            .await;
        assert_eq!(created.unwrap().mod_revision, bench.meta);
        let id = lease(bench.session);
        bench.server.lease_grant(id, 10).await.unwrap();
        let opened = bench.open(1).await;
        assert_eq!(opened, OpenReply::Opened { epoch: bench.epoch });
        bench
    }

    pub(super) async fn send<O: Operation>(&self, operation: &O) -> O::Reply {
        let answer = self.server.txn(operation.txn()).await.unwrap();
        operation.read_reply(answer).unwrap()
    }

    pub(super) fn wish(&self, attempt: AttemptId) -> Wish<'_> {
        Wish {
            keys: &self.keys,
            key: &self.key,
            session: self.session,
            attempt,
        }
    }

    pub(super) async fn open(&self, instance: u128) -> OpenReply {
        let value = SessionValue {
            owner: Owner::default(),
            ttl: Ttl::DEFAULT,
            opened_at: Duration::ZERO,
            instance,
        };
        let open = Open {
            keys: &self.keys,
            session: self.session,
            meta: self.meta,
            value: &value,
        };
        self.send(&open).await
    }

    pub(super) async fn grant(&self, attempt: AttemptId) -> Claim {
        let grant = Grant {
            wish: self.wish(attempt),
            epoch: self.epoch,
            meta: self.meta,
            value: &lock_value(attempt),
        };
        self.send(&grant).await
    }

    pub(super) async fn enqueue(&self, attempt: AttemptId) -> EnqueueReply {
        let value = TicketValue {
            owner: Owner::default(),
            session: self.session,
            queued_at: Duration::ZERO,
        };
        let enqueue = Enqueue {
            wish: self.wish(attempt),
            epoch: self.epoch,
            meta: self.meta,
            value: &value,
        };
        self.send(&enqueue).await
    }

    pub(super) async fn take(&self, attempt: AttemptId, place: i64, skip: &[Ticket]) -> Claim {
        let take = Take {
            wish: self.wish(attempt),
            meta: self.meta,
            place,
            skip,
            value: &lock_value(attempt),
        };
        self.send(&take).await
    }

    pub(super) async fn delete(&self, revision: i64) -> DeleteReply {
        let delete = Delete {
            keys: &self.keys,
            key: &self.key,
            token: token(0, revision).unwrap(),
            session: self.session,
            meta: self.meta,
        };
        self.send(&delete).await
    }

    pub(super) async fn look(&self, attempt: AttemptId) -> Queued {
        let wish = self.wish(attempt);
        self.send(&Look {
            wish,
            part: Part::All,
        })
        .await
    }
}

pub(super) fn meta_value() -> MetaValue {
    Meta::first(1)
}

pub(super) fn lock_value(attempt: AttemptId) -> LockValue {
    LockValue {
        owner: Owner::default(),
        session: SessionId::new(7).unwrap(),
        attempt,
        term: 0,
        payload: Payload::default(),
        granted_at: Duration::ZERO,
    }
}

pub(super) fn record() -> RevocationValue {
    RevocationValue {
        by: Owner::default(),
        reason: Reason::default(),
        at: Duration::ZERO,
        revoked: true,
        previous_token: None,
        previous_owner: None,
        new_floor: FencingToken::new(50).unwrap(),
    }
}
