use etcd_client::proto::{PbEvent, PbKeyValue, PbResponseHeader};
use etcd_kv::KeyRange;
use tokio::sync::mpsc::error::TryRecvError;

use super::*;

type Begun = oneshot::Receiver<Result<(), Refused>>;
type Events = mpsc::UnboundedReceiver<Result<WatchResponse, KvError>>;

const NOW: Instant = Instant::from_origin(std::time::Duration::ZERO);

fn watcher(number: u64) -> (Watcher, Begun, Events) {
    let (begun, begins) = oneshot::channel();
    let (events, received) = mpsc::unbounded_channel();
    let watcher = Watcher {
        number,
        request: WatchRequest::new(KeyRange::key("k")),
        begun,
        events,
    };
    (watcher, begins, received)
}

/// Who watches under this id, and under a number ten times as high.
fn standing(table: &mut Table, id: i64) -> Events {
    let (watcher, mut begun, events) = watcher(10 * id.cast_unsigned());
    table.ask(NOW, watcher);
    assert_eq!(table.take_in(created(id)).unwrap(), Next::GoOn);
    begun.try_recv().unwrap().unwrap();
    events
}

fn message(id: i64) -> PbWatchResponse {
    PbWatchResponse {
        header: Some(PbResponseHeader::default()),
        watch_id: id,
        ..PbWatchResponse::default()
    }
}

fn created(id: i64) -> PbWatchResponse {
    PbWatchResponse {
        created: true,
        ..message(id)
    }
}

fn refused(reason: &str) -> PbWatchResponse {
    PbWatchResponse {
        canceled: true,
        cancel_reason: reason.into(),
        ..created(-1)
    }
}

fn told(id: i64, keys: &[&str], fragment: bool) -> PbWatchResponse {
    let event = |key: &&str| PbEvent {
        r#type: 1,
        kv: Some(PbKeyValue {
            key: key.as_bytes().into(),
            ..PbKeyValue::default()
        }),
        prev_kv: None,
    };
    PbWatchResponse {
        fragment,
        events: keys.iter().map(event).collect(),
        ..message(id)
    }
}

fn next(events: &mut Events) -> Vec<String> {
    let response = events.try_recv().unwrap().unwrap();
    let key = |event: WatchEvent| String::from_utf8(event.kv.key.into()).unwrap();
    response.events.into_iter().map(key).collect()
}

fn error(events: &mut Events) -> KvErrorKind {
    events.try_recv().unwrap().unwrap_err().kind()
}

#[test]
fn everybody_is_told_what_its_own_watch_shows() {
    let mut table = Table::default();
    let (mut one, mut two) = (standing(&mut table, 0), standing(&mut table, 1));
    table.take_in(told(1, &["b"], false)).unwrap();
    table.take_in(told(0, &["a"], false)).unwrap();
    assert_eq!(next(&mut one), ["a"]);
    assert_eq!(next(&mut two), ["b"]);
    // A sign of life, and what is told of a watch that was cancelled.
    for nothing in [message(-1), message(0), told(7, &["c"], false)] {
        assert_eq!(table.take_in(nothing).unwrap(), Next::GoOn);
    }
    assert_eq!(one.try_recv().unwrap_err(), TryRecvError::Empty);
}

#[test]
fn fragments_come_out_as_one_though_others_are_told_in_between() {
    let mut table = Table::default();
    let (mut one, mut two) = (standing(&mut table, 0), standing(&mut table, 1));
    table.take_in(told(0, &["a", "b"], true)).unwrap();
    table.take_in(told(1, &["x"], false)).unwrap();
    table.take_in(told(0, &["c"], true)).unwrap();
    table.take_in(told(0, &["d"], false)).unwrap();
    assert_eq!(next(&mut one), ["a", "b", "c", "d"]);
    assert_eq!(next(&mut two), ["x"]);
    table.take_in(told(0, &["e"], false)).unwrap();
    assert_eq!(next(&mut one), ["e"]);
}

#[test]
fn who_is_gone_is_forgotten_and_its_watch_cancelled_once() {
    let mut table = Table::default();
    let _one = standing(&mut table, 0);
    assert_eq!(table.forget(0), Some(0));
    assert_eq!(table.forget(0), None);
    // Told to be forgotten before it stands: found to be gone when it does.
    let (watcher, begun, events) = watcher(5);
    table.ask(NOW, watcher);
    drop((begun, events));
    assert_eq!(table.forget(5), None);
    assert_eq!(table.take_in(created(1)).unwrap(), Next::Cancel(1));
    // The server confirms it.
    let cancelled = PbWatchResponse {
        canceled: true,
        ..message(1)
    };
    assert_eq!(table.take_in(cancelled).unwrap(), Next::GoOn);
    assert!(table.is_empty() && table.ids.is_empty());
}

#[test]
fn a_watch_that_the_server_ends_says_why_and_the_others_go_on() {
    let mut table = Table::default();
    let (mut one, mut two) = (standing(&mut table, 0), standing(&mut table, 1));
    let compacted = PbWatchResponse {
        canceled: true,
        compact_revision: 7,
        ..message(0)
    };
    table.take_in(compacted).unwrap();
    let compacted = KvErrorKind::Compacted {
        compact_revision: 7,
    };
    assert_eq!(error(&mut one), compacted);
    assert_eq!(one.try_recv().unwrap_err(), TryRecvError::Disconnected);
    table.take_in(told(1, &["b"], false)).unwrap();
    assert_eq!(next(&mut two), ["b"]);
}

#[test]
fn a_watch_that_does_not_begin_says_why_and_whether_another_stream_may_help() {
    let mut table = Table::default();
    let (first, mut begun, _events) = watcher(1);
    table.ask(NOW, first);
    let empty = refused("mvcc: watcher range is empty");
    assert_eq!(table.take_in(empty.clone()).unwrap(), Next::GoOn);
    let refusal = begun.try_recv().unwrap().unwrap_err();
    assert!(matches!(refusal, Refused::ForGood(_)), "{refusal:?}");
    assert_eq!(refusal.into_error().kind(), KvErrorKind::InvalidArgument);
    let (second, mut begun, _events) = watcher(2);
    table.ask(NOW, second);
    table.take_in(empty).unwrap();
    let refusal = begun.try_recv().unwrap().unwrap_err();
    assert!(matches!(refusal, Refused::OnAnOldStream(_)), "{refusal:?}");
}

#[test]
fn the_end_of_the_stream_is_the_end_of_all_watches() {
    let mut table = Table::default();
    let mut one = standing(&mut table, 0);
    let (denied, mut begun, _events) = watcher(1);
    let (waiting, mut waits, _later) = watcher(2);
    table.ask(NOW, denied);
    table.ask(NOW, waiting);
    let ended = table
        .take_in(refused("etcdserver: permission denied"))
        .unwrap_err();
    let refusal = begun.try_recv().unwrap().unwrap_err();
    assert_eq!(refusal.into_error().kind(), KvErrorKind::Denied);
    table.end(&ended);
    assert_eq!(error(&mut one), KvErrorKind::Unavailable);
    assert_eq!(one.try_recv().unwrap_err(), TryRecvError::Disconnected);
    let refusal = waits.try_recv().unwrap().unwrap_err();
    assert!(matches!(refusal, Refused::OnAnOldStream(_)), "{refusal:?}");
}

#[test]
fn a_watch_that_nobody_asked_for_is_the_end_of_the_stream() {
    let mut table = Table::default();
    let error = table.take_in(created(0)).unwrap_err();
    assert_eq!(error.kind(), KvErrorKind::Protocol);
}
