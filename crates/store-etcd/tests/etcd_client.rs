//! The way to a real cluster: what it answers, and what it says when there is no answer.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use etcd_kv::{
    Applied, Compare, Consistency, DeleteRequest, EventKind, KeyRange, KvError, KvErrorKind,
    LeaseId, MetadataStore, Op, PutRequest, RangeRequest, Txn, WatchRequest, WatchStream,
};
use futures_util::StreamExt;
use lock_spi::{ErrorKind, Runtime, TokioRuntime};
use store_etcd::{ClientConfig, EtcdClient};
use test_servers::{Cut, Direction, Etcd, Proxy};

/// For tests that do not harm it. Their keys and leases are their own.
static SHARED: LazyLock<Etcd> = LazyLock::new(|| Etcd::start().expect("a server of etcd"));

/// No call takes longer, whatever happens.
const LIMIT: Duration = Duration::from_secs(1);

fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current())
}

fn config(hosts: &[String]) -> ClientConfig {
    let config: ClientConfig = format!("etcd://{}", hosts.join(","))
        .parse()
        .expect("a URL");
    config.with_request_timeout(LIMIT)
}

async fn connect(hosts: &[String]) -> EtcdClient {
    let etcd = EtcdClient::connect(config(hosts), runtime()).await;
    etcd.expect("the server answers")
}

async fn shared() -> EtcdClient {
    connect(&SHARED.endpoints()).await
}

async fn next(watch: &mut WatchStream) -> Result<etcd_kv::WatchResponse, KvError> {
    let limit = Duration::from_secs(20);
    let next = runtime().timeout(limit, watch.next()).await;
    next.expect("in time").expect("before the watch ends")
}

fn told<T: std::fmt::Debug>(answer: Result<T, KvError>) -> (KvErrorKind, Applied) {
    let error = answer.expect_err("a refusal");
    (error.kind(), error.applied())
}

#[tokio::test]
async fn what_is_definite_is_told_as_such() {
    let etcd = shared().await;
    let put = |key: &'static str| PutRequest::new(key, "");
    let twice = Txn::default().then([put("definite").into(), put("definite").into()]);
    let invalid = (KvErrorKind::InvalidArgument, Applied::No);
    assert_eq!(told(etcd.txn(twice).await), invalid);
    let many = (0..129).map(|_| Op::from(RangeRequest::key("definite")));
    assert_eq!(told(etcd.txn(Txn::default().then(many)).await), invalid);
    assert_eq!(told(etcd.put(put("")).await), invalid);
    let large = PutRequest::new("definite", vec![0; 2_000_000]);
    assert_eq!(told(etcd.put(large).await), invalid);
    let larger = PutRequest::new("definite", vec![0; 3_000_000]);
    assert_eq!(told(etcd.put(larger).await), invalid);

    let unknown = (KvErrorKind::LeaseNotFound, Applied::No);
    let bound = put("definite").with_lease(LeaseId(4711));
    assert_eq!(told(etcd.put(bound).await), unknown);
    assert_eq!(told(etcd.lease_revoke(LeaseId(4711)).await), unknown);
    etcd.lease_grant(LeaseId(11), 60).await.unwrap();
    let taken = etcd.lease_grant(LeaseId(11), 60).await;
    assert_eq!(told(taken), (KvErrorKind::LeaseExists, Applied::No));
    let endless = etcd.lease_grant(LeaseId(12), 9_000_000_001).await;
    assert_eq!(told(endless), invalid);

    let future = RangeRequest {
        revision: Some(1_000_000),
        ..RangeRequest::key("definite")
    };
    let future = told(etcd.range(future).await);
    assert_eq!(future, (KvErrorKind::FutureRevision, Applied::No));
    let gone = etcd.get("definite".into(), Consistency::Linearizable).await;
    assert_eq!(gone.unwrap().kv, None);
}

#[tokio::test]
async fn an_unknown_lease_is_an_answer() {
    let etcd = shared().await;
    let unknown = LeaseId(21);
    let first = etcd.lease_keep_alive_once(unknown).await.unwrap();
    assert_eq!((first.id, first.ttl), (unknown, 0));
    // The same on a stream that was kept from a renewal before.
    etcd.lease_grant(LeaseId(22), 60).await.unwrap();
    assert_eq!(
        etcd.lease_keep_alive_once(LeaseId(22)).await.unwrap().ttl,
        60
    );
    assert_eq!(etcd.lease_keep_alive_once(unknown).await.unwrap().ttl, 0);
    assert_eq!(etcd.lease_time_to_live(unknown).await.unwrap().ttl, -1);
}

#[tokio::test]
async fn a_renewal_tells_the_term_in_which_it_was_made() {
    let etcd = shared().await;
    let lease = LeaseId(31);
    etcd.lease_grant(lease, 60).await.unwrap();
    let read = etcd
        .get("k".into(), Consistency::Linearizable)
        .await
        .unwrap();
    assert!(read.header.raft_term > 0);
    for _ in 0..3 {
        let renewed = etcd.lease_keep_alive_once(lease).await.unwrap();
        assert_eq!(renewed.header.raft_term, read.header.raft_term);
        assert_eq!((renewed.id, renewed.ttl), (lease, 60));
    }
    let stream = etcd
        .lease_keep_alive(lease, Duration::from_millis(10))
        .await;
    let renewals: Vec<_> = stream.unwrap().take(3).collect().await;
    assert!(
        renewals
            .iter()
            .all(|renewal| renewal.as_ref().unwrap().ttl == 60)
    );
}

#[tokio::test]
async fn renewals_side_by_side_are_not_mixed_up() {
    let etcd = shared().await;
    let leases: Vec<_> = (41..71).map(LeaseId).collect();
    for &lease in &leases {
        etcd.lease_grant(lease, 60 + lease.0).await.unwrap();
    }
    for _ in 0..3 {
        let renewals = leases
            .iter()
            .map(|&lease| etcd.lease_keep_alive_once(lease));
        for renewed in futures_util::future::join_all(renewals).await {
            let renewed = renewed.unwrap();
            assert_eq!(renewed.ttl, 60 + renewed.id.0);
        }
    }
}

#[tokio::test]
async fn a_transaction_does_the_one_or_the_other() {
    let etcd = shared().await;
    let key = Bytes::from("txn/a");
    let txn = Txn::when([Compare::create_revision(key.clone(), 0)])
        .then([
            PutRequest::new(key.clone(), "v").into(),
            RangeRequest::prefix("txn/").into(),
        ])
        .otherwise([DeleteRequest::key(key.clone()).into()]);
    let first = etcd.txn(txn.clone()).await.unwrap();
    assert!(first.succeeded);
    let [
        etcd_kv::OpResponse::Put(_),
        etcd_kv::OpResponse::Range(seen),
    ] = &*first.responses
    else {
        panic!("{first:?}");
    };
    assert_eq!(seen.kvs[0].create_revision, first.header.revision);
    let second = etcd.txn(txn).await.unwrap();
    assert!(!second.succeeded);
    let [etcd_kv::OpResponse::Delete(deleted)] = &*second.responses else {
        panic!("{second:?}");
    };
    assert_eq!(deleted.deleted, 1);
}

#[tokio::test]
async fn a_watch_tells_what_changes_from_where_it_was_asked() {
    let etcd = shared().await;
    let first = etcd.put(PutRequest::new("watch/a", "1")).await.unwrap();
    let mut watch = etcd
        .watch(WatchRequest {
            start: Some(first.header.revision),
            prev_kv: true,
            ..WatchRequest::new(KeyRange::prefix("watch/"))
        })
        .await
        .unwrap();
    etcd.delete(DeleteRequest::key("watch/a")).await.unwrap();
    // What lies in the past may come together.
    let mut events = Vec::new();
    while events.len() < 2 {
        events.extend(next(&mut watch).await.unwrap().events);
    }
    let [put, delete] = &*events else {
        panic!("{events:?}");
    };
    assert_eq!((put.kind, &*put.kv.value), (EventKind::Put, &b"1"[..]));
    assert_eq!(delete.kind, EventKind::Delete);
    assert_eq!(delete.prev_kv.as_ref().unwrap().value, "1");
}

#[tokio::test]
async fn all_that_one_lease_takes_with_it_comes_as_one() {
    let etcd = shared().await;
    let lease = LeaseId(81);
    etcd.lease_grant(lease, 60).await.unwrap();
    // Together more than one message can carry.
    let keys = 30;
    for number in 0..keys {
        let value = vec![b'v'; 200_000];
        let put = PutRequest::new(format!("cascade/{number}"), value).with_lease(lease);
        etcd.put(put).await.unwrap();
    }
    let mut watch = etcd
        .watch(WatchRequest {
            prev_kv: true,
            ..WatchRequest::new(KeyRange::prefix("cascade/"))
        })
        .await
        .unwrap();
    etcd.lease_revoke(lease).await.unwrap();
    let cascade = next(&mut watch).await.unwrap();
    assert_eq!(cascade.events.len(), keys);
    let all = etcd.range(RangeRequest::prefix("cascade/")).await.unwrap();
    assert_eq!(all.count, 0);
}

#[tokio::test]
async fn an_answer_may_be_larger_than_the_default_of_grpc() {
    let etcd = shared().await;
    for number in 0..6 {
        let put = PutRequest::new(format!("large/{number}"), vec![0; 1_000_000]);
        etcd.put(put).await.unwrap();
    }
    let all = etcd.range(RangeRequest::prefix("large/")).await.unwrap();
    assert_eq!(all.kvs.len(), 6);
}

#[tokio::test]
async fn what_was_compacted_is_said_to_be() {
    let server = Etcd::start().unwrap();
    let etcd = connect(&server.endpoints()).await;
    let first = etcd.put(PutRequest::new("k", "1")).await.unwrap();
    let second = etcd.put(PutRequest::new("k", "2")).await.unwrap();
    let compact_revision = second.header.revision;
    etcd.compact(compact_revision).await.unwrap();
    let mut watch = etcd
        .watch(WatchRequest {
            start: Some(first.header.revision),
            ..WatchRequest::new(KeyRange::key("k"))
        })
        .await
        .unwrap();
    let behind = told(next(&mut watch).await);
    assert_eq!(behind.0, KvErrorKind::Compacted { compact_revision });
    assert!(watch.next().await.is_none(), "it ends after its error");
    let past = RangeRequest {
        revision: Some(first.header.revision),
        ..RangeRequest::key("k")
    };
    let past = told(etcd.range(past).await);
    assert!(matches!(past, (KvErrorKind::Compacted { .. }, Applied::No)));
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_sent() {
    let mut server = Etcd::start().unwrap();
    let etcd = connect(&server.endpoints()).await;
    etcd.put(PutRequest::new("k", "")).await.unwrap();
    server.kill(0).unwrap();
    // The connection that stood may have broken under the first one.
    let _broken = etcd.put(PutRequest::new("k", "")).await.unwrap_err();
    let refused = told(etcd.put(PutRequest::new("k", "")).await);
    assert_eq!(refused, (KvErrorKind::Unavailable, Applied::No));
    server.restart(0).unwrap();
    etcd.put(PutRequest::new("k", "")).await.unwrap();
    let nobody = EtcdClient::connect(config(&["127.0.0.1:9".into()]), runtime()).await;
    assert_eq!(nobody.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn silence_ends_with_the_limit_and_a_write_may_have_been_applied() {
    let server = Etcd::start().unwrap();
    let etcd = connect(&server.endpoints()).await;
    let renewing = connect(&server.endpoints()).await;
    server.pause(0).unwrap();
    let runtime = runtime();
    let begun = runtime.now();
    let write = told(etcd.put(PutRequest::new("k", "late")).await);
    assert_eq!(write, (KvErrorKind::Unavailable, Applied::Unknown));
    let read = told(etcd.get("k".into(), Consistency::Linearizable).await);
    assert_eq!(read, (KvErrorKind::Unavailable, Applied::No));
    let renewal = told(renewing.lease_keep_alive_once(LeaseId(1)).await);
    assert_eq!(renewal, (KvErrorKind::Unavailable, Applied::Unknown));
    // After so long a silence new connections are tried first, and nothing is sent without one.
    let unsent = told(etcd.put(PutRequest::new("k", "never")).await);
    assert_eq!(unsent, (KvErrorKind::Unavailable, Applied::No));
    assert!(runtime.now().saturating_since(begun) < LIMIT * 5);
    server.resume(0).unwrap();
    etcd.get("k".into(), Consistency::Linearizable)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_lost_answer_is_of_unknown_effect() {
    let proxy = Proxy::to(&SHARED.endpoints()[0]).unwrap();
    let etcd = connect(&[proxy.endpoint()]).await;
    for (cut, key, was_applied) in [
        (Cut::BeforeRequest, "cut/before", false),
        (Cut::AfterRequest, "cut/after", true),
        (Cut::SwallowAnswer, "cut/answer", true),
    ] {
        let trap = proxy.arm(key, cut);
        let lost = told(etcd.put(PutRequest::new(key, "")).await);
        assert!(trap.has_sprung());
        assert_eq!(lost, (KvErrorKind::Unavailable, Applied::Unknown), "{key}");
        proxy.heal();
        let direct = shared().await;
        let stored = direct.get(key.into(), Consistency::Linearizable).await;
        assert_eq!(stored.unwrap().kv.is_some(), was_applied, "{key}");
    }
    etcd.put(PutRequest::new("cut/none", "")).await.unwrap();
}

#[tokio::test]
async fn a_member_that_is_down_is_not_the_callers_problem() {
    let mut server = Etcd::cluster(3).unwrap();
    let etcd = connect(&server.endpoints()).await;
    etcd.lease_grant(LeaseId(1), 60).await.unwrap();
    for member in 0..3 {
        server.kill(member).unwrap();
        server.await_ready().unwrap();
        for _ in 0..10 {
            etcd.get("k".into(), Consistency::Linearizable)
                .await
                .unwrap();
            etcd.lease_keep_alive_once(LeaseId(1)).await.unwrap();
        }
        // Reads have found out who is up, and so every write finds them.
        for _ in 0..10 {
            etcd.put(PutRequest::new("k", "")).await.unwrap();
        }
        server.restart(member).unwrap();
    }
}

#[tokio::test]
async fn a_member_that_is_silent_is_left_for_another() {
    let server = Etcd::cluster(3).unwrap();
    // The leader is asked through the proxies too, as they stand before all of its clients.
    let proxies: Vec<_> = server
        .endpoints()
        .iter()
        .map(|endpoint| Proxy::to(endpoint).unwrap())
        .collect();
    let hosts: Vec<_> = proxies.iter().map(Proxy::endpoint).collect();
    let etcd = connect(&hosts).await;
    for proxy in &proxies {
        proxy.swallow(Direction::ToClient);
        for _ in 0..5 {
            etcd.get("k".into(), Consistency::Linearizable)
                .await
                .unwrap();
            etcd.put(PutRequest::new("k", "")).await.unwrap();
        }
        proxy.heal();
    }
}

#[tokio::test]
async fn without_a_leader_only_serializable_reads_are_answered() {
    let mut server = Etcd::cluster(3).unwrap();
    let etcd = connect(&server.endpoints()).await;
    etcd.put(PutRequest::new("k", "v")).await.unwrap();
    let mut watch = etcd
        .watch(WatchRequest::new(KeyRange::key("k")))
        .await
        .unwrap();
    server.kill(0).unwrap();
    server.kill(1).unwrap();
    let runtime = runtime();
    let deadline = runtime.now() + Duration::from_secs(10);
    loop {
        let refused = told(etcd.get("k".into(), Consistency::Linearizable).await);
        if refused == (KvErrorKind::NoLeader, Applied::No) {
            break;
        }
        assert!(runtime.now() < deadline, "{refused:?}");
        runtime.sleep(Duration::from_millis(50)).await;
    }
    let write = told(etcd.put(PutRequest::new("k", "")).await);
    assert_eq!(write, (KvErrorKind::NoLeader, Applied::No));
    let stale = etcd
        .get("k".into(), Consistency::Serializable)
        .await
        .unwrap();
    assert_eq!(stale.kv.unwrap().value, "v");
    let serializable = RangeRequest {
        consistency: Consistency::Serializable,
        ..RangeRequest::key("k")
    };
    let stale = etcd.txn(Txn::default().then([serializable.into()])).await;
    assert_eq!(stale.unwrap().responses.len(), 1);
    assert!(next(&mut watch).await.is_err(), "a watch says so too");
}

#[tokio::test]
async fn a_watch_ends_with_its_member_and_a_new_one_goes_on() {
    let mut server = Etcd::start().unwrap();
    let etcd = connect(&server.endpoints()).await;
    let request = WatchRequest::new(KeyRange::key("k"));
    let mut watch = etcd.watch(request.clone()).await.unwrap();
    server.kill(0).unwrap();
    assert_eq!(told(next(&mut watch).await).0, KvErrorKind::Unavailable);
    assert!(watch.next().await.is_none());
    server.restart(0).unwrap();
    let mut watch = etcd.watch(request).await.unwrap();
    etcd.put(PutRequest::new("k", "")).await.unwrap();
    assert_eq!(next(&mut watch).await.unwrap().events.len(), 1);
}

#[tokio::test]
async fn who_may_not_is_denied_and_a_token_is_renewed() {
    let mut server = Etcd::start().unwrap();
    for command in [
        "user add root:rootpw",
        "user add locks:p%w",
        "role add locks",
        "role grant-permission locks --prefix=true readwrite /dlock/",
        "user grant-role locks locks",
        "user grant-role root root",
        "auth enable",
    ] {
        let arguments: Vec<_> = command.split(' ').collect();
        server.ctl(&arguments).unwrap();
    }
    let [host] = &*server.endpoints() else {
        panic!("one member");
    };
    let connect = async |user: &str| {
        let config = format!("etcd://{user}{host}").parse().unwrap();
        EtcdClient::connect(config, runtime()).await
    };
    let wrong = connect("locks:wrong@").await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Denied);
    let nobody = connect("").await.unwrap();
    let denied = (KvErrorKind::Denied, Applied::No);
    let key = "/dlock/default/k";
    assert_eq!(told(nobody.put(PutRequest::new(key, "")).await), denied);

    let etcd = connect("locks:p%25w@").await.unwrap();
    etcd.put(PutRequest::new(key, "")).await.unwrap();
    assert_eq!(told(etcd.put(PutRequest::new("other", "")).await), denied);
    let other = Txn::when([Compare::exists("other")]).then([PutRequest::new(key, "").into()]);
    assert_eq!(told(etcd.txn(other).await), denied);
    let watch = etcd.watch(WatchRequest::new(KeyRange::key("other"))).await;
    let refused = match watch {
        Ok(mut watch) => next(&mut watch).await.map(drop),
        Err(error) => Err(error),
    };
    assert_eq!(told(refused).0, KvErrorKind::Denied);

    // The server forgets its tokens.
    server.kill(0).unwrap();
    server.restart(0).unwrap();
    let runtime = runtime();
    let deadline = runtime.now() + Duration::from_secs(5);
    while let Err(error) = etcd.put(PutRequest::new(key, "")).await {
        assert_eq!(error.kind(), KvErrorKind::Unavailable, "{error}");
        assert!(runtime.now() < deadline);
    }
}

/// B82: the server forgets the token that the stream of the watches was opened with: the next watch
/// is begun on another stream, with a new one.
#[tokio::test]
async fn a_watch_with_a_token_that_was_forgotten_gets_a_new_one() {
    let mut server = Etcd::start().unwrap();
    server.limit_to("locks", "pw", "k").unwrap();
    let [host] = &*server.endpoints() else {
        panic!("one member");
    };
    let config = format!("etcd://locks:pw@{host}").parse().unwrap();
    let etcd = EtcdClient::connect(config, runtime()).await.unwrap();
    let request = WatchRequest::new(KeyRange::key("k"));
    let mut old = etcd.watch(request.clone()).await.unwrap();
    // With the user go its tokens.
    for command in ["delete locks", "add locks:pw", "grant-role locks locks"] {
        let arguments: Vec<_> = ["user"].into_iter().chain(command.split(' ')).collect();
        server.ctl(&arguments).unwrap();
    }
    let runtime = runtime();
    let deadline = runtime.now() + Duration::from_secs(10);
    let mut new = loop {
        match etcd.watch(request.clone()).await {
            Ok(watch) => break watch,
            // Passwords are slow to check on purpose, and there is only so much time for a call.
            Err(error) => assert_eq!(error.kind(), KvErrorKind::Unavailable, "{error}"),
        }
        assert!(runtime.now() < deadline);
    };
    assert!(next(&mut old).await.is_err(), "its stream is over");
    etcd.put(PutRequest::new("k", "")).await.unwrap();
    assert_eq!(next(&mut new).await.unwrap().events.len(), 1);
}
