//! What a client tells of its holders.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use fencelock::spi::names::{event, metric, tag};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{Act, Scene, acquired, seconds};

/// What was recorded under a name since the last look, by the tag `reason` where there is one.
/// Looking takes the values out, of gauges as well.
fn taken(snapshotter: &Snapshotter, names: &[&str]) -> Vec<(String, Option<String>, DebugValue)> {
    let mut taken = Vec::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        if !names.contains(&key.name()) {
            continue;
        }
        let labels = key.labels().map(|label| (label.key(), label.value()));
        let labels: BTreeMap<_, _> = labels.collect();
        assert_eq!(labels.get(tag::STORE), Some(&"double"));
        assert_eq!(labels.get(tag::NAMESPACE), Some(&"default"));
        let reason = labels.get(tag::REASON).map(|reason| (*reason).to_owned());
        taken.push((key.name().to_owned(), reason, value));
    }
    taken.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    taken
}

/// By how much held locks, sessions and waiters have changed since the last look.
fn changes(snapshotter: &Snapshotter) -> [f64; 3] {
    let names = [metric::HELD, metric::SESSIONS, metric::WAITERS];
    let taken = taken(snapshotter, &names);
    names.map(|wanted| {
        let of_name = taken.iter().find(|(name, ..)| name == wanted);
        match of_name.map(|(_, _, value)| value) {
            Some(DebugValue::Gauge(value)) => value.into_inner(),
            None => 0.0,
            Some(other) => panic!("{wanted} is {other:?}"),
        }
    })
}

#[test]
fn gauges_follow_guards_sessions_and_waiters() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let scene = Scene::new();
        let guards = [scene.guard("a"), scene.guard("b")];
        assert_eq!(changes(&snapshotter), [2.0, 1.0, 0.0]);
        scene.run(async {
            let waiting = scene.client.acquire("a").wait_at_most(seconds(2));
            let looking = async {
                scene.runtime.sleep(seconds(1)).await;
                assert_eq!(changes(&snapshotter), [0.0, 0.0, 1.0]);
            };
            let (waited, ()) = tokio::join!(waiting, looking);
            assert!(waited.is_err());
        });
        assert_eq!(changes(&snapshotter), [0.0, 0.0, -1.0]);
        drop(guards);
        assert_eq!(changes(&snapshotter), [-2.0, 0.0, 0.0]);
        scene.pass(seconds(6));
        assert_eq!(changes(&snapshotter), [0.0, -1.0, 0.0]);
    });
}

#[test]
fn each_loss_is_counted_once_with_its_reason() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let scene = Scene::new();
        let revoked = scene.guard("a");
        let unreachable = [scene.guard("b"), scene.guard("c")];
        let _released = scene.run(scene.guard("d").release());
        scene.store.revoke_now("a", "alice", "test");
        scene.run(revoked.lost());
        scene.store.cut_off(&Act::TIMEOUT);
        scene.run(unreachable[0].lost());
        assert!(!unreachable[1].is_held());
        scene.pass(seconds(60));
        drop((revoked, unreachable));
        let lost = |reason: &str, times| {
            let reason = Some(reason.to_owned());
            (metric::LOST.to_owned(), reason, DebugValue::Counter(times))
        };
        let expected = [lost("revoked", 1), lost("unreachable", 2)];
        assert_eq!(taken(&snapshotter, &[metric::LOST]), expected);
    });
}

/// The fields of the events called `lock_lost`, with their target under "target".
#[derive(Clone, Default)]
struct Losses(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Subscriber for Losses {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().name() == event::LOCK_LOST {
            let mut fields = Fields(BTreeMap::new());
            event.record(&mut fields);
            fields.0.insert("target", event.metadata().target().into());
            self.0.lock().unwrap().push(fields.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Under the target of all events, and with whose lock it was: filters and dashboards need both.
#[test]
fn a_loss_is_told_with_its_owner_under_the_target_of_all_events() {
    let losses = Losses::default();
    tracing::subscriber::with_default(losses.clone(), || {
        let scene = Scene::new();
        let guard = scene.guard("a");
        scene.store.revoke_now("a", "alice", "test");
        scene.run(guard.lost());
    });
    let losses = std::mem::take(&mut *losses.0.lock().unwrap());
    let [loss] = &*losses else {
        panic!("{losses:?}");
    };
    let field = |name: &str| loss.get(name).map(String::as_str);
    assert_eq!(field("target"), Some(event::TARGET));
    assert_eq!(field("key"), Some("a"));
    assert_eq!(field("reason"), Some("revoked"));
    for name in ["store", "namespace", "token", "owner", "session"] {
        let value = field(name);
        assert!(value.is_some_and(|value| !value.is_empty()), "{name}");
    }
}

#[test]
fn slack_of_each_renewal_is_recorded() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let scene = Scene::new();
        let _guard = scene.run(acquired(&scene.client, "k"));
        scene.pass(seconds(11));
        match &taken(&snapshotter, &[metric::RENEW_SLACK])[..] {
            [(_, None, DebugValue::Histogram(slacks))] => {
                let slacks: Vec<_> = slacks.iter().map(|slack| slack.into_inner()).collect();
                assert_eq!(slacks, [10.0, 10.0]);
            }
            other => panic!("{other:?}"),
        }
    });
}
