//! Copies of a request that arrive after what it made is over.

use etcd_kv::{DeleteRequest, MetadataStore, Op, Txn};
use lock_spi::{AttemptId, Grant, LockStore, Queue, RevokeTarget};
use store_etcd::EtcdClient;
use test_servers::{Cut, Proxy};

use crate::common::{Node, Postman, granted};
use crate::live::stored::Stored;
use crate::live::until::until;
use crate::stage::{LONG, Stage, assert_stays_free, client_at, insist, open, release};

/// How a grant comes to its end.
#[derive(Clone, Copy, Debug)]
enum End {
    Abandon,
    ByHand,
    Release,
    Revoke,
}

const ENDS: [End; 4] = [End::Abandon, End::ByHand, End::Release, End::Revoke];

async fn end<M: MetadataStore + Clone>(
    by: End,
    node: &Node<M>,
    stored: &Stored,
    (grant, attempt): (&Grant, AttemptId),
) {
    match by {
        End::Abandon => {
            let Grant { key, session, .. } = grant;
            let abandon = async || node.store.abandon(key, *session, attempt).await;
            insist("an abandon", abandon).await;
        }
        End::ByHand => {
            let lock = DeleteRequest::key(stored.key("lock/k"));
            assert_eq!(stored.etcd.delete(lock).await.unwrap().deleted, 1);
        }
        End::Release => {
            release(node, grant).await;
        }
        End::Revoke => {
            let request = node.revoke_request("k", RevokeTarget::Grant(grant.token));
            let revoke = async || node.store.revoke(request.clone()).await;
            assert!(insist("a revoke", revoke).await.revoked);
        }
    }
}

/// The copy that nobody answered lies at a member that stands still, and whoever sent it is not there
/// any more to take it back. What was asked again elsewhere has made it void.
#[tokio::test]
async fn what_a_frozen_member_delivers_late_makes_nothing() {
    let stage = Stage::new();
    for by in ENDS {
        let (leader, [frozen, other]) = stage.roles();
        let stored = stage.stored(&[leader, other]).await;
        let hosts = stage.etcd.endpoints();
        let proxy = Proxy::to(&hosts[frozen]).unwrap();
        let way = client_at(&[proxy.endpoint(), hosts[leader].clone()]).await;
        let node = stage.node_on(way).await;
        let session = open(&node, LONG).await;
        stage.etcd.pause(frozen).unwrap();
        let attempt = node.attempt();
        let copy = proxy.arm(attempt.to_string(), Cut::AfterRequest);
        let insert = async || node.insert(session, "k", attempt, Queue::Never).await;
        let grant = granted(insist("a grant", insert).await);
        assert!(copy.has_sprung(), "it was asked first");
        end(by, &node, &stored, (&grant, attempt)).await;
        stage.etcd.resume(frozen).unwrap();
        stage.etcd.await_ready().unwrap();
        assert_stays_free(&stored, "lock/").await;
    }
}

/// A copy of a request that was answered is made by nobody but a network. It may make a ghost, which
/// the next renewal ends.
#[tokio::test]
async fn a_copy_of_an_answered_grant_ends_with_the_next_renewal() {
    let stage = Stage::new();
    let (leader, [frozen, other]) = stage.roles();
    let stored = stage.stored(&[leader, other]).await;
    let node = stage
        .node_on(Postman::new(stage.client(&[leader]).await))
        .await;
    let session = open(&node, LONG).await;
    stage.etcd.pause(frozen).unwrap();
    for by in ENDS {
        let (grant, attempt) = node.take(session, "k").await;
        let copy = grants(&node).pop().expect("what made the grant");
        end(by, &node, &stored, (&grant, attempt)).await;

        let made = stored.etcd.txn(copy).await.unwrap();
        assert!(made.succeeded, "{by:?}: a ghost, for now");
        let extended = node.store.extend(&grant.key, grant.token).await;
        assert_eq!(extended.unwrap(), None, "{by:?}: it is another grant");
        let keep = async || node.keep(session, &[], &[]).await;
        insist("a renewal", keep).await.expect("the session stands");
        assert_stays_free(&stored, "lock/").await;
    }
    stage.etcd.resume(frozen).unwrap();
    until("the one that was frozen follows", async || {
        stage.etcd.await_ready().ok()
    })
    .await;
    assert_stays_free(&stored, "lock/").await;
}

/// What was sent to take the lock.
fn grants(node: &Node<Postman<EtcdClient>>) -> Vec<Txn> {
    let lock = format!("/dlock/{}/lock/k", node.store.descriptor().namespace);
    let puts_lock = |op: &Op| matches!(op, Op::Put(put) if put.key == lock);
    let mut sent = node.kv.sent();
    sent.retain(|txn| txn.then.iter().any(puts_lock));
    sent
}
