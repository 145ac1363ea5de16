//! The truth, read from the server beside stores and clients: present keys, and the commit order.

use std::collections::BTreeSet;
use std::sync::Mutex;

use etcd_kv::{EventKind, KeyRange, KeyValue, MetadataStore, WatchRequest};
use etcd_mock::MockStore;
use futures_util::{FutureExt, StreamExt};
use lock_fence::FencingToken;

/// Everything of the namespace of these runs.
const PREFIX: &str = "/dlock/smoke/";
/// Of a namespace that was never recovered.
const TERM: u64 = 0;

/// One change of one lock.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) key: String,
    pub(crate) kind: EventKind,
    pub(crate) kv: KeyValue,
}

impl Commit {
    /// The attempt that was granted.
    pub(crate) fn attempt(&self) -> String {
        let value: serde_json::Value = serde_json::from_slice(&self.kv.value).unwrap();
        value["attempt"].as_str().unwrap().to_owned()
    }
}

pub(crate) struct Witness {
    server: MockStore,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    commits: Vec<Commit>,
    /// The revision that all of these are from, or before.
    up_to: i64,
}

impl Witness {
    pub(crate) fn new(server: MockStore) -> Self {
        Self {
            server,
            read: Mutex::default(),
        }
    }

    /// The key under which a lock stands in the server.
    pub(crate) fn lock(&self, key: &str) -> String {
        format!("{PREFIX}lock/{}", encoded(key))
    }

    /// The token of the grant that stands at this moment.
    pub(crate) fn standing(&self, key: &str) -> Option<FencingToken> {
        let lock = self.lock(key);
        let entries = self.server.entries();
        let found = entries.iter().find(|kv| kv.key == lock)?;
        let counter = u64::try_from(found.mod_revision).unwrap();
        Some(FencingToken::from_parts(TERM, counter).unwrap())
    }

    /// How long the grant that stands will stand by itself.
    pub(crate) async fn seconds_left(&self, key: &str) -> Option<i64> {
        let lock = self.lock(key);
        let entries = self.server.entries();
        let lease = entries.iter().find(|kv| kv.key == lock)?.lease?;
        Some(self.server.lease_time_to_live(lease).await.unwrap().ttl)
    }

    /// What stands at this moment below these parts of the namespace.
    pub(crate) fn leftovers(&self, parts: &[&str]) -> Vec<String> {
        let keys = self.server.entries().into_iter().map(|kv| kv.key);
        let keys = keys.map(|key| String::from_utf8_lossy(&key).into_owned());
        let below = |key: &String| {
            let rest = key.strip_prefix(PREFIX);
            rest.is_some_and(|rest| parts.iter().any(|part| rest.starts_with(part)))
        };
        keys.filter(below).collect()
    }

    /// Reads what has changed since it last did; nothing may be compacted in between.
    pub(crate) async fn catch_up(&self) {
        let locks = format!("{PREFIX}lock/");
        let up_to = self.read.lock().unwrap().up_to;
        let now = self.server.revision();
        let request = WatchRequest {
            start: Some(up_to + 1),
            ..WatchRequest::new(KeyRange::prefix(locks.clone()))
        };
        let mut watch = self.server.watch(request).await.unwrap();
        let mut read = self.read.lock().unwrap();
        // What has happened is there at once.
        while let Some(Some(message)) = watch.next().now_or_never() {
            for event in message.unwrap().events {
                let key = String::from_utf8_lossy(&event.kv.key[locks.len()..]).into_owned();
                read.commits.push(Commit {
                    key,
                    kind: event.kind,
                    kv: event.kv,
                });
            }
        }
        read.up_to = now;
    }

    /// Tells of every grant that ends, at the moment at which it does, by the revision that made it.
    pub(crate) async fn tell_of_ends(&self, tell: impl Fn(i64)) {
        let locks = format!("{PREFIX}lock/");
        let request = WatchRequest {
            prev_kv: true,
            ..WatchRequest::new(KeyRange::prefix(locks))
        };
        loop {
            let mut watch = self.server.watch(request.clone()).await.unwrap();
            // It breaks off when the server restarts.
            while let Some(Ok(message)) = watch.next().await {
                let ended = message.events.into_iter().filter_map(|event| event.prev_kv);
                ended.for_each(|kv| tell(kv.mod_revision));
            }
        }
    }

    /// All changes of locks, in commit order.
    pub(crate) async fn commits(&self) -> Vec<Commit> {
        self.catch_up().await;
        self.read.lock().unwrap().commits.clone()
    }
}

/// What is wrong with a commit order.
pub(crate) fn faults_in(commits: &[Commit]) -> Vec<String> {
    let mut standing = BTreeSet::new();
    let mut last = 0;
    let mut faults = Vec::new();
    for commit in commits {
        let Commit { key, kind, kv } = commit;
        match kind {
            EventKind::Delete => {
                if !standing.remove(key) {
                    faults.push(format!("a lock ended that did not stand: {commit:?}"));
                }
            }
            EventKind::Put => {
                if !standing.insert(key) {
                    faults.push(format!("granted while it was held: {commit:?}"));
                }
                if kv.mod_revision <= last {
                    faults.push(format!("a token that does not rise: {commit:?}"));
                }
                last = kv.mod_revision;
                if kv.create_revision != kv.mod_revision || kv.version != 1 {
                    faults.push(format!("a lock key was rewritten: {commit:?}"));
                }
                if kv.lease.is_none() {
                    faults.push(format!("a lock without a lease: {commit:?}"));
                }
            }
        }
    }
    faults
}

/// A key as it stands in the server; written anew here, so as not to believe the store.
pub(crate) fn encoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    key.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// The store's counter in a token is the revision of the granting transaction.
pub(crate) fn revision_of(token: FencingToken) -> i64 {
    i64::try_from(token.counter()).unwrap()
}

#[cfg(test)]
mod tests {
    use etcd_kv::LeaseId;

    use super::*;

    fn commit(kind: EventKind, revision: i64) -> Commit {
        Commit {
            key: "k".into(),
            kind,
            kv: KeyValue {
                create_revision: revision,
                mod_revision: revision,
                version: 1,
                lease: Some(LeaseId(1)),
                ..KeyValue::default()
            },
        }
    }

    #[test]
    fn a_commit_order_without_faults_passes() {
        let commits = [
            commit(EventKind::Put, 2),
            commit(EventKind::Delete, 3),
            commit(EventKind::Put, 5),
        ];
        assert_eq!(faults_in(&commits), Vec::<String>::new());
    }

    #[test]
    fn planted_faults_are_found() {
        let mut rewritten = commit(EventKind::Put, 3);
        rewritten.kv.create_revision = 2;
        let mut immortal = commit(EventKind::Put, 2);
        immortal.kv.lease = None;
        let put = |revision| commit(EventKind::Put, revision);
        let delete = |revision| commit(EventKind::Delete, revision);
        for (fault, commits) in [
            ("granted while it was held", vec![put(2), put(3)]),
            ("does not rise", vec![put(5), delete(6), put(4)]),
            ("rewritten", vec![rewritten]),
            ("without a lease", vec![immortal]),
            ("did not stand", vec![delete(2)]),
        ] {
            let found = faults_in(&commits);
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}");
        }
    }
}
