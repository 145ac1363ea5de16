//! What the settings of a server and the work of its operators do to sessions and tokens.

use std::time::Duration;

use etcd_kv::{Consistency, MetadataStore};
use lock_spi::{LockStore, OpenSessionRequest, Owner, SessionId, Ttl};
use test_servers::Etcd;

use super::node::{assert_locks_end_by_themselves, node};
use crate::common::key;

/// A server grants no lease shorter than one and a half elections.
#[tokio::test]
async fn a_ttl_that_the_server_lengthens_is_told_and_kept() {
    let slow = Etcd::builder().election_timeout(Duration::from_secs(5));
    let server = slow.start().unwrap();
    let node = node(&server).await;
    let asked = Ttl::from_secs(2).unwrap();
    let request = OpenSessionRequest {
        session: SessionId::random(&*node.runtime),
        owner: Owner::new("worker").unwrap(),
        ttl: asked,
    };
    let before = node.runtime.now();
    let opened = node.store.open_session(request).await.unwrap();
    assert_eq!(opened.ttl, Ttl::from_secs(8).unwrap());
    assert!(opened.remaining > asked.as_duration());
    let (grant, attempt) = node.take(opened.session, "k").await;
    let kept = node.keep(opened.session, &[&grant], &[attempt]).await;
    let kept = kept.unwrap().unwrap();
    assert!(kept.remaining > asked.as_duration());
    // It lives as long as it is said to.
    node.runtime
        .sleep_until(before + asked.as_duration() + Duration::from_millis(500))
        .await;
    assert_eq!(node.holder("k").await, Some(grant.token));
    let extended = node.store.extend(&grant.key, grant.token).await.unwrap();
    assert!(extended.unwrap().remaining.unwrap() > asked.as_duration());
    assert_locks_end_by_themselves(&node).await;
}

#[tokio::test]
async fn a_token_is_its_keys_create_revision_whatever_is_done_to_the_store() {
    let mut server = Etcd::start().unwrap();
    let node = node(&server).await;
    let session = node.session().await;
    let (grant, _) = node.take(session, "k").await;
    let stored = async || {
        let name = "/dlock/default/lock/k";
        let found = node.kv.get(name.into(), Consistency::Linearizable).await;
        found.unwrap().kv.unwrap()
    };
    let is_token = async || {
        let extended = node.store.extend(&key("k"), grant.token).await.unwrap();
        assert_eq!(extended.unwrap().token, grant.token);
        let stored = stored().await;
        let revisions = (stored.create_revision, stored.mod_revision, stored.version);
        let counter = i64::try_from(grant.token.counter()).unwrap();
        assert_eq!(revisions, (counter, counter, 1));
    };
    for _ in 0..5 {
        is_token().await;
    }
    // Something that can be compacted.
    let (other, _) = node.take(session, "other").await;
    assert!(
        node.store
            .delete_if_owner(&other.key, other.token)
            .await
            .unwrap()
    );
    let revision = node.kv.get("none".into(), Consistency::Linearizable).await;
    let revision = revision.unwrap().header.revision;
    node.kv.compact(revision).await.unwrap();
    is_token().await;
    server.ctl(&["defrag"]).unwrap();
    is_token().await;
    server.kill(0).unwrap();
    server.restart(0).unwrap();
    // The connection that stood has broken under this one.
    drop(node.kv.get("none".into(), Consistency::Linearizable).await);
    is_token().await;
    assert!(
        node.store
            .delete_if_owner(&grant.key, grant.token)
            .await
            .unwrap()
    );
}
