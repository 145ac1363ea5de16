//! Who watches on a stream, and whom each message concerns.

use std::collections::{BTreeMap, VecDeque};

use etcd_client::proto::PbWatchResponse;
use etcd_kv::{Applied, KvError, KvErrorKind, WatchEvent, WatchRequest, WatchResponse};
use lock_spi::Instant;
use tokio::sync::{mpsc, oneshot};

use crate::client::{errors, responses};

/// Somebody who wants to watch.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Names it, on whatever stream.
    pub(super) number: u64,
    pub(super) request: WatchRequest,
    pub(super) begun: oneshot::Sender<Result<(), Refused>>,
    pub(super) events: mpsc::UnboundedSender<Result<WatchResponse, KvError>>,
}

/// Why a watch does not begin.
#[derive(Debug)]
pub(super) enum Refused {
    /// The stream was there before: on a new one it may begin.
    OnAnOldStream(KvError),
    ForGood(KvError),
}

impl Refused {
    pub(super) fn into_error(self) -> KvError {
        match self {
            Self::OnAnOldStream(error) | Self::ForGood(error) => error,
        }
    }
}

impl Watcher {
    /// Whether nobody waits for it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.begun.is_closed()
    }

    pub(super) fn refuse(self, refused: Refused) {
        // Nobody may be interested any more.
        drop(self.begun.send(Err(refused)));
    }
}

/// The watches of one stream. etcd answers requests for watches in their order, and names each by
/// an id of its own choice.
#[derive(Debug, Default)]
pub(super) struct Table {
    asked: VecDeque<(Instant, Watcher)>,
    standing: BTreeMap<i64, Standing>,
    ids: BTreeMap<u64, i64>,
    /// The stream has begun: whoever asked it first has an answer.
    old: bool,
}

#[derive(Debug)]
struct Standing {
    number: u64,
    events: mpsc::UnboundedSender<Result<WatchResponse, KvError>>,
    parts: Vec<WatchEvent>,
}

/// What a message leads to.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Next {
    GoOn,
    /// Nobody wants this watch any more.
    Cancel(i64),
}

impl Table {
    /// A watch was asked for.
    pub(super) fn ask(&mut self, now: Instant, watcher: Watcher) {
        self.asked.push_back((now, watcher));
    }

    /// Since when an answer has been due.
    pub(super) fn unanswered_since(&self) -> Option<Instant> {
        self.asked.front().map(|(since, _)| *since)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.standing.is_empty()
    }

    /// A watcher is gone; answers with the id of its watch, if that stands.
    pub(super) fn forget(&mut self, number: u64) -> Option<i64> {
        // One that has no answer yet is found to be gone when it comes.
        let id = self.ids.get(&number).copied()?;
        self.remove(id);
        Some(id)
    }

    fn remove(&mut self, id: i64) -> Option<Standing> {
        let standing = self.standing.remove(&id)?;
        self.ids.remove(&standing.number);
        Some(standing)
    }

    /// Takes in a message; an error is the end of the stream.
    pub(super) fn take_in(&mut self, message: PbWatchResponse) -> Result<Next, KvError> {
        if message.created {
            return self.begin(&message);
        }
        let id = message.watch_id;
        if let Some(error) = ending(&message) {
            if let Some(standing) = self.remove(id) {
                drop(standing.events.send(Err(error)));
            } else if id < 0 {
                return Err(error);
            }
            return Ok(Next::GoOn);
        }
        // What was cancelled may have had events under way.
        if let Some(standing) = self.standing.get_mut(&id) {
            standing.take_in(message)?;
        }
        Ok(Next::GoOn)
    }

    fn begin(&mut self, message: &PbWatchResponse) -> Result<Next, KvError> {
        let asked = self.asked.pop_front();
        let (_, watcher) = asked.ok_or_else(|| nonsense("a watch that nobody asked for"))?;
        let old = std::mem::replace(&mut self.old, true);
        if let Some(error) = ending(message) {
            let denied = error.kind() == KvErrorKind::Denied;
            watcher.refuse(match old {
                true => Refused::OnAnOldStream(error),
                false => Refused::ForGood(error),
            });
            // Servers before 3.4.26 and 3.5.9 listen to nothing more on a stream where they denied
            // a watch.
            return match denied {
                true => Err(unavailable("another watch on the stream was denied")),
                false => Ok(Next::GoOn),
            };
        }
        let id = message.watch_id;
        if watcher.begun.send(Ok(())).is_err() {
            return Ok(Next::Cancel(id));
        }
        let standing = Standing {
            number: watcher.number,
            events: watcher.events,
            parts: Vec::new(),
        };
        self.ids.insert(standing.number, id);
        self.standing.insert(id, standing);
        Ok(Next::GoOn)
    }

    /// The stream has ended, and all watches with it.
    pub(super) fn end(self, error: &KvError) {
        for (_, watcher) in self.asked {
            watcher.refuse(match self.old {
                true => Refused::OnAnOldStream(same(error)),
                false => Refused::ForGood(same(error)),
            });
        }
        for standing in self.standing.into_values() {
            // Nobody may be interested any more.
            drop(standing.events.send(Err(same(error))));
        }
    }
}

impl Standing {
    /// Takes in one message, and passes on the events of all that belong together.
    fn take_in(&mut self, message: PbWatchResponse) -> Result<(), KvError> {
        for event in message.events {
            self.parts.push(responses::event(event)?);
        }
        if message.fragment || self.parts.is_empty() {
            return Ok(());
        }
        let header = responses::header(message.header)?;
        let events = std::mem::take(&mut self.parts);
        // Nobody may be interested any more; then it will be forgotten.
        drop(self.events.send(Ok(WatchResponse { header, events })));
        Ok(())
    }
}

/// Why the server ends a watch, or does not begin it, if it says so.
fn ending(message: &PbWatchResponse) -> Option<KvError> {
    match message.compact_revision {
        0 if message.canceled => Some(errors::from_reason(&message.cancel_reason)),
        0 => None,
        compact_revision => {
            let kind = KvErrorKind::Compacted { compact_revision };
            let message = "the watch fell behind the compaction";
            Some(KvError::new(kind, Applied::No, message))
        }
    }
}

/// The same error, for one of many.
pub(super) fn same(error: &KvError) -> KvError {
    let message = error.message().to_owned();
    KvError::new(error.kind(), error.applied(), message)
}

pub(super) fn unavailable(message: &'static str) -> KvError {
    KvError::new(KvErrorKind::Unavailable, Applied::No, message)
}

fn nonsense(message: &'static str) -> KvError {
    KvError::new(KvErrorKind::Protocol, Applied::No, message)
}

#[cfg(test)]
mod tests;
