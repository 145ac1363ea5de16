//! What happened below a namespace, as its server did it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::{EventKind, KeyRange, KeyValue, MetadataStore, PutRequest, WatchRequest};
use futures_util::StreamExt;
use lock_spi::{AttemptId, FencingToken, Instant, Namespace, Runtime, SessionId};

/// What ends the history; the store knows nothing of this key.
const END: &str = "the-end";
/// For the last change to be told.
const LIMIT: Duration = Duration::from_secs(20);

/// All that changed in one revision.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) revision: i64,
    /// When it was heard of; never before it happened.
    pub(crate) at: Instant,
    pub(crate) changes: Vec<Change>,
}

#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) of: Name,
    pub(crate) kind: EventKind,
    pub(crate) kv: KeyValue,
}

/// What a stored key names, as far as it concerns locks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Name {
    Floor(String),
    Lock(String),
    Other(String),
    Revocation(String),
    Session(SessionId),
    Ticket(String, AttemptId),
}

/// What a lock says of itself.
pub(crate) struct Held {
    pub(crate) attempt: AttemptId,
    pub(crate) session: SessionId,
    pub(crate) token: FencingToken,
}

impl Held {
    pub(crate) fn read(kv: &KeyValue) -> Self {
        let value: serde_json::Value = serde_json::from_slice(&kv.value).unwrap();
        let text = |name: &str| value[name].as_str().unwrap();
        let counter = u64::try_from(kv.mod_revision).unwrap();
        Self {
            attempt: text("attempt").parse().unwrap(),
            session: text("session").parse().unwrap(),
            token: FencingToken::from_parts(value["term"].as_u64().unwrap(), counter).unwrap(),
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.since_origin();
        write!(f, "{} at {at:?}: {:?}", self.revision, self.changes)
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = String::from_utf8_lossy(&self.kv.value);
        write!(f, "{:?} {:?} {value}", self.kind, self.of)
    }
}

impl Name {
    fn of(name: &str) -> Self {
        let parts: Vec<_> = name.splitn(3, '/').collect();
        match parts[..] {
            ["floor", key] => Self::Floor(key.to_owned()),
            ["lock", key] => Self::Lock(key.to_owned()),
            ["revocation", key, _] => Self::Revocation(key.to_owned()),
            ["session", id] => Self::Session(id.parse().unwrap()),
            ["wait", key, attempt] => Self::Ticket(key.to_owned(), attempt.parse().unwrap()),
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// Writes the history down while it happens.
pub(crate) struct Witness {
    root: String,
    seen: Arc<Mutex<Vec<Moment>>>,
    runtime: Arc<dyn Runtime>,
}

impl Witness {
    /// Begins before anything is written.
    pub(crate) async fn begin(
        server: &impl MetadataStore,
        runtime: Arc<dyn Runtime>,
        namespace: &Namespace,
    ) -> Self {
        let root = format!("/dlock/{namespace}/");
        let all = WatchRequest::new(KeyRange::prefix(root.clone()));
        let mut watch = server.watch(all).await.unwrap();
        let seen: Arc<Mutex<Vec<Moment>>> = Arc::default();
        let (notes, clock, start) = (Arc::clone(&seen), Arc::clone(&runtime), root.clone());
        runtime.spawn(Box::pin(async move {
            while let Some(Ok(response)) = watch.next().await {
                let mut seen = notes.lock().unwrap();
                for event in response.events {
                    let revision = event.kv.mod_revision;
                    if seen.last().is_none_or(|last| last.revision < revision) {
                        seen.push(Moment {
                            revision,
                            at: clock.now(),
                            changes: Vec::new(),
                        });
                    }
                    let name = std::str::from_utf8(&event.kv.key).unwrap();
                    let change = Change {
                        of: Name::of(&name[start.len()..]),
                        kind: event.kind,
                        kv: event.kv,
                    };
                    seen.last_mut().unwrap().changes.push(change);
                }
            }
        }));
        Self {
            root,
            seen,
            runtime,
        }
    }

    /// All that has happened.
    pub(crate) async fn finish(self, server: &impl MetadataStore) -> Vec<Moment> {
        let end = PutRequest::new(format!("{}{END}", self.root), "");
        let end = server.put(end).await.unwrap().header.revision;
        let give_up = self.runtime.now() + LIMIT;
        let reached = || {
            let seen = self.seen.lock().unwrap();
            seen.last().is_some_and(|last| last.revision >= end)
        };
        while !reached() {
            assert!(self.runtime.now() < give_up, "the history has no end");
            self.runtime.sleep(Duration::from_millis(10)).await;
        }
        self.seen.lock().unwrap().clone()
    }
}
