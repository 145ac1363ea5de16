//! Keepalives that repeat for as long as their client reads them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::Poll;

use etcd_kv::{KeepAliveResponse, KvError, LeaseId};

use crate::error;
use crate::request::{LeaseKeepAliveRequest, StreamId};

/// The most answers that wait for a client; beyond, the oldest gives way, as it says the least.
const MAX_UNREAD: usize = 16;

/// The open keepalives, and the order in which they are due.
#[derive(Debug, Default)]
pub(crate) struct KeepAlives {
    streams: BTreeMap<StreamId, KeepAlive>,
    due: BTreeSet<(u64, StreamId)>,
}

#[derive(Debug)]
struct KeepAlive {
    lease: LeaseId,
    period: u64,
    due: u64,
    answers: VecDeque<KeepAliveResponse>,
    broken: bool,
}

impl KeepAlives {
    /// Opens a keepalive that is due at once.
    pub(crate) fn open(&mut self, id: StreamId, request: LeaseKeepAliveRequest, now: u64) {
        let stream = KeepAlive {
            lease: request.id,
            period: request.period.max(1),
            due: now,
            answers: VecDeque::new(),
            broken: false,
        };
        drop(self.streams.insert(id, stream));
        self.due.insert((now, id));
    }

    /// Closes a keepalive; one that is not open stays so.
    pub(crate) fn close(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.remove(&id) {
            self.due.remove(&(stream.due, id));
        }
    }

    /// When the next one is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|&(due, _)| due)
    }

    /// Takes one that is due, which is then due again a period later; answers with its lease.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<(StreamId, LeaseId)> {
        let &(due, id) = self.due.first().filter(|&&(due, _)| due <= now)?;
        self.due.remove(&(due, id));
        let stream = self.streams.get_mut(&id)?;
        stream.due = due.saturating_add(stream.period);
        self.due.insert((stream.due, id));
        Some((id, stream.lease))
    }

    /// Makes one that is open due then.
    pub(crate) fn postpone(&mut self, id: StreamId, due: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.due.remove(&(stream.due, id));
            stream.due = due;
            self.due.insert((due, id));
        }
    }

    /// Queues the answer to a renewal.
    pub(crate) fn answer(&mut self, id: StreamId, answer: KeepAliveResponse) {
        if let Some(stream) = self.streams.get_mut(&id) {
            if stream.answers.len() == MAX_UNREAD {
                stream.answers.pop_front();
            }
            stream.answers.push_back(answer);
        }
    }

    /// Ends all keepalives, as a server does that goes away.
    pub(crate) fn break_off(&mut self, readable: &mut Vec<StreamId>) {
        self.due.clear();
        for (id, stream) in &mut self.streams {
            stream.broken = true;
            readable.push(*id);
        }
    }

    /// The next answer; after its error, or if it is not open, none any more.
    pub(crate) fn poll(
        &mut self,
        id: StreamId,
    ) -> Poll<Option<Result<KeepAliveResponse, KvError>>> {
        let Some(stream) = self.streams.get_mut(&id) else {
            return Poll::Ready(None);
        };
        if stream.broken {
            self.close(id);
            return Poll::Ready(Some(Err(error::stream_broken())));
        }
        match stream.answers.pop_front() {
            Some(answer) => Poll::Ready(Some(Ok(answer))),
            None => Poll::Pending,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }
}
