//! What was measured on real etcd, of watches.

mod support;

use etcd_kv::{
    DeleteRequest, EventKind, KeyRange, KeyValue, KvErrorKind, MetadataStore, Op, PutRequest, Txn,
    WatchRequest, WatchResponse, WatchStream,
};
use etcd_mock::{MockStore, Options, Retention};
use support::{block_on, drain, refusal};

async fn put(store: &MockStore, key: &'static str, value: &'static str) {
    let put = store.put(PutRequest::new(key, value)).await;
    put.expect("the key is written");
}

async fn watch_from(store: &MockStore, start: i64) -> WatchStream {
    let request = WatchRequest {
        start: Some(start),
        ..WatchRequest::new(KeyRange::prefix(""))
    };
    store.watch(request).await.expect("the watch is made")
}

/// The responses that wait, none of which is an error.
fn seen(watch: &mut WatchStream) -> Vec<WatchResponse> {
    let (responses, ended) = drain(watch);
    assert!(!ended);
    let seen = responses.into_iter().collect::<Result<_, _>>();
    seen.expect("the watch goes on")
}

fn revisions(watch: &mut WatchStream) -> Vec<i64> {
    let responses = seen(watch);
    responses.iter().map(|seen| seen.header.revision).collect()
}

/// Asserts that the watch says once that it fell behind compaction, and nothing else.
fn assert_compacted(watch: &mut WatchStream, compact_revision: i64) {
    let (mut responses, ended) = drain(watch);
    assert_eq!((responses.len(), ended), (1, true));
    let error = refusal(responses.remove(0));
    assert_eq!(error, KvErrorKind::Compacted { compact_revision });
}

#[test]
fn a_watch_shows_what_comes_after_it_was_made() {
    block_on(async {
        let store = MockStore::new();
        put(&store, "a", "1").await;
        let request = WatchRequest::new(KeyRange::key("a"));
        let mut watch = store.watch(request).await.unwrap();
        put(&store, "a", "2").await;
        put(&store, "b", "2").await;
        store.delete(DeleteRequest::key("a")).await.unwrap();
        assert_eq!(revisions(&mut watch), [3, 5]);
        assert_eq!(revisions(&mut watch), [0; 0]);
    });
}

#[test]
fn a_transaction_is_one_response_in_the_order_of_its_operations() {
    block_on(async {
        let store = MockStore::new();
        put(&store, "x", "1").await;
        let mut watch = watch_from(&store, 3).await;
        let txn = Txn::default().then([
            PutRequest::new("c", "2").into(),
            DeleteRequest::key("x").into(),
            PutRequest::new("b", "2").into(),
        ]);
        store.txn(txn).await.unwrap();
        let responses = seen(&mut watch);
        assert_eq!(responses.len(), 1);
        let events: Vec<_> = responses[0]
            .events
            .iter()
            .map(|event| (event.kind, event.kv.key.clone(), event.kv.mod_revision))
            .collect();
        assert_eq!(
            events,
            [
                (EventKind::Put, "c".into(), 3),
                (EventKind::Delete, "x".into(), 3),
                (EventKind::Put, "b".into(), 3),
            ]
        );
    });
}

#[test]
fn a_watch_sees_of_a_transaction_only_what_it_watches() {
    block_on(async {
        let store = MockStore::new();
        let request = WatchRequest::new(KeyRange::prefix("b"));
        let mut watch = store.watch(request).await.unwrap();
        let txn = Txn::default().then([
            PutRequest::new("a", "v").into(),
            PutRequest::new("b", "v").into(),
        ]);
        store.txn(txn).await.unwrap();
        let responses = seen(&mut watch);
        assert_eq!((responses.len(), responses[0].events.len()), (1, 1));
        assert_eq!(responses[0].events[0].kv.key, "b");
    });
}

#[test]
fn a_deleted_key_is_a_name_and_a_revision_unless_the_previous_is_asked_for() {
    block_on(async {
        let store = MockStore::new();
        put(&store, "a", "1").await;
        for prev_kv in [false, true] {
            let request = WatchRequest {
                start: Some(2),
                prev_kv,
                ..WatchRequest::new(KeyRange::key("a"))
            };
            let mut watch = store.watch(request).await.unwrap();
            store.delete(DeleteRequest::key("a")).await.unwrap();
            let responses = seen(&mut watch);
            let created = &responses[0].events[0];
            assert_eq!((created.kind, &created.prev_kv), (EventKind::Put, &None));
            let deleted = &responses.last().unwrap().events[0];
            let bare = KeyValue {
                key: "a".into(),
                mod_revision: store.revision(),
                ..KeyValue::default()
            };
            assert_eq!((deleted.kind, &deleted.kv), (EventKind::Delete, &bare));
            let previous = deleted.prev_kv.as_ref().map(|kv| kv.value.clone());
            assert_eq!(previous, prev_kv.then(|| "1".into()));
            put(&store, "a", "1").await;
        }
    });
}

#[test]
fn a_watch_from_the_past_catches_up_and_goes_on() {
    block_on(async {
        let store = MockStore::new();
        for value in ["2", "3", "4"] {
            put(&store, "a", value).await;
        }
        let mut watch = watch_from(&store, 3).await;
        put(&store, "a", "5").await;
        assert_eq!(revisions(&mut watch), [3, 4, 5]);
    });
}

#[test]
fn a_watch_from_the_future_waits_for_it() {
    block_on(async {
        let store = MockStore::new();
        let mut watch = watch_from(&store, 4).await;
        for value in ["2", "3", "4", "5"] {
            put(&store, "a", value).await;
        }
        assert_eq!(revisions(&mut watch), [4, 5]);
    });
}

#[test]
fn a_watch_from_before_the_compact_revision_is_made_and_then_cancelled() {
    block_on(async {
        let store = MockStore::new();
        for value in ["2", "3", "4"] {
            put(&store, "a", value).await;
        }
        store.delete(DeleteRequest::key("a")).await.unwrap();
        store.compact(5).await.unwrap();
        assert_compacted(&mut watch_from(&store, 4).await, 5);
        assert_eq!(store.open_streams(), 0);
    });
}

#[test]
fn a_watch_from_the_compact_revision_shows_it_even_if_it_is_a_deletion() {
    block_on(async {
        let store = MockStore::new();
        put(&store, "a", "2").await;
        store.delete(DeleteRequest::key("a")).await.unwrap();
        store.compact(3).await.unwrap();
        let request = WatchRequest {
            start: Some(3),
            prev_kv: true,
            ..WatchRequest::new(KeyRange::key("a"))
        };
        let mut watch = store.watch(request).await.unwrap();
        let responses = seen(&mut watch);
        assert_eq!(responses[0].events[0].kind, EventKind::Delete);
        // What it was before can no longer be read.
        assert_eq!(responses[0].events[0].prev_kv, None);
    });
}

/// B79: a watch that fell behind compaction says so, with the revision to go on from.
#[test]
fn a_watch_that_falls_behind_compaction_is_cancelled_with_the_revision() {
    block_on(async {
        let store = MockStore::new();
        let mut lagging = watch_from(&store, 2).await;
        let mut reading = watch_from(&store, 2).await;
        for value in ["2", "3", "4"] {
            put(&store, "a", value).await;
        }
        assert_eq!(revisions(&mut reading), [2, 3, 4]);
        store.compact(3).await.unwrap();
        put(&store, "a", "5").await;
        assert_compacted(&mut lagging, 3);
        assert_eq!(revisions(&mut reading), [5]);
    });
}

#[test]
fn a_watch_that_has_still_to_show_the_compact_revision_is_not_behind() {
    block_on(async {
        let store = MockStore::new();
        let mut watch = watch_from(&store, 3).await;
        for value in ["2", "3", "4"] {
            put(&store, "a", value).await;
        }
        store.compact(3).await.unwrap();
        assert_eq!(revisions(&mut watch), [3, 4]);
    });
}

#[test]
fn a_store_of_bounded_retention_forgets_by_itself_and_tells_who_lags() {
    block_on(async {
        let retention = Retention::Last(16);
        let store = MockStore::with_options(Options::default().with_retention(retention));
        let mut lagging = watch_from(&store, 2).await;
        for _ in 0..100 {
            put(&store, "a", "v").await;
        }
        let (mut responses, ended) = drain(&mut lagging);
        assert!(ended);
        let error = refusal(responses.remove(0));
        assert!(matches!(error, KvErrorKind::Compacted { .. }), "{error:?}");
        let back = store.revision() - 16;
        let answer = store.get_prefix("".into(), None, Some(back)).await;
        assert_eq!(answer.unwrap().count, 1);
        let answer = store.get_prefix("".into(), None, Some(back - 8)).await;
        assert!(matches!(refusal(answer), KvErrorKind::Compacted { .. }));
    });
}

#[test]
fn a_dropped_watch_is_removed() {
    block_on(async {
        let store = MockStore::new();
        let request = WatchRequest::new(KeyRange::key("a"));
        let (first, second) = (
            store.watch(request.clone()).await.unwrap(),
            store.watch(request).await.unwrap(),
        );
        assert_eq!(store.open_streams(), 2);
        drop(first);
        assert_eq!(store.open_streams(), 1);
        drop(second);
        assert_eq!(store.open_streams(), 0);
    });
}

#[test]
fn a_watch_of_no_key_at_all_is_refused_and_one_of_the_empty_key_shows_nothing() {
    block_on(async {
        let store = MockStore::new();
        let none = KeyRange::Span {
            start: "b".into(),
            end: "a".into(),
        };
        let answer = store.watch(WatchRequest::new(none)).await;
        assert_eq!(refusal(answer), KvErrorKind::InvalidArgument);
        let empty = WatchRequest::new(KeyRange::key(""));
        let mut watch = store.watch(empty).await.unwrap();
        put(&store, "a", "v").await;
        assert!(matches!(drain(&mut watch), (seen, false) if seen.is_empty()));
    });
}

/// What deletes everything from a key on may stand beside a put.
#[test]
fn a_key_that_a_transaction_puts_and_deletes_is_shown_as_both() {
    block_on(async {
        let store = MockStore::new();
        put(&store, "a", "old").await;
        let request = WatchRequest {
            prev_kv: true,
            ..WatchRequest::new(KeyRange::prefix(""))
        };
        let mut watch = store.watch(request).await.unwrap();
        let all = || Op::from(DeleteRequest::new(KeyRange::prefix("")));
        let new = |key: &'static str| Op::from(PutRequest::new(key, "new"));
        let txn = Txn::default().then([new("a"), new("b"), all(), new("c"), all(), new("d")]);
        store.txn(txn).await.unwrap();
        let response = drain(&mut watch).0.remove(0).unwrap();
        let shown = response.events.iter().map(|event| {
            let before = event.prev_kv.as_ref().map(|kv| kv.value.clone());
            (event.kind, &event.kv.key[..], before)
        });
        let old = || Some("old".into());
        let expected = [
            (EventKind::Put, &b"a"[..], old()),
            (EventKind::Put, b"b", None),
            (EventKind::Delete, b"a", old()),
            (EventKind::Delete, b"b", None),
            (EventKind::Put, b"c", None),
            (EventKind::Delete, b"c", None),
            (EventKind::Put, b"d", None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    });
}
