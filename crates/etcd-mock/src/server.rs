//! The server: what it does with a request, and what time does to it.

use std::task::Poll;

use etcd_kv::{
    DeleteResponse, Header, KeepAliveResponse, KvError, LeaseGrant, LeaseId, Op, PutResponse,
    RangeResponse, TimeToLive, Txn, TxnResponse, WatchResponse,
};

use crate::compare;
use crate::database::{Database, Write};
use crate::error;
use crate::expiry::Expirer;
use crate::facts::{Fact, Facts};
use crate::keep_alive::KeepAlives;
use crate::limits;
use crate::options::{Options, Retention};
use crate::request::{LeaseGrantRequest, Request, Response, StreamId};
use crate::watch::Watchers;

const MEMBER_ID: u64 = 1;

/// One server with its data, its open streams and its time.
#[derive(Debug)]
pub(crate) struct Server {
    options: Options,
    raft_term: u64,
    now: u64,
    /// Whether a part of the next tick has passed.
    between_ticks: bool,
    expirer: Expirer,
    database: Database,
    watchers: Watchers,
    keep_alives: KeepAlives,
    next_stream: u64,
    readable: Vec<StreamId>,
    /// Nobody ends leases.
    leaderless: bool,
    facts: Facts,
}

impl Server {
    pub(crate) fn new(options: Options, database: Database, now: u64) -> Self {
        Self {
            raft_term: options.raft_term,
            expirer: Expirer::new(options.expiry, now),
            options,
            now,
            between_ticks: false,
            database,
            watchers: Watchers::default(),
            keep_alives: KeepAlives::default(),
            next_stream: 1,
            readable: Vec::new(),
            leaderless: false,
            facts: Facts::default(),
        }
    }

    /// The same data on a server of its own, without the streams.
    pub(crate) fn fork(&self) -> Self {
        Self {
            raft_term: self.raft_term,
            ..Self::new(self.options.clone(), self.database.clone(), self.now)
        }
    }

    pub(crate) fn apply(&mut self, request: &Request) -> Result<Response, KvError> {
        Ok(match request {
            Request::Compact(revision) => Response::Compact(self.compact(*revision)?),
            Request::Delete(request) => {
                limits::check_delete(request)?;
                let response = self.write(|write| write.delete(request));
                let header = self.header();
                Response::Delete(DeleteResponse { header, ..response })
            }
            Request::LeaseGrant(request) => Response::LeaseGrant(self.grant(*request)?),
            Request::LeaseKeepAlive(request) => {
                let id = self.name_stream();
                self.keep_alives.open(id, *request, self.now);
                self.renew_due();
                Response::LeaseKeepAlive(id)
            }
            Request::LeaseKeepAliveOnce(id) => Response::LeaseKeepAliveOnce(self.renew(*id)),
            Request::LeaseRevoke(id) => Response::LeaseRevoke(self.revoke(*id)?),
            Request::LeaseTimeToLive(id) => Response::LeaseTimeToLive(self.time_to_live(*id)),
            Request::Put(request) => {
                limits::check_put(request)?;
                self.database.check_put(request)?;
                let response = self.write(|write| write.put(request));
                let header = self.header();
                Response::Put(PutResponse { header, ..response })
            }
            Request::Range(request) => {
                limits::check_range(&request.range)?;
                let keyspace = &self.database.keyspace;
                keyspace.check_readable(request.revision)?;
                Response::Range(RangeResponse {
                    header: self.header(),
                    ..keyspace.range(request)
                })
            }
            Request::Txn(txn) => Response::Txn(self.txn(txn)?),
            Request::Watch(request) => {
                limits::check_watch(&request.range)?;
                let id = self.name_stream();
                let keyspace = &self.database.keyspace;
                let next = keyspace.revision().saturating_add(1);
                self.watchers.open(id, request, next, keyspace.history());
                Response::Watch(id)
            }
        })
    }

    /// Whether the request waits at the server for a lease to end whose time is over.
    pub(crate) fn holds_up(&self, request: &Request) -> bool {
        matches!(request, Request::LeaseKeepAliveOnce(id) if self.is_late_to_end(*id))
    }

    fn is_late_to_end(&self, id: LeaseId) -> bool {
        self.expirer.is_late() && self.database.leases.is_overdue(id, self.now)
    }

    /// Lets time pass, with everything that falls due in it, in the order in which it does. At one
    /// tick leases end before they are renewed: at its deadline a lease is over.
    pub(crate) fn advance(&mut self, ticks: u64) {
        let until = self.now.saturating_add(ticks);
        while let Some(due) = self.next_due().filter(|&due| due <= until) {
            self.now = due.max(self.now);
            self.expire_due();
            self.renew_due();
        }
        self.now = until;
        self.between_ticks = false;
    }

    /// When something happens next by itself.
    pub(crate) fn next_due(&self) -> Option<u64> {
        let expiry = self.database.leases.next_expiry();
        let expiry = expiry.filter(|_| !self.leaderless);
        let expiry = expiry.map(|(deadline, _)| self.expirer.due(deadline));
        expiry.into_iter().chain(self.keep_alives.next_due()).min()
    }

    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// Goes on with other data, as a server does that is started from a backup: the streams are
    /// broken off, and the leases last their full ttl again.
    pub(crate) fn restore(&mut self, database: Database) {
        self.database = database;
        self.database.leases.renew_all(self.begin());
        self.watchers.break_off(&mut self.readable);
        self.keep_alives.break_off(&mut self.readable);
    }

    /// Goes on with the same data after a new election.
    pub(crate) fn restart(&mut self) {
        self.raft_term = self.raft_term.saturating_add(1);
        self.restore(self.database.clone());
        self.tell_of_leases();
    }

    /// Nobody leads: what time does by itself waits for the next election.
    pub(crate) const fn step_down(&mut self) {
        self.leaderless = true;
    }

    /// Another leads. It does not know how long leases have left, and gives them their full ttl and
    /// some more; streams stand.
    pub(crate) fn elect(&mut self, more: u64) {
        self.raft_term = self.raft_term.saturating_add(1);
        self.leaderless = false;
        let begin = self.begin().saturating_add(more);
        self.database.leases.renew_all(begin);
        self.tell_of_leases();
    }

    fn tell_of_leases(&mut self) {
        let Self {
            database, facts, ..
        } = self;
        for (id, _, until) in database.leases.iter() {
            facts.note(|| Fact::LeaseRenewed { id, until });
        }
    }

    pub(crate) const fn facts(&mut self) -> &mut Facts {
        &mut self.facts
    }

    pub(crate) const fn set_between_ticks(&mut self, between: bool) {
        self.between_ticks = between;
    }

    /// The tick from which the ttls count that begin now.
    fn begin(&self) -> u64 {
        self.now.saturating_add(u64::from(self.between_ticks))
    }

    pub(crate) const fn set_raft_term(&mut self, raft_term: u64) {
        self.raft_term = raft_term;
    }

    pub(crate) fn close(&mut self, id: StreamId) {
        self.watchers.close(id);
        self.keep_alives.close(id);
    }

    pub(crate) fn poll_watch(
        &mut self,
        id: StreamId,
    ) -> Poll<Option<Result<WatchResponse, KvError>>> {
        let header = self.header();
        let history = self.database.keyspace.history();
        self.watchers.poll(id, header, history)
    }

    pub(crate) fn poll_keep_alive(
        &mut self,
        id: StreamId,
    ) -> Poll<Option<Result<KeepAliveResponse, KvError>>> {
        self.keep_alives.poll(id)
    }

    /// The streams that have had something new to read since this was last asked.
    pub(crate) fn take_readable(&mut self) -> Vec<StreamId> {
        std::mem::take(&mut self.readable)
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.watchers.len() + self.keep_alives.len()
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            cluster_id: self.options.cluster_id,
            member_id: MEMBER_ID,
            revision: self.database.keyspace.revision(),
            raft_term: self.raft_term,
        }
    }

    fn name_stream(&mut self) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        id
    }

    /// Does a write, and shows what it changed to the watchers.
    fn write<T>(&mut self, act: impl FnOnce(&mut Write<'_>) -> T) -> T {
        let mut write = self.database.begin();
        let answer = act(&mut write);
        if write.commit() {
            let keyspace = &self.database.keyspace;
            let revision = keyspace.revision();
            let history = keyspace.history();
            self.facts.note(|| {
                let changes = history.at(revision);
                let changes = changes.map(|change| history.event(revision, change, true));
                Fact::Changed(changes.collect())
            });
            for change in keyspace.history().at(revision) {
                self.watchers
                    .note(change.key(), revision, &mut self.readable);
            }
            self.forget_the_oldest();
        }
        answer
    }

    fn txn(&mut self, txn: &Txn) -> Result<TxnResponse, KvError> {
        limits::check_txn(txn)?;
        let keyspace = &self.database.keyspace;
        let succeeded = txn
            .when
            .iter()
            .all(|comparison| compare::holds(comparison, keyspace));
        let branch = if succeeded { &txn.then } else { &txn.otherwise };
        // As on a real server, which tells what is wrong with a write first.
        let (puts, others): (Vec<_>, Vec<_>) =
            branch.iter().partition(|op| matches!(op, Op::Put(_)));
        for op in puts.into_iter().chain(others) {
            self.database.check(op)?;
        }
        let responses = self.write(|write| branch.iter().map(|op| write.apply(op)).collect());
        Ok(TxnResponse {
            header: self.header(),
            succeeded,
            responses,
        })
    }

    fn compact(&mut self, revision: i64) -> Result<(), KvError> {
        self.database.keyspace.compact(revision)?;
        self.watchers.compacted(revision, &mut self.readable);
        Ok(())
    }

    /// Compacts by itself, an eighth of what is kept at a time, as each time costs a look at every
    /// watcher.
    fn forget_the_oldest(&mut self) {
        let Retention::Last(revisions) = self.options.retention else {
            return;
        };
        let revisions = i64::from(revisions);
        let keyspace = &self.database.keyspace;
        let oldest = keyspace.revision() - revisions;
        if oldest - keyspace.history().compact_revision() > revisions / 8 && oldest > 0 {
            // It is neither in the future nor compacted before.
            drop(self.compact(oldest));
        }
    }

    fn grant(&mut self, request: LeaseGrantRequest) -> Result<LeaseGrant, KvError> {
        let LeaseGrantRequest { id, ttl } = request;
        if id == LeaseId(0) {
            return Err(error::invalid("a lease's id is not 0"));
        }
        limits::check_ttl(ttl)?;
        if self.database.leases.contains(id) {
            return Err(error::lease_exists());
        }
        let ttl = ttl.max(self.options.min_lease_ttl);
        let until = self.database.leases.grant(id, ttl, self.begin());
        self.facts.note(|| Fact::LeaseGranted { id, ttl, until });
        let header = self.header();
        Ok(LeaseGrant { header, id, ttl })
    }

    fn renew(&mut self, id: LeaseId) -> KeepAliveResponse {
        let renewed = self.database.leases.renew(id, self.begin());
        if let Some((_, until)) = renewed {
            self.facts.note(|| Fact::LeaseRenewed { id, until });
        }
        let ttl = renewed.map_or(0, |(ttl, _)| ttl);
        let header = self.header();
        KeepAliveResponse { header, id, ttl }
    }

    fn revoke(&mut self, id: LeaseId) -> Result<(), KvError> {
        let known = self.end_lease(id, false);
        known.then_some(()).ok_or_else(error::lease_not_found)
    }

    /// Ends a lease and deletes its keys; `false` for an unknown lease.
    fn end_lease(&mut self, id: LeaseId, expired: bool) -> bool {
        if self.database.leases.contains(id) {
            self.facts.note(|| Fact::LeaseEnded { id, expired });
        }
        self.write(|write| write.end_lease(id))
    }

    fn time_to_live(&self, id: LeaseId) -> TimeToLive {
        let header = self.header();
        match self.database.leases.outlook(id, self.now) {
            None => TimeToLive {
                header,
                id,
                ttl: -1,
                granted_ttl: 0,
                keys: Vec::new(),
            },
            Some(outlook) => TimeToLive {
                header,
                id,
                ttl: outlook.remaining,
                granted_ttl: outlook.ttl,
                keys: outlook.keys,
            },
        }
    }

    /// Ends the leases whose time is over, each in a revision of its own.
    fn expire_due(&mut self) {
        if self.leaderless {
            return;
        }
        for _ in 0..self.expirer.scan(self.now) {
            match self.database.leases.next_expiry() {
                Some((deadline, id)) if deadline <= self.now => {
                    self.end_lease(id, true);
                }
                _ => break,
            }
        }
    }

    fn renew_due(&mut self) {
        while let Some((stream, lease)) = self.keep_alives.take_due(self.now) {
            if self.is_late_to_end(lease) {
                let next_scan = self.expirer.due(self.now.saturating_add(1));
                self.keep_alives.postpone(stream, next_scan);
                continue;
            }
            let answer = self.renew(lease);
            self.keep_alives.answer(stream, answer);
            self.readable.push(stream);
        }
    }
}
