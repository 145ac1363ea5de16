use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_kv::{
    Applied, Consistency, DeleteRequest, DeleteResponse, GetResponse, KeepAliveResponse,
    KeepAliveStream, KvError, KvErrorKind, LeaseGrant, LeaseId, MetadataStore, Op, PutRequest,
    PutResponse, RangeRequest, RangeResponse, TimeToLive, Txn, TxnResponse, WatchRequest,
    WatchStream,
};

use super::Cluster;
use super::members::Touch;
use super::streams;
use crate::bugs::ClusterBug;
use crate::faults::Fault;
use crate::record::Lane;

/// One member, as it serves one client.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(super) cluster: Cluster,
    pub(super) index: usize,
    pub(super) client: Lane,
}

/// What a request needs to be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Needs {
    /// A leader, to read.
    Reading,
    /// A leader and a majority, to write.
    Writing,
}

impl Member {
    pub(crate) const fn new(cluster: Cluster, index: usize, client: Lane) -> Self {
        Self {
            cluster,
            index,
            client,
        }
    }

    fn random_below(&self, limit: u64) -> u64 {
        self.cluster.0.runtime.random_below(limit)
    }

    /// Draws whether something happens that has this chance, per mille.
    pub(super) fn happens(&self, chance: u16) -> bool {
        chance > 0 && self.random_below(1000) + u64::from(chance) >= 1000
    }

    fn met(&self, fault: Fault) {
        self.cluster
            .0
            .chronicle
            .happened(&self.client, fault.name());
    }

    async fn sleep(&self, longest: Duration) {
        if !longest.is_zero() {
            let runtime = &self.cluster.0.runtime;
            runtime.sleep(runtime.jitter(longest)).await;
        }
    }

    /// Waits until the member is in touch with a majority that has a leader.
    ///
    /// A member that has noticed that it is not refuses; what it took before that may be done later,
    /// or never.
    async fn in_touch(&self, needs: Needs) -> Result<(), KvError> {
        let slowness = self.cluster.conditions().slowness;
        self.sleep(slowness).await;
        // Nearly always it is, and a subscription costs more than a look.
        if let Touch::Full = self.cluster.members().touch(self.index) {
            return Ok(());
        }
        let mut changes = self.cluster.0.changes.subscribe();
        let mut waited = false;
        loop {
            changes.mark_unchanged();
            let touch = self.cluster.members().touch(self.index);
            let notices_at = match touch {
                Touch::Full if waited && needs == Needs::Writing => return self.taken_before(),
                Touch::Full => return Ok(()),
                Touch::Stopped => return Err(gone(waited)),
                Touch::Lost { notices_at } => notices_at,
            };
            let now = self.cluster.now();
            if notices_at.is_some_and(|at| at <= now) {
                return Err(no_leader(waited));
            }
            waited = true;
            let notice = async {
                match notices_at {
                    Some(at) => self.cluster.0.runtime.sleep(at.saturating_sub(now)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Err(gone(waited));
                    }
                }
                () = notice => {}
            }
        }
    }

    /// What became of a request that was taken when there was no majority.
    fn taken_before(&self) -> Result<(), KvError> {
        match self.random_below(3) {
            0 => Ok(()),
            _ => {
                let (kind, applied) = (KvErrorKind::Unavailable, Applied::Unknown);
                Err(KvError::new(kind, applied, "leader changed"))
            }
        }
    }

    async fn on_behalf<T>(&self, work: impl Future<Output = T>) -> T {
        let chronicle = &self.cluster.0.chronicle;
        chronicle.on_behalf(&self.client, work).await
    }

    /// Serves a request that writes; `grows` if a full store does not take it.
    async fn write<T>(
        &self,
        grows: bool,
        work: impl Future<Output = Result<T, KvError>>,
    ) -> Result<T, KvError> {
        self.in_touch(Needs::Writing).await?;
        let (full, done, errors) = {
            let conditions = self.cluster.conditions();
            let done = conditions.refused_but_done;
            (conditions.full, done, conditions.errors_after_commit)
        };
        if full && grows {
            if self.happens(done) {
                drop(self.on_behalf(work).await);
            }
            return Err(no_space());
        }
        let answer = self.on_behalf(work).await;
        if answer.is_ok() && self.happens(errors) {
            self.met(Fault::ErrorAfterCommit);
            let (kind, applied) = (KvErrorKind::Unavailable, Applied::Unknown);
            return Err(KvError::new(kind, applied, "request timed out"));
        }
        answer
    }

    /// The revision that a read sees instead of the present, if it does.
    async fn seen(&self, consistency: Consistency) -> Result<Option<i64>, KvError> {
        if let Consistency::Serializable = consistency {
            let members = self.cluster.members();
            if let Touch::Stopped = members.touch(self.index) {
                return Err(gone(false));
            }
            return Ok(members
                .frozen(self.index)
                .map(|frozen| frozen.header.revision));
        }
        self.in_touch(Needs::Reading).await?;
        let now = self.cluster.now();
        let stale = self.cluster.members().stale(self.index, now);
        Ok(stale.filter(|_| self.cluster.0.bug == Some(ClusterBug::ReadsThePast)))
    }

    /// Renews a lease, or does as if.
    async fn renew(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        let now = self.cluster.now();
        let deposed = {
            let members = self.cluster.members();
            let frozen = members.frozen(self.index);
            let frozen = frozen.filter(|frozen| frozen.led && now < frozen.answers_until);
            frozen.map(|frozen| (frozen.header, frozen.leases.get(&id).map(|(ttl, _)| *ttl)))
        };
        if let Some((header, Some(ttl))) = deposed {
            self.met(Fault::DeposedLeaderRenews);
            return Ok(KeepAliveResponse { header, id, ttl });
        }
        self.in_touch(Needs::Reading).await?;
        if self
            .cluster
            .members()
            .is_misled(self.index, self.cluster.now())
        {
            self.met(Fault::RenewalToADeadLeader);
            return std::future::pending().await;
        }
        let (zero, late, lateness) = {
            let conditions = self.cluster.conditions();
            let lateness = conditions.longest_lateness;
            (conditions.zero_ttls, conditions.late_renewals, lateness)
        };
        if self.happens(late) {
            self.met(Fault::LateRenewal);
            self.sleep(lateness).await;
        }
        let store = &self.cluster.0.store;
        let answer = self.on_behalf(store.lease_keep_alive_once(id)).await?;
        if self.happens(zero) {
            self.met(Fault::ZeroTtl);
            return Ok(KeepAliveResponse { ttl: 0, ..answer });
        }
        if answer.ttl == 0 && self.cluster.0.bug == Some(ClusterBug::RenewsRevokedLeases) {
            return Ok(KeepAliveResponse { ttl: 5, ..answer });
        }
        Ok(answer)
    }
}

fn gone(waited: bool) -> KvError {
    let applied = if waited {
        Applied::Unknown
    } else {
        Applied::No
    };
    KvError::new(KvErrorKind::Unavailable, applied, "connection refused")
}

fn no_leader(waited: bool) -> KvError {
    let applied = if waited {
        Applied::Unknown
    } else {
        Applied::No
    };
    KvError::new(KvErrorKind::NoLeader, applied, "no leader")
}

fn no_space() -> KvError {
    let applied = Applied::Unknown;
    KvError::new(KvErrorKind::NoSpace, applied, "database space exceeded")
}

fn puts(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::Put(_)))
}

/// With the bug that writes under leases that have ended: the same, under none.
fn unbound(txn: &Txn) -> Txn {
    let unbind = |ops: &[Op]| {
        let ops = ops.iter().map(|op| match op {
            Op::Put(put) => Op::Put(PutRequest {
                lease: etcd_kv::Lease::Detached,
                ..put.clone()
            }),
            other => other.clone(),
        });
        ops.collect()
    };
    Txn {
        when: txn.when.clone(),
        then: unbind(&txn.then),
        otherwise: unbind(&txn.otherwise),
    }
}

#[async_trait]
impl MetadataStore for Member {
    async fn get(&self, key: Bytes, consistency: Consistency) -> Result<GetResponse, KvError> {
        let request = RangeRequest {
            consistency,
            ..RangeRequest::key(key)
        };
        let RangeResponse {
            header, mut kvs, ..
        } = self.range(request).await?;
        let kv = kvs.pop();
        Ok(GetResponse { header, kv })
    }

    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, KvError> {
        let seen = self.seen(request.consistency).await?;
        let store = &self.cluster.0.store;
        let Some(revision) = seen.filter(|_| request.revision.is_none()) else {
            return self.on_behalf(store.range(request)).await;
        };
        let past = RangeRequest {
            revision: Some(revision),
            ..request
        };
        let mut answer = self.on_behalf(store.range(past)).await?;
        answer.header.revision = revision;
        Ok(answer)
    }

    async fn put(&self, request: PutRequest) -> Result<PutResponse, KvError> {
        self.write(true, self.cluster.0.store.put(request)).await
    }

    async fn delete(&self, request: DeleteRequest) -> Result<DeleteResponse, KvError> {
        self.write(false, self.cluster.0.store.delete(request))
            .await
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, KvError> {
        let grows = puts(&txn.then) || puts(&txn.otherwise);
        let store = &self.cluster.0.store;
        let careless = self.cluster.0.bug == Some(ClusterBug::GrantsUnderEndedLeases);
        self.write(grows, async {
            if !careless {
                return store.txn(txn).await;
            }
            match store.txn(txn.clone()).await {
                Err(error) if error.kind() == KvErrorKind::LeaseNotFound => {
                    store.txn(unbound(&txn)).await
                }
                answer => answer,
            }
        })
        .await
    }

    async fn lease_grant(&self, id: LeaseId, ttl: i64) -> Result<LeaseGrant, KvError> {
        let taken = self.cluster.conditions().taken_leases;
        if self.happens(taken) {
            self.met(Fault::LeaseIdTaken);
            let kind = KvErrorKind::LeaseExists;
            return Err(KvError::new(kind, Applied::No, "lease already exists"));
        }
        self.write(true, self.cluster.0.store.lease_grant(id, ttl))
            .await
    }

    async fn lease_keep_alive_once(&self, id: LeaseId) -> Result<KeepAliveResponse, KvError> {
        self.renew(id).await
    }

    /// Renewals of a stream are calls of their own: the network makes them.
    async fn lease_keep_alive(
        &self,
        id: LeaseId,
        period: Duration,
    ) -> Result<KeepAliveStream, KvError> {
        self.in_touch(Needs::Reading).await?;
        self.cluster.0.store.lease_keep_alive(id, period).await
    }

    async fn lease_time_to_live(&self, id: LeaseId) -> Result<TimeToLive, KvError> {
        self.in_touch(Needs::Reading).await?;
        let store = &self.cluster.0.store;
        self.on_behalf(store.lease_time_to_live(id)).await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.write(false, self.cluster.0.store.lease_revoke(id))
            .await
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchStream, KvError> {
        if let Touch::Stopped = self.cluster.members().touch(self.index) {
            return Err(gone(false));
        }
        let stream = self.cluster.0.store.watch(request).await?;
        Ok(streams::served(self.clone(), stream))
    }

    async fn compact(&self, revision: i64) -> Result<(), KvError> {
        self.write(false, self.cluster.0.store.compact(revision))
            .await
    }
}
