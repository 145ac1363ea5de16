//! The four phases of a call, and what may happen to it between them.

mod support;

use std::task::Poll;

use etcd_kv::{
    Applied, Compare, KeyRange, KvErrorKind, LeaseId, PutRequest, RangeRequest, Txn, WatchRequest,
};
use etcd_mock::{
    CallId, Effect, Engine, Event, LeaseGrantRequest, LeaseKeepAliveRequest, Options, Request,
    Response, StreamId,
};
use support::refusal;

const FIRST: CallId = CallId(1);
const SECOND: CallId = CallId(2);

fn engine() -> Engine {
    Engine::new(Options::default())
}

fn put(key: &'static str) -> Request {
    Request::Put(PutRequest::new(key, "v"))
}

fn send(engine: &mut Engine, call: CallId, request: Request) {
    let effects = engine.step(Event::Send { call, request });
    assert!(effects.is_empty());
}

/// Steps, and answers with what was delivered.
fn step(engine: &mut Engine, event: Event) -> Option<Result<Response, KvErrorKind>> {
    let mut delivered = engine
        .step(event)
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Delivered { answer, .. } => Some(answer.map_err(|error| error.kind())),
            Effect::Readable(_) => None,
        });
    let answer = delivered.next();
    assert!(delivered.next().is_none());
    answer
}

/// All four phases.
fn call(engine: &mut Engine, request: Request) -> Result<Response, KvErrorKind> {
    let call = CallId(99);
    send(engine, call, request);
    for event in [Event::Apply(call), Event::Reply(call)] {
        assert_eq!(step(engine, event), None);
    }
    step(engine, Event::Deliver(call)).expect("an answer is delivered")
}

fn open_watch(engine: &mut Engine, key: &'static str) -> StreamId {
    let request = Request::Watch(WatchRequest::new(KeyRange::key(key)));
    match call(engine, request) {
        Ok(Response::Watch(stream)) => stream,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_is_applied_in_its_second_phase_and_answered_in_its_fourth() {
    let mut engine = engine();
    send(&mut engine, FIRST, put("a"));
    assert_eq!(engine.revision(), 1);
    assert_eq!(step(&mut engine, Event::Apply(FIRST)), None);
    assert_eq!(engine.revision(), 2);
    assert_eq!(step(&mut engine, Event::Reply(FIRST)), None);
    let answer = step(&mut engine, Event::Deliver(FIRST));
    let Some(Ok(Response::Put(response))) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(response.header.revision, 2);
}

#[test]
fn a_lost_request_is_never_applied() {
    let mut engine = engine();
    send(&mut engine, FIRST, put("a"));
    let answer = step(&mut engine, Event::Lose(FIRST));
    assert_eq!(answer, Some(Err(KvErrorKind::Unavailable)));
    assert_eq!(step(&mut engine, Event::Apply(FIRST)), None);
    assert_eq!(engine.revision(), 1);
}

#[test]
fn an_answer_is_lost_on_either_side_of_the_wire_and_the_request_stays_applied() {
    for reply in [false, true] {
        let mut engine = engine();
        send(&mut engine, FIRST, put("a"));
        step(&mut engine, Event::Apply(FIRST));
        if reply {
            step(&mut engine, Event::Reply(FIRST));
        }
        let answer = step(&mut engine, Event::Lose(FIRST));
        assert_eq!(answer, Some(Err(KvErrorKind::Unavailable)));
        assert_eq!(step(&mut engine, Event::Deliver(FIRST)), None);
        assert_eq!(engine.revision(), 2);
    }
}

#[test]
fn a_lost_call_says_that_it_may_have_been_applied() {
    let mut engine = engine();
    send(&mut engine, FIRST, put("a"));
    let effects = engine.step(Event::Lose(FIRST));
    let [
        Effect::Delivered {
            call,
            answer: Err(error),
        },
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!((*call, error.applied()), (FIRST, Applied::Unknown));
}

#[test]
fn a_request_that_arrives_twice_is_applied_twice() {
    let mut engine = engine();
    let create = Txn::when([Compare::create_revision("a", 0)])
        .then([PutRequest::new("a", "v").into()])
        .otherwise([RangeRequest::key("a").into()]);
    send(&mut engine, FIRST, Request::Txn(create));
    step(&mut engine, Event::Apply(FIRST));
    step(&mut engine, Event::Reply(FIRST));
    step(&mut engine, Event::Apply(FIRST));
    let answer = step(&mut engine, Event::Deliver(FIRST));
    let Some(Ok(Response::Txn(first))) = answer else {
        panic!("{answer:?}")
    };
    assert!(first.succeeded, "the first answer was on its way already");
    assert_eq!(engine.revision(), 2, "the second found the key there");

    send(&mut engine, FIRST, put("b"));
    step(&mut engine, Event::Apply(FIRST));
    step(&mut engine, Event::Apply(FIRST));
    assert_eq!(engine.revision(), 4);
}

#[test]
fn calls_are_applied_in_the_order_of_their_events_not_of_their_sending() {
    let mut engine = engine();
    send(&mut engine, FIRST, put("a"));
    send(&mut engine, SECOND, put("b"));
    step(&mut engine, Event::Apply(SECOND));
    step(&mut engine, Event::Apply(FIRST));
    let created: Vec<_> = engine
        .entries()
        .iter()
        .map(|kv| kv.create_revision)
        .collect();
    assert_eq!(created, [3, 2]);
}

#[test]
fn events_that_do_not_fit_the_phase_change_nothing() {
    let mut engine = engine();
    for event in [
        Event::Apply(FIRST),
        Event::Reply(FIRST),
        Event::Deliver(FIRST),
        Event::Lose(FIRST),
    ] {
        assert_eq!(step(&mut engine, event), None);
    }
    send(&mut engine, FIRST, put("a"));
    assert_eq!(step(&mut engine, Event::Reply(FIRST)), None);
    assert_eq!(step(&mut engine, Event::Deliver(FIRST)), None);
    send(&mut engine, FIRST, put("b"));
    step(&mut engine, Event::Apply(FIRST));
    assert_eq!(step(&mut engine, Event::Deliver(FIRST)), None);
    assert_eq!(engine.entries()[0].key, "a");
}

#[test]
fn a_refusal_travels_like_any_answer() {
    let mut engine = engine();
    let answer = call(&mut engine, Request::LeaseRevoke(LeaseId(1)));
    assert_eq!(answer, Err(KvErrorKind::LeaseNotFound));
}

#[test]
fn a_stream_whose_opening_nobody_hears_of_is_closed() {
    let watch = || Request::Watch(WatchRequest::new(KeyRange::key("a")));
    let mut engine = engine();
    for reply in [false, true] {
        send(&mut engine, FIRST, watch());
        step(&mut engine, Event::Apply(FIRST));
        step(&mut engine, Event::Apply(FIRST));
        assert_eq!(engine.open_streams(), 1, "the first one's answer is gone");
        if reply {
            step(&mut engine, Event::Reply(FIRST));
        }
        step(&mut engine, Event::Lose(FIRST));
        assert_eq!(engine.open_streams(), 0);
    }
}

#[test]
fn the_readable_streams_are_told_and_no_others() {
    let mut engine = engine();
    let (a, b) = (open_watch(&mut engine, "a"), open_watch(&mut engine, "b"));
    send(&mut engine, FIRST, put("a"));
    let effects = engine.step(Event::Apply(FIRST));
    assert!(matches!(effects[..], [Effect::Readable(stream)] if stream == a));
    assert!(engine.poll_watch(a).is_ready());
    assert!(engine.poll_watch(b).is_pending());
    engine.step(Event::Close(a));
    assert!(matches!(engine.poll_watch(a), Poll::Ready(None)));
}

#[test]
fn time_moves_by_events_only_and_the_next_one_due_is_known() {
    let mut engine = engine();
    assert_eq!(engine.next_due(), None);
    let id = LeaseId(1);
    let grant = Request::LeaseGrant(LeaseGrantRequest { id, ttl: 2 });
    assert!(call(&mut engine, grant).is_ok());
    assert_eq!(engine.next_due(), Some(200));
    let keep = Request::LeaseKeepAlive(LeaseKeepAliveRequest { id, period: 0 });
    let Ok(Response::LeaseKeepAlive(stream)) = call(&mut engine, keep) else {
        panic!("the keepalive is opened")
    };
    assert_eq!(engine.next_due(), Some(1), "a period of 0 counts as 1");
    engine.step(Event::Advance { ticks: 5 });
    assert_eq!((engine.now(), engine.next_due()), (5, Some(6)));
    engine.step(Event::Close(stream));
    assert_eq!(engine.next_due(), Some(205));
}

#[test]
fn a_restore_breaks_the_streams_off_and_forgets_what_came_after_the_snapshot() {
    let mut engine = engine();
    let snapshot = engine.snapshot();
    let stream = open_watch(&mut engine, "a");
    assert!(call(&mut engine, put("a")).is_ok());
    assert_eq!(engine.revision(), 2);
    let effects = engine.restore(&snapshot);
    assert!(matches!(effects[..], [Effect::Readable(readable)] if readable == stream));
    assert_eq!((engine.revision(), engine.entries().len()), (1, 0));
    let Poll::Ready(Some(answer)) = engine.poll_watch(stream) else {
        panic!("the stream is broken off")
    };
    assert_eq!(refusal(answer), KvErrorKind::Unavailable);
    assert!(matches!(engine.poll_watch(stream), Poll::Ready(None)));
}
