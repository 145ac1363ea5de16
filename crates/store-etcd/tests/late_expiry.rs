//! The store on a server that ends leases late, as real ones do: they stand on for a while, and
//! many at once take their turns.
#![allow(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Cluster, TTL, seconds};
use etcd_kv::{LeaseId, MetadataStore, PutRequest};
use etcd_mock::{Expiry, MockStore, Options};
use lock_spi::{Effect, ErrorKind, InsertOutcome, Queue};
use sim_runtime::World;

/// Tells a story on a server that looks for leases to end every half second.
fn tell<F: Future<Output = ()>>(story: impl FnOnce(Cluster) -> F) {
    let world = World::new(0);
    let runtime = world.runtime("node");
    let options = Options::embedded().with_expiry(Expiry::Scanned);
    let server = MockStore::in_step_with_options(Arc::clone(&runtime), options);
    world.block_on(story(Cluster { server, runtime }));
}

#[test]
fn nothing_is_granted_under_a_lease_whose_time_is_over_though_it_stands() {
    tell(async |cluster| {
        cluster.sleep(Duration::from_millis(120)).await;
        let node = cluster.node().await;
        let session = node.session().await;
        cluster.sleep(TTL + Duration::from_millis(100)).await;
        let lease = LeaseId(session.as_i64());
        let probe = PutRequest::new("/dlock/default/probe", "").with_lease(lease);
        let probed = cluster.server.put(probe).await;
        assert!(probed.is_ok(), "the server itself lets it pass");
        let attempt = node.attempt();
        for queue in [Queue::Never, Queue::Join] {
            let refused = node.insert(session, "k", attempt, queue).await;
            let error = refused.unwrap_err();
            let expected = (ErrorKind::SessionGone, Effect::None);
            assert_eq!((error.kind(), error.effect()), expected);
        }
        assert!(cluster.names("lock/").is_empty() && cluster.names("wait/").is_empty());
    });
}

#[test]
fn of_three_thousand_locks_that_expire_together_the_last_is_granted_once_it_is_free() {
    tell(async |cluster| {
        let holders = cluster.node().await;
        let mut held = Vec::new();
        for number in 0..3000 {
            let session = holders.session().await;
            let text = format!("k{number}");
            let (grant, _) = holders.take(session, &text).await;
            held.push((session, text, grant));
        }
        // Of leases that are over at one time, the server ends the lowest first.
        let (_, text, last) = held
            .iter()
            .max_by_key(|(session, ..)| session.as_i64())
            .unwrap();
        cluster.sleep(TTL - seconds(1)).await;
        let waiter = cluster.node().await;
        let session = waiter.session().await;
        let attempt = waiter.attempt();
        let grant = loop {
            match waiter
                .insert(session, text, attempt, Queue::Join)
                .await
                .unwrap()
            {
                InsertOutcome::Granted(grant) => break grant,
                InsertOutcome::Queued(_) => cluster.sleep(Duration::from_millis(100)).await,
                other => panic!("{other:?}"),
            }
        };
        let since_expiry = cluster.runtime.now().since_origin() - TTL;
        assert!(
            since_expiry >= Duration::from_millis(2500),
            "{since_expiry:?}"
        );
        assert!(since_expiry < seconds(4), "{since_expiry:?}");
        assert!(grant.token > last.token);
        assert_eq!(cluster.names("lock/"), [text.as_str()]);
    });
}
