//! Fencing generations of nodes, on the mock store.

mod support;

use etcd_kv::{KvErrorKind, MetadataStore, PutRequest, bump_generation, generation};
use etcd_mock::MockStore;
use futures_util::future::join_all;
use support::{block_on, refusal, value};

#[test]
fn a_node_that_was_never_fenced_is_at_0() {
    block_on(async {
        assert_eq!(generation(&MockStore::new(), "n1").await.unwrap(), 0);
    });
}

#[test]
fn a_bump_raises_the_expected_generation_only() {
    block_on(async {
        let store = MockStore::new();
        assert!(!bump_generation(&store, "n1", 4).await.unwrap());
        for expected in 0..12 {
            assert!(bump_generation(&store, "n1", expected).await.unwrap());
            assert!(!bump_generation(&store, "n1", expected).await.unwrap());
            assert_eq!(generation(&store, "n1").await.unwrap(), expected + 1);
        }
        assert_eq!(generation(&store, "n2").await.unwrap(), 0);
        let stored = value(&store, "gen:n1").await;
        assert_eq!(stored.as_deref(), Some(&b"12"[..]), "a decimal number");
    });
}

#[test]
fn of_bumps_at_one_time_one_wins() {
    block_on(async {
        let store = MockStore::new();
        for expected in 0..3 {
            let bumps = (0..10).map(|_| bump_generation(&store, "n1", expected));
            let won = join_all(bumps).await;
            assert_eq!(
                won.into_iter().filter(|won| *won.as_ref().unwrap()).count(),
                1
            );
        }
    });
}

#[test]
fn what_is_no_generation_is_told_and_the_last_one_is_not_passed() {
    block_on(async {
        let store = MockStore::new();
        store.put(PutRequest::new("gen:n1", "many")).await.unwrap();
        let answer = generation(&store, "n1").await;
        assert_eq!(refusal(answer), KvErrorKind::Protocol);
        let answer = bump_generation(&store, "n1", u64::MAX).await;
        assert_eq!(refusal(answer), KvErrorKind::InvalidArgument);
    });
}
