//! A leader whose disk stalls: it goes on answering, while others are elected in its place.

use std::time::Duration;

use etcd_kv::{Consistency, LeaseId, MetadataStore, PutRequest};
use lock_spi::{Instant, LockStore};
use test_servers::Etcd;

use crate::common::{Node, Postman, seconds};
use crate::live::stored::Stored;
use crate::stage::{Stage, assert_transient, open};

/// Of the session.
const TTL: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_leader_whose_disk_stalls_extends_nobodys_belief() {
    let mut stage = Stage::with(Etcd::builder().stallable_disk());
    let (leader, followers) = stage.roles();
    let stored = stage.stored(&followers).await;
    let stalled = stage.client(&[leader]).await;
    let way = Postman::new(stage.client(&followers).await).with_keep_alives_by(stalled.clone());
    let node = stage.node_on(way).await;
    let session = open(&node, TTL).await;
    let (grant, _) = node.take(session, "k").await;
    let mut believed = node.runtime.now() + grant.remaining.unwrap();
    let mut worthless = 0;

    stage.etcd.stall_disk(leader).unwrap();
    let give_up = node.runtime.now() + seconds(60);
    let ended = loop {
        if let Some(ended) = sees_the_end(&node, &stored).await {
            break ended;
        }
        match node.store.extend(&grant.key, grant.token).await {
            Ok(Some(extended)) => {
                let until = node.runtime.now() + extended.remaining.unwrap();
                believed = believed.max(until);
            }
            Ok(None) => break node.runtime.now(),
            Err(error) => assert_transient(&error),
        }
        let lease = LeaseId(session.as_i64());
        worthless += usize::from(confirms_nothing(&stalled, &stored, lease).await);
        assert!(node.runtime.now() < give_up, "it never ends");
        node.runtime.sleep(PAUSE).await;
    };
    assert!(
        believed <= ended,
        "believed until {believed:?}, and ended by {ended:?}"
    );
    assert!(worthless > 0, "the stalled one still leads");
}

/// When the lock was gone, if it is. Something is to be written all the time: a leader that has
/// nothing to write does not notice its disk.
async fn sees_the_end<M: MetadataStore>(node: &Node<M>, stored: &Stored) -> Option<Instant> {
    drop(stored.etcd.put(PutRequest::new("elsewhere", "")).await);
    let lock = stored.key("lock/k").into();
    let answer = stored.etcd.get(lock, Consistency::Linearizable).await;
    let gone = answer.is_ok_and(|answer| answer.kv.is_none());
    gone.then(|| node.runtime.now())
}

/// Whether the one that stalled renews the lease although another one leads, or does not answer.
async fn confirms_nothing(stalled: &impl MetadataStore, stored: &Stored, lease: LeaseId) -> bool {
    let Ok(renewed) = stalled.lease_keep_alive_once(lease).await else {
        return true;
    };
    let read = stored
        .etcd
        .get("elsewhere".into(), Consistency::Linearizable);
    let now = read.await.map(|answer| answer.header.raft_term);
    now.is_ok_and(|now| renewed.header.raft_term < now)
}
