//! A store that is full: what it still does, and that what it refuses is not half done.

use std::collections::BTreeSet;

use etcd_kv::{
    DeleteRequest, KeyRange, KvError, KvErrorKind, MetadataStore, PutRequest, RangeRequest,
};
use futures_util::future::join_all;
use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, Grant, InsertOutcome, LockKey, LockStore, Queue, SessionId,
};
use test_servers::Etcd;

use super::node::{RealNode, assert_locks_end_by_themselves, node};
use crate::common::{granted, key};

const QUOTA: usize = 4 << 20;

fn server() -> Etcd {
    let quota = format!("--quota-backend-bytes={QUOTA}");
    Etcd::builder().argument(quota).start().unwrap()
}

const PIECE: usize = 64 << 10;

async fn put_piece(node: &RealNode, number: usize) -> Result<(), KvError> {
    let put = PutRequest::new(format!("filler/{number}"), vec![b'f'; PIECE]);
    node.kv.put(put).await.map(drop)
}

/// Puts so many bytes that are not of locks, fewer than make the store full.
async fn fill(node: &RealNode, bytes: usize) {
    for number in 0..bytes / PIECE {
        put_piece(node, number).await.unwrap();
    }
}

/// Fills the store until it refuses more. What was put counts once the server has written it out,
/// which it does every 100 ms: how many bytes it takes depends on its speed.
async fn fill_up(node: &RealNode) {
    const FAR_TOO_MUCH: usize = 64 * QUOTA;
    for number in 0..FAR_TOO_MUCH / PIECE {
        if let Err(error) = put_piece(node, number).await {
            assert_eq!(error.kind(), KvErrorKind::NoSpace, "{error}");
            return;
        }
    }
    panic!("{FAR_TOO_MUCH} bytes fit into a store of {QUOTA}");
}

async fn is_full(node: &RealNode) -> bool {
    let put = node.kv.put(PutRequest::new("filler/last", "")).await;
    put.is_err_and(|error| error.kind() == KvErrorKind::NoSpace)
}

/// What operators do.
async fn make_room(server: &Etcd, node: &RealNode) {
    let freed = node
        .kv
        .delete(DeleteRequest::new(KeyRange::prefix("filler/")))
        .await;
    let revision = freed.unwrap().header.revision;
    node.kv.compact(revision).await.unwrap();
    server.ctl(&["defrag"]).unwrap();
    server.ctl(&["alarm", "disarm"]).unwrap();
}

fn is_exhausted(error: &Error) -> bool {
    (error.kind(), error.effect()) == (ErrorKind::Exhausted, Effect::Unknown)
}

#[tokio::test]
async fn a_full_store_keeps_and_releases_and_grants_nothing() {
    let server = server();
    let node = node(&server).await;
    let session = node.session().await;
    let (kept, attempt) = node.take(session, "kept").await;
    let (released, _) = node.take(session, "released").await;
    fill_up(&node).await;
    assert!(is_full(&node).await);

    let refused = node.attempt();
    let outcome = node.insert(session, "new", refused, Queue::Never).await;
    assert!(is_exhausted(&outcome.unwrap_err()));
    let place = node.attempt();
    let outcome = node.insert(session, "kept", place, Queue::Join).await;
    assert!(is_exhausted(&outcome.unwrap_err()));
    let opened = node.open(SessionId::random(&*node.runtime)).await;
    assert!(is_exhausted(&opened.unwrap_err()));

    let extended = node.store.extend(&kept.key, kept.token).await.unwrap();
    assert_eq!(extended.unwrap().token, kept.token);
    assert!(
        node.keep(session, &[&kept, &released], &[attempt])
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        node.store
            .delete_if_owner(&released.key, released.token)
            .await
            .unwrap()
    );
    for (text, attempt) in [("new", refused), ("kept", place)] {
        node.store
            .abandon(&key(text), session, attempt)
            .await
            .unwrap();
    }
    for text in ["new", "released"] {
        assert_eq!(node.holder(text).await, None, "{text}");
    }
    assert_eq!(node.holder("kept").await, Some(kept.token));

    make_room(&server, &node).await;
    for text in ["new", "released"] {
        let (grant, _) = node.take(session, text).await;
        assert!(grant.token > kept.token);
    }
    let again = node.insert(session, "new", refused, Queue::Never).await;
    assert_eq!(again.unwrap(), InsertOutcome::Ended);
    assert!(
        node.store
            .delete_if_owner(&kept.key, kept.token)
            .await
            .unwrap()
    );
    node.store.close_session(session).await.unwrap();
}

/// Servers apply the request that makes them full, and refuse it afterwards.
#[tokio::test]
async fn nothing_is_left_of_what_a_store_refused_while_it_became_full() {
    const AT_ONCE: usize = 48;
    let server = server();
    let node = node(&server).await;
    let session = node.session().await;
    fill(&node, QUOTA - (400 << 10)).await;
    let mut granted_keys = BTreeSet::new();
    let mut refused: Vec<(LockKey, AttemptId)> = Vec::new();
    for round in 0.. {
        let inserts = (0..AT_ONCE).map(async |number| {
            let text = format!("{round}-{number}-{}", "l".repeat(480));
            let attempt = node.attempt();
            (
                key(&text),
                attempt,
                node.insert(session, &text, attempt, Queue::Never).await,
            )
        });
        for (key, attempt, outcome) in join_all(inserts).await {
            match outcome {
                Ok(outcome) => {
                    let Grant { key, .. } = granted(outcome);
                    granted_keys.insert(key);
                }
                Err(error) => {
                    assert!(is_exhausted(&error), "{error:?}");
                    refused.push((key, attempt));
                }
            }
        }
        if !refused.is_empty() {
            break;
        }
    }
    for (key, attempt) in &refused {
        node.store.abandon(key, session, *attempt).await.unwrap();
    }
    let locks = RangeRequest::prefix("/dlock/default/lock/");
    let locks = node.kv.range(locks).await.unwrap().count;
    assert_eq!(locks, u64::try_from(granted_keys.len()).unwrap());
    for (key, _) in &refused {
        assert_eq!(node.store.read(key).await.unwrap().holder, None);
    }
    assert_locks_end_by_themselves(&node).await;
}
