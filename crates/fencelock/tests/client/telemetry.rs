//! What a client tells of its holders.

use std::collections::BTreeMap;

use fencelock::spi::names::{metric, tag};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

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
