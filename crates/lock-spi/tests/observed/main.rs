//! What `Observed` counts, times and tells.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod capture;
mod scripted;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use lock_spi::names::{event, metric, outcome};
use lock_spi::{
    AttemptId, Effect, Error, ErrorKind, FencingToken, FloorViolation, Gone, GoneReason, Grant,
    InsertOutcome, InsertRequest, KeepAliveRequest, KeptAlive, LockKey, LockOutcome, LockStore,
    Observed, OpenSessionRequest, Owner, Payload, Place, Queue, Reason, RevocationId,
    RevokeRequest, RevokeTarget, SessionId, SessionLease, Ttl, WaitRequest,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tracing::Level;

use crate::capture::{Capture, Told};
use crate::scripted::{Answer, Clock, Scripted};

/// Plays a script against an observed store; answers with what was recorded.
fn observe(
    answers: impl IntoIterator<Item = Answer>,
    play: impl AsyncFnOnce(&Observed<Scripted>),
) -> (Recorded, Vec<Told>) {
    let (recorder, capture) = (DebuggingRecorder::new(), Capture::default());
    let snapshotter = recorder.snapshotter();
    let clock = Arc::new(Clock::default());
    let scripted = Scripted::new(Arc::clone(&clock), answers);
    metrics::with_local_recorder(&recorder, || {
        tracing::subscriber::with_default(capture.clone(), || {
            let store = Observed::new(scripted, clock);
            assert_eq!(poll_once(play(&store)), Poll::Ready(()));
        });
    });
    (Recorded::of(&snapshotter), capture.take())
}

/// Scripted stores answer at once or never: one poll shows which.
fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Metrics by name and outcome; every one was seen to have the tags of the store and no others.
#[derive(Debug, Default)]
struct Recorded {
    counters: BTreeMap<(String, String), u64>,
    durations: BTreeMap<(String, String), Vec<f64>>,
}

impl Recorded {
    fn of(snapshotter: &Snapshotter) -> Self {
        let mut recorded = Self::default();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let (name, labels) = key.key().clone().into_parts();
            let mut tags: BTreeMap<_, _> = labels
                .iter()
                .map(|label| (label.key().to_owned(), label.value().to_owned()))
                .collect();
            assert_eq!(tags.remove("store").as_deref(), Some("scripted"));
            assert_eq!(tags.remove("namespace").as_deref(), Some("tests"));
            let outcome = tags.remove("outcome").unwrap_or_default();
            assert!(tags.is_empty(), "further tags: {tags:?}");
            let id = (name.as_str().to_owned(), outcome);
            match value {
                DebugValue::Counter(count) => drop(recorded.counters.insert(id, count)),
                DebugValue::Histogram(values) => {
                    let seconds = values.into_iter().map(f64::from).collect();
                    recorded.durations.insert(id, seconds);
                }
                DebugValue::Gauge(_) => panic!("a store has no gauges: {id:?}"),
            }
        }
        recorded
    }

    fn count(&self, metric: &str, outcome: &str) -> u64 {
        let id = (metric.to_owned(), outcome.to_owned());
        self.counters.get(&id).copied().unwrap_or(0)
    }

    fn total(&self) -> u64 {
        self.counters.values().sum()
    }
}

fn key() -> LockKey {
    LockKey::new("orders/7").unwrap()
}

fn token(value: u64) -> FencingToken {
    FencingToken::new(value).unwrap()
}

fn session() -> SessionId {
    SessionId::new(0x5e).unwrap()
}

fn grant(value: u64) -> Grant {
    Grant {
        key: key(),
        token: token(value),
        session: session(),
        remaining: None,
    }
}

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, Effect::Unknown, "planted")
}

fn floor_violated() -> Error {
    let violation = FloorViolation {
        token: token(5),
        floor: token(9),
    };
    Error::floor_violated(violation, "behind")
}

fn insert() -> InsertRequest {
    InsertRequest {
        key: key(),
        session: session(),
        attempt: AttemptId::from_u128(1),
        payload: Payload::default(),
        queue: Queue::Join,
    }
}

fn open() -> OpenSessionRequest {
    OpenSessionRequest {
        session: session(),
        owner: Owner::new("worker-3").unwrap(),
        ttl: Ttl::DEFAULT,
    }
}

fn opened() -> Answer {
    Answer::OpenSession(Ok(SessionLease {
        session: session(),
        ttl: Ttl::DEFAULT,
        remaining: Ttl::DEFAULT.as_duration(),
    }))
}

fn keep_alive() -> KeepAliveRequest {
    KeepAliveRequest {
        session: session(),
        grants: Vec::new(),
        attempts: Vec::new(),
    }
}

fn revoke(target: RevokeTarget) -> RevokeRequest {
    RevokeRequest {
        key: key(),
        target,
        id: RevocationId::from_u128(1),
        by: Owner::new("alice").unwrap(),
        reason: Reason::new("stuck since 03:00").unwrap(),
    }
}

fn wait() -> WaitRequest {
    WaitRequest {
        key: key(),
        session: session(),
        attempt: AttemptId::from_u128(1),
        place: None,
    }
}

#[test]
fn every_outcome_of_an_acquire_is_counted_under_its_own_tag() {
    let outcomes = [
        (Ok(InsertOutcome::Granted(grant(7))), outcome::GRANTED),
        (Ok(InsertOutcome::Held(None)), outcome::HELD),
        (Ok(InsertOutcome::Ended), outcome::ENDED),
        (
            Ok(InsertOutcome::Queued(Place {
                position: 1,
                ahead: None,
            })),
            outcome::QUEUED,
        ),
        (Err(error(ErrorKind::Unavailable)), "unavailable"),
        (Err(error(ErrorKind::SessionGone)), "session_gone"),
        (Err(error(ErrorKind::NotLeader)), "not_leader"),
    ];
    let tags: Vec<_> = outcomes.iter().map(|(_, tag)| *tag).collect();
    let answers = outcomes.map(|(answer, _)| Answer::Insert(answer));
    let (recorded, _) = observe(answers, async |store| {
        for _ in 0..tags.len() {
            drop(store.try_insert(insert()).await);
        }
    });
    for tag in &tags {
        assert_eq!(recorded.count(metric::ACQUIRE, tag), 1, "{tag}");
    }
    assert_eq!(recorded.total(), 7);
}

#[test]
fn durations_are_seconds_on_the_clock_of_the_runtime() {
    let answers = [
        Answer::Insert(Ok(InsertOutcome::Held(None))),
        Answer::Insert(Ok(InsertOutcome::Held(None))),
    ];
    let (recorded, _) = observe(answers, async |store| {
        drop(store.try_insert(insert()).await);
        drop(store.try_insert(insert()).await);
    });
    let id = (
        metric::ACQUIRE_DURATION.to_owned(),
        outcome::HELD.to_owned(),
    );
    let seconds = Scripted::TAKES.as_secs_f64();
    assert_eq!(recorded.durations[&id], [seconds, seconds]);
}

#[test]
fn renewals_count_sessions_and_single_grants() {
    let gone = Gone {
        key: key(),
        token: token(7),
        why: GoneReason::Ended,
    };
    let reduced = KeptAlive {
        gone: vec![gone],
        ..KeptAlive::default()
    };
    let answers = [
        Answer::KeepAlive(Ok(Some(KeptAlive::default()))),
        Answer::KeepAlive(Ok(Some(reduced))),
        Answer::KeepAlive(Ok(None)),
        Answer::Extend(Ok(Some(grant(7)))),
        Answer::Extend(Ok(None)),
        Answer::Extend(Err(error(ErrorKind::Unavailable))),
    ];
    let (recorded, told) = observe(answers, async |store| {
        for _ in 0..3 {
            drop(store.keep_alive(keep_alive()).await);
        }
        for _ in 0..3 {
            drop(store.extend(&key(), token(7)).await);
        }
    });
    assert_eq!(recorded.count(metric::RENEW, outcome::KEPT), 2);
    assert_eq!(recorded.count(metric::RENEW, outcome::REDUCED), 1);
    assert_eq!(recorded.count(metric::RENEW, outcome::GONE), 2);
    assert_eq!(recorded.count(metric::RENEW, "unavailable"), 1);
    let renewed = told
        .iter()
        .filter(|told| told.name == event::LOCK_RENEWED && told.level == Level::DEBUG);
    assert_eq!(renewed.count(), 3);
    assert_eq!(told.len(), 3);
}

#[test]
fn a_call_dropped_before_its_answer_is_counted_as_dropped() {
    let (recorded, told) = observe([Answer::Never], async |store| {
        assert!(poll_once(store.await_release(wait())).is_pending());
    });
    assert_eq!(recorded.count(metric::WAIT, outcome::DROPPED), 1);
    assert_eq!(recorded.total(), 1);
    assert!(told.is_empty());
}

#[test]
fn a_wait_is_timed_and_tells_nothing() {
    let (recorded, told) = observe([Answer::AwaitRelease(Ok(()))], async |store| {
        store.await_release(wait()).await.unwrap();
    });
    assert_eq!(recorded.count(metric::WAIT, outcome::WOKEN), 1);
    assert_eq!(recorded.durations.len(), 1);
    assert!(told.is_empty());
}

#[test]
fn a_grant_is_told_with_the_owner_of_its_session() {
    let answers = [
        opened(),
        Answer::Insert(Ok(InsertOutcome::Granted(grant(7)))),
    ];
    let (_, told) = observe(answers, async |store| {
        store.open_session(open()).await.unwrap();
        drop(store.try_insert(insert()).await.unwrap());
    });
    let [granted] = &told[..] else {
        panic!("one event: {told:?}")
    };
    assert_eq!(
        (granted.name, granted.target, granted.level),
        (event::LOCK_GRANTED, "fencelock", Level::INFO)
    );
    let expected = [
        ("key", "orders/7"),
        ("message", "lock_granted"),
        ("namespace", "tests"),
        ("owner", "worker-3"),
        ("session", "000000000000005e"),
        ("store", "scripted"),
        ("token", "7"),
    ];
    let expected = expected.map(|(field, value)| (field, value.to_owned()));
    assert_eq!(granted.fields, BTreeMap::from(expected));
}

#[test]
fn the_owner_of_a_closed_session_is_forgotten() {
    let queued = || {
        Answer::Insert(Ok(InsertOutcome::Queued(Place {
            position: 1,
            ahead: None,
        })))
    };
    let answers = [opened(), queued(), Answer::CloseSession(Ok(())), queued()];
    let (_, told) = observe(answers, async |store| {
        store.open_session(open()).await.unwrap();
        drop(store.try_insert(insert()).await);
        store.close_session(session()).await.unwrap();
        drop(store.try_insert(insert()).await);
    });
    let owners: Vec<_> = told.iter().map(|told| told.field("owner")).collect();
    assert_eq!(owners, [Some("worker-3"), None]);
    assert!(
        told.iter()
            .all(|told| told.name == event::LOCK_QUEUED && told.level == Level::DEBUG)
    );
}

#[test]
fn only_the_call_that_ended_the_grant_tells_its_release() {
    let answers = [Answer::Delete(Ok(true)), Answer::Delete(Ok(false))];
    let (recorded, told) = observe(answers, async |store| {
        assert!(store.delete_if_owner(&key(), token(7)).await.unwrap());
        assert!(!store.delete_if_owner(&key(), token(7)).await.unwrap());
    });
    assert_eq!(recorded.count(metric::RELEASE, outcome::RELEASED), 1);
    assert_eq!(recorded.count(metric::RELEASE, outcome::NOT_HELD), 1);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].name, event::LOCK_RELEASED);
    assert_eq!(told[0].field("token"), Some("7"));
}

#[test]
fn a_revoke_tells_who_why_and_from_whom_and_one_that_changed_nothing_does_not() {
    let outcome_of = |revoked: bool, floor: Option<u64>| LockOutcome {
        revoked,
        previous_token: revoked.then(|| token(7)),
        previous_owner: revoked.then(|| Owner::new("worker-3").unwrap()),
        new_token_floor: floor.map(token),
    };
    let answers = [
        Answer::Revoke(Ok(outcome_of(true, Some(9)))),
        Answer::Revoke(Ok(outcome_of(false, Some(12)))),
        Answer::Revoke(Ok(outcome_of(false, None))),
    ];
    let (recorded, told) = observe(answers, async |store| {
        store.revoke(revoke(RevokeTarget::Whoever)).await.unwrap();
        store.revoke(revoke(RevokeTarget::Whoever)).await.unwrap();
        let stale = RevokeTarget::Grant(token(7));
        store.revoke(revoke(stale)).await.unwrap();
    });
    assert_eq!(recorded.count(metric::REVOKE, outcome::REVOKED), 1);
    assert_eq!(recorded.count(metric::REVOKE, outcome::FLOOR_RAISED), 1);
    assert_eq!(recorded.count(metric::REVOKE, outcome::UNCHANGED), 1);
    let [revoked, raised] = &told[..] else {
        panic!("two events: {told:?}")
    };
    assert_eq!(
        (revoked.name, revoked.level),
        (event::LOCK_REVOKED, Level::WARN)
    );
    assert_eq!(revoked.field("token"), Some("7"));
    assert_eq!(revoked.field("owner"), Some("worker-3"));
    assert_eq!(revoked.field("by"), Some("alice"));
    assert_eq!(revoked.field("reason"), Some("stuck since 03:00"));
    assert_eq!(
        (raised.field("token"), raised.field("floor")),
        (None, Some("12"))
    );
}

#[test]
fn a_violated_floor_is_one_incident_whichever_method_met_it() {
    let answers = [
        Answer::Insert(Err(floor_violated())),
        Answer::Read(Err(floor_violated())),
        Answer::Abandon(Err(error(ErrorKind::FloorViolated))),
        Answer::Insert(Err(error(ErrorKind::Unavailable))),
    ];
    let (recorded, told) = observe(answers, async |store| {
        assert!(store.try_insert(insert()).await.is_err());
        assert!(store.read(&key()).await.is_err());
        let attempt = AttemptId::from_u128(1);
        assert!(store.abandon(&key(), session(), attempt).await.is_err());
        assert!(store.try_insert(insert()).await.is_err());
    });
    assert_eq!(recorded.count(metric::FLOOR_VIOLATION, ""), 3);
    assert_eq!(told.len(), 3);
    for incident in &told {
        assert_eq!(incident.name, event::TOKEN_FLOOR_VIOLATED);
        assert_eq!(incident.target, "fencelock::incident");
        assert_eq!(incident.level, Level::ERROR);
        assert_eq!(incident.field("key"), Some("orders/7"));
    }
    assert_eq!(told[0].field("token"), Some("5"));
    assert_eq!(told[0].field("floor"), Some("9"));
    assert_eq!(told[0].field("session"), Some("000000000000005e"));
}

/// The spans are of the metrics' names, and say what they are about.
#[test]
fn each_operation_is_a_span() {
    let capture = Capture::default();
    let clock = Arc::new(Clock::default());
    let answers = [
        Answer::Insert(Ok(InsertOutcome::Held(None))),
        Answer::AwaitRelease(Ok(())),
        Answer::KeepAlive(Ok(None)),
        Answer::Extend(Ok(None)),
        Answer::Delete(Ok(false)),
        Answer::Revoke(Err(error(ErrorKind::Unavailable))),
    ];
    let store = Observed::new(Scripted::new(Arc::clone(&clock), answers), clock);
    let played = tracing::subscriber::with_default(capture.clone(), || {
        poll_once(async {
            drop(store.try_insert(insert()).await);
            drop(store.await_release(wait()).await);
            drop(store.keep_alive(keep_alive()).await);
            drop(store.extend(&key(), token(7)).await);
            drop(store.delete_if_owner(&key(), token(7)).await);
            drop(store.revoke(revoke(RevokeTarget::Whoever)).await);
        })
    });
    assert_eq!(played, Poll::Ready(()));
    let spans = capture.take_spans();
    let names: Vec<_> = spans.iter().map(|span| span.name).collect();
    let renew = metric::RENEW;
    let expected = [
        metric::ACQUIRE,
        metric::WAIT,
        renew,
        renew,
        metric::RELEASE,
        metric::REVOKE,
    ];
    assert_eq!(names, expected);
    for span in &spans {
        assert_eq!((span.target, span.level), (event::TARGET, Level::DEBUG));
        assert_eq!(span.field("store"), Some("scripted"));
        assert_eq!(span.field("namespace"), Some("tests"));
        let about = span.field("key").or(span.field("session"));
        assert!(about.is_some(), "{span:?}");
    }
}

#[test]
fn answers_pass_unchanged() {
    let answers = [
        Answer::Extend(Ok(Some(grant(7)))),
        Answer::Insert(Err(floor_violated())),
    ];
    observe(answers, async |store| {
        let extended = store.extend(&key(), token(7)).await.unwrap();
        assert_eq!(extended, Some(grant(7)));
        let refused = store.try_insert(insert()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::FloorViolated);
        assert_eq!(refused.effect(), Effect::None);
        assert_eq!(store.descriptor().name, "scripted");
    });
}

#[test]
fn nothing_needs_a_recorder_or_a_subscriber() {
    let clock = Arc::new(Clock::default());
    let answers = [Answer::Delete(Ok(true))];
    let store = Observed::new(Scripted::new(Arc::clone(&clock), answers), clock);
    let deleted = poll_once(async { store.delete_if_owner(&key(), token(7)).await });
    assert!(matches!(deleted, Poll::Ready(Ok(true))));
}
