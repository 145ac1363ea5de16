//! etcd's rules once more, written for nothing but being plain: a copy of all keys for every
//! revision, time that passes tick by tick, and a search through everything for every question.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use etcd_kv::{
    Compare, DeleteResponse, Header, KeepAliveResponse, KeyRange, KeyValue, KvErrorKind, Lease,
    LeaseGrant, LeaseId, Op, OpResponse, PutResponse, RangeRequest, RangeResponse, Target,
    TimeToLive, Txn, TxnResponse,
};

use crate::rules::{
    Changes, INVALID, Keys, check_range, clashes, compares, delete, put, read, within,
};
use crate::steps::{Answer, Step};
use crate::watches::WatchState;

pub(crate) struct Naive {
    /// Cluster, member and term of every header.
    pub(crate) identity: Header,
    now: u64,
    pub(crate) compacted: i64,
    /// By revision; nothing was ever at 0.
    snapshots: Vec<Keys>,
    /// By revision.
    pub(crate) changed: Vec<Changes>,
    leases: BTreeMap<LeaseId, LeaseState>,
    pub(crate) watches: Vec<Option<WatchState>>,
    keep_alives: Vec<Option<KeepAliveState>>,
}

struct LeaseState {
    ttl: i64,
    deadline: u64,
}

struct KeepAliveState {
    lease: LeaseId,
    period: u64,
    due: u64,
    answers: VecDeque<KeepAliveResponse>,
}

impl Naive {
    pub(crate) fn new(identity: Header) -> Self {
        Self {
            identity,
            now: 0,
            compacted: -1,
            snapshots: vec![Keys::new(), Keys::new()],
            changed: vec![Vec::new(), Vec::new()],
            leases: BTreeMap::new(),
            watches: Vec::new(),
            keep_alives: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self, step: &Step) -> Answer {
        self.answer(step).unwrap_or_else(Answer::Refused)
    }

    fn answer(&mut self, step: &Step) -> Result<Answer, KvErrorKind> {
        Ok(match step {
            Step::Advance { ticks } => {
                (0..*ticks).for_each(|_| self.tick());
                Answer::Done
            }
            Step::CloseKeepAlive(at) => {
                if let Some(stream) = self.keep_alives.get_mut(*at) {
                    *stream = None;
                }
                Answer::Done
            }
            Step::CloseWatch(at) => {
                if let Some(watch) = self.watches.get_mut(*at) {
                    *watch = None;
                }
                Answer::Done
            }
            Step::Compact(revision) => {
                self.compact(*revision)?;
                Answer::Done
            }
            Step::Delete(request) => {
                let response = self.txn(&Txn::default().then([request.clone().into()]))?;
                let header = response.header;
                match response.responses.into_iter().next() {
                    Some(OpResponse::Delete(response)) => {
                        Answer::Deleted(DeleteResponse { header, ..response })
                    }
                    other => panic!("{other:?}"),
                }
            }
            Step::KeepAlive { id, period } => {
                let mut stream = KeepAliveState {
                    lease: *id,
                    period: *period,
                    due: self.now + period,
                    answers: VecDeque::new(),
                };
                stream.answers.push_back(self.renew(*id));
                self.keep_alives.push(Some(stream));
                Answer::Done
            }
            Step::LeaseGrant { id, ttl } => {
                if self.leases.contains_key(id) {
                    return Err(KvErrorKind::LeaseExists);
                }
                let ttl = if *ttl < 1 { 1 } else { *ttl };
                let deadline = self.now + seconds(ttl);
                self.leases.insert(*id, LeaseState { ttl, deadline });
                let header = self.header();
                Answer::Granted(LeaseGrant {
                    header,
                    id: *id,
                    ttl,
                })
            }
            Step::LeaseKeepAliveOnce(id) => Answer::KeptAlive(vec![self.renew(*id)]),
            Step::LeaseRevoke(id) => {
                if !self.leases.contains_key(id) {
                    return Err(KvErrorKind::LeaseNotFound);
                }
                self.end_lease(*id);
                Answer::Done
            }
            Step::LeaseTimeToLive(id) => Answer::Left(self.time_to_live(*id)),
            Step::Put(request) => {
                let response = self.txn(&Txn::default().then([request.clone().into()]))?;
                let header = response.header;
                match response.responses.into_iter().next() {
                    Some(OpResponse::Put(response)) => {
                        Answer::Put(PutResponse { header, ..response })
                    }
                    other => panic!("{other:?}"),
                }
            }
            Step::Range(request) => {
                check_range(&request.range)?;
                self.check_revision(request)?;
                let header = self.header();
                let response = read(request, self.seen_by(request, self.present()));
                Answer::Ranged(RangeResponse { header, ..response })
            }
            Step::ReadKeepAlive(at) => match self.keep_alives.get_mut(*at) {
                Some(Some(stream)) => Answer::KeptAlive(stream.answers.drain(..).collect()),
                Some(None) | None => Answer::Done,
            },
            Step::ReadWatch(at) => self.read_watch(*at),
            Step::Txn(txn) => Answer::Txn(self.txn(txn)?),
            Step::Watch(request) => {
                if matches!(&request.range, KeyRange::Span { start, end } if end <= start) {
                    return Err(INVALID);
                }
                let next = match request.start {
                    Some(start) if start > 0 => start,
                    _ => self.revision() + 1,
                };
                self.watches.push(Some(WatchState {
                    request: request.clone(),
                    next,
                    cancelled: (next < self.compacted).then_some(self.compacted),
                }));
                Answer::Done
            }
        })
    }

    pub(crate) fn revision(&self) -> i64 {
        i64::try_from(self.snapshots.len()).expect("a run is short") - 1
    }

    fn header(&self) -> Header {
        Header {
            revision: self.revision(),
            ..self.identity
        }
    }

    fn present(&self) -> &Keys {
        self.at(self.revision())
    }

    pub(crate) fn at(&self, revision: i64) -> &Keys {
        &self.snapshots[usize::try_from(revision).expect("revisions are positive")]
    }

    fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        let over = |(id, lease): (&LeaseId, &LeaseState)| (lease.deadline <= now).then_some(*id);
        let over: Vec<LeaseId> = self.leases.iter().filter_map(over).collect();
        over.into_iter().for_each(|id| self.end_lease(id));
        let mut keep_alives = std::mem::take(&mut self.keep_alives);
        for stream in keep_alives.iter_mut().flatten() {
            if stream.due == now {
                stream.due += stream.period;
                stream.answers.push_back(self.renew(stream.lease));
                if stream.answers.len() > 16 {
                    stream.answers.pop_front();
                }
            }
        }
        self.keep_alives = keep_alives;
    }

    fn renew(&mut self, id: LeaseId) -> KeepAliveResponse {
        let header = self.header();
        let ttl = match self.leases.get_mut(&id) {
            Some(lease) => {
                lease.deadline = self.now + seconds(lease.ttl);
                lease.ttl
            }
            None => 0,
        };
        KeepAliveResponse { header, id, ttl }
    }

    fn keys_of(&self, id: LeaseId) -> Vec<Bytes> {
        let bound = |kv: &&KeyValue| kv.lease == Some(id);
        let keys = self.present().values().filter(bound);
        keys.map(|kv| kv.key.clone()).collect()
    }

    fn end_lease(&mut self, id: LeaseId) {
        self.leases.remove(&id);
        let keys = self.keys_of(id);
        let mut next = self.present().clone();
        keys.iter().for_each(|key| drop(next.remove(key)));
        self.append(next, keys.into_iter().map(|key| (key, None)).collect());
    }

    fn append(&mut self, next: Keys, changed: Changes) {
        if !changed.is_empty() {
            self.snapshots.push(next);
            self.changed.push(changed);
        }
    }

    fn time_to_live(&self, id: LeaseId) -> TimeToLive {
        let header = self.header();
        let keys = self.keys_of(id);
        let (ttl, granted_ttl) = match self.leases.get(&id) {
            Some(lease) => {
                let left = (lease.deadline - self.now) / 100;
                (i64::try_from(left).expect("ttls are short"), lease.ttl)
            }
            None => (-1, 0),
        };
        TimeToLive {
            header,
            id,
            ttl,
            granted_ttl,
            keys,
        }
    }

    fn check_revision(&self, request: &RangeRequest) -> Result<(), KvErrorKind> {
        let compact_revision = self.compacted;
        match request.revision {
            Some(revision) if revision > self.revision() => Err(KvErrorKind::FutureRevision),
            Some(revision) if revision > 0 && revision < compact_revision => {
                Err(KvErrorKind::Compacted { compact_revision })
            }
            _ => Ok(()),
        }
    }

    /// The keys that a read is about: those of its revision, or those of now.
    fn seen_by<'a>(&'a self, request: &RangeRequest, now: &'a Keys) -> &'a Keys {
        match request.revision {
            Some(revision) if revision > 0 => self.at(revision),
            _ => now,
        }
    }

    fn txn(&mut self, txn: &Txn) -> Result<TxnResponse, KvErrorKind> {
        for compare in &txn.when {
            check_range(&compare.range)?;
        }
        for branch in [&txn.then, &txn.otherwise] {
            for op in branch {
                match op {
                    Op::Delete(request) => check_range(&request.range)?,
                    Op::Put(request) => check_range(&KeyRange::Key(request.key.clone()))?,
                    Op::Range(request) => check_range(&request.range)?,
                }
            }
        }
        if clashes(&txn.then) || clashes(&txn.otherwise) {
            return Err(INVALID);
        }
        let succeeded = txn.when.iter().all(|compare| self.holds(compare));
        let branch = if succeeded { &txn.then } else { &txn.otherwise };
        for op in branch {
            let Op::Put(request) = op else { continue };
            match request.lease {
                Lease::Attached(id) if !self.leases.contains_key(&id) => {
                    return Err(KvErrorKind::LeaseNotFound);
                }
                Lease::Kept if !self.present().contains_key(&request.key) => {
                    return Err(INVALID);
                }
                _ => {}
            }
        }
        for op in branch {
            if let Op::Range(request) = op {
                self.check_revision(request)?;
            }
        }

        let revision = self.revision() + 1;
        let mut keys = self.present().clone();
        let mut changed = Vec::new();
        let mut responses = Vec::new();
        for op in branch {
            let response = match op {
                Op::Delete(request) => OpResponse::Delete(delete(request, &mut keys, &mut changed)),
                Op::Put(request) => {
                    OpResponse::Put(put(request, revision, &mut keys, &mut changed))
                }
                Op::Range(request) => {
                    OpResponse::Range(read(request, self.seen_by(request, &keys)))
                }
            };
            let header = Header {
                revision: if changed.is_empty() {
                    revision - 1
                } else {
                    revision
                },
                ..Header::default()
            };
            responses.push(match response {
                OpResponse::Delete(response) => {
                    OpResponse::Delete(DeleteResponse { header, ..response })
                }
                OpResponse::Put(response) => OpResponse::Put(PutResponse { header, ..response }),
                OpResponse::Range(response) => {
                    OpResponse::Range(RangeResponse { header, ..response })
                }
            });
        }
        self.append(keys, changed);
        Ok(TxnResponse {
            header: self.header(),
            succeeded,
            responses,
        })
    }

    fn holds(&self, compare: &Compare) -> bool {
        let found: Vec<&KeyValue> = self
            .present()
            .values()
            .filter(|kv| within(&compare.range, &kv.key))
            .collect();
        let missing = KeyValue::default();
        if found.is_empty() {
            let is_value = matches!(compare.target, Target::Value(_));
            return !is_value && compares(compare, &missing);
        }
        found.into_iter().all(|kv| compares(compare, kv))
    }
}

fn seconds(seconds: i64) -> u64 {
    u64::try_from(seconds).expect("ttls are positive") * 100
}
