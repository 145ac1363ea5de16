//! More keys under one lease than gRPC lets a message carry unless told otherwise.

use etcd_kv::{KeyRange, LeaseId, MetadataStore, PutRequest, Txn, WatchRequest};
use futures_util::StreamExt;
use lock_spi::{
    ErrorKind, InsertOutcome, LockStore, OpenSessionRequest, Owner, Queue, SessionId, Ttl,
    WaitRequest,
};
use test_servers::Etcd;

use super::node::{RealNode, node};
use crate::common::key;

/// Of one message.
const LIMIT_OF_GRPC: usize = 4 << 20;
/// So many are put in one transaction.
const PUTS_AT_ONCE: usize = 100;

const LOCKS: &str = "/dlock/default/lock/";

/// Opens a session that outlives slow work.
async fn session(node: &RealNode) -> SessionId {
    let request = OpenSessionRequest {
        session: SessionId::random(&*node.runtime),
        owner: Owner::new("worker").unwrap(),
        ttl: Ttl::from_secs(120).unwrap(),
    };
    node.store.open_session(request).await.unwrap().session
}

/// Puts locks of nobody under the lease of a session, with names that are together as long as that.
async fn fill(node: &RealNode, session: SessionId, length_of_each: usize) -> usize {
    let count = LIMIT_OF_GRPC / length_of_each + PUTS_AT_ONCE;
    let numbers: Vec<_> = (0..count).collect();
    for numbers in numbers.chunks(PUTS_AT_ONCE) {
        let puts = numbers.iter().map(|number| {
            let name = format!("{LOCKS}{number:0length_of_each$}");
            let put = PutRequest::new(name, "").with_lease(LeaseId(session.as_i64()));
            put.into()
        });
        node.kv.txn(Txn::default().then(puts)).await.unwrap();
    }
    count
}

#[tokio::test]
async fn a_session_with_more_names_than_fit_a_message_is_renewed() {
    let server = Etcd::start().unwrap();
    let node = node(&server).await;
    let session = session(&node).await;
    let (grant, attempt) = node.take(session, "k").await;
    let (surplus, _) = node.take(session, "surplus").await;
    fill(&node, session, 500).await;
    let lease = LeaseId(session.as_i64());
    assert!(node.kv.lease_time_to_live(lease).await.is_err(), "too long");
    let kept = node.keep(session, &[&grant], &[attempt]).await.unwrap();
    assert_eq!(kept.unwrap().gone, []);
    assert_eq!(node.holder("k").await, Some(grant.token));
    // What nobody accounts for was found all the same.
    assert_eq!(node.holder("surplus").await, None);
    let extended = node.store.extend(&surplus.key, surplus.token).await;
    assert_eq!(extended.unwrap(), None);
}

#[tokio::test]
async fn the_end_of_twenty_thousand_keys_wakes_who_waits_for_one() {
    let server = Etcd::start().unwrap();
    let (holder, waiter) = (node(&server).await, node(&server).await);
    let session_of_holder = session(&holder).await;
    holder.take(session_of_holder, "k").await;
    let count = fill(&holder, session_of_holder, 200).await;
    assert!(count > 20_000);
    let all = WatchRequest::new(KeyRange::prefix(LOCKS));
    let mut watch = holder.kv.watch(all).await.unwrap();
    let waiting = session(&waiter).await;
    let (place, attempt) = waiter.queue(waiting, "k").await;
    let request = WaitRequest {
        key: key("k"),
        session: waiting,
        attempt,
        place: Some(place),
    };
    let revoke = holder.kv.lease_revoke(LeaseId(session_of_holder.as_i64()));
    // A server that is busy with so much may not answer in time; who waits then looks again.
    let wait = async {
        while let Err(error) = waiter.store.await_release(request.clone()).await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        }
    };
    let ((), revoked) = tokio::join!(wait, revoke);
    // It goes on all the same.
    drop(revoked);
    let cascade = watch.next().await.unwrap().unwrap();
    assert_eq!(cascade.events.len(), count + 1, "in one piece");
    let taken = waiter.insert(waiting, "k", attempt, Queue::Join).await;
    assert!(matches!(taken, Ok(InsertOutcome::Granted(_))), "{taken:?}");
}
