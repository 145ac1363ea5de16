//! What the network between a store and its server does to calls and streams.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{
    Applied, Consistency, EventKind, KeyRange, KvErrorKind, LeaseId, MetadataStore, PutRequest,
    WatchRequest,
};
use etcd_mock::MockStore;
use futures_util::StreamExt;
use lock_spi::Runtime;
use sim_runtime::{Faults, Faulty, Weather, World};

const SECOND: Duration = Duration::from_secs(1);

struct Scene {
    world: World,
    runtime: Arc<dyn Runtime>,
    server: MockStore,
    network: Faulty<MockStore>,
    faults: Faults,
}

impl Scene {
    fn new(weather: Weather) -> Self {
        Self::with_seed(7, weather)
    }

    fn with_seed(seed: u64, weather: Weather) -> Self {
        let world = World::new(seed);
        let server = MockStore::in_step_with(world.runtime("server"));
        let runtime = world.runtime("client");
        let network = Faulty::new(server.clone(), Arc::clone(&runtime), weather);
        let faults = network.faults();
        Self {
            world,
            runtime,
            server,
            network,
            faults,
        }
    }

    async fn put(&self, key: &'static str) -> Result<(), etcd_kv::KvError> {
        let request = PutRequest::new(key, "value");
        self.network.put(request).await.map(drop)
    }

    /// A put by a caller who gives up after a second.
    async fn put_impatiently(&self, key: &'static str) -> Option<Result<(), etcd_kv::KvError>> {
        self.runtime.timeout(SECOND, self.put(key)).await.ok()
    }

    fn stored(&self) -> Vec<String> {
        let entries = self.server.entries();
        let keys = entries.iter().map(|kv| kv.key.to_vec());
        keys.map(|key| String::from_utf8(key).unwrap()).collect()
    }
}

fn slow() -> Weather {
    Weather {
        delay: Duration::from_millis(100)..Duration::from_millis(200),
        ..Weather::calm()
    }
}

#[test]
fn a_calm_network_changes_nothing_and_takes_no_time() {
    let scene = Scene::new(Weather::calm());
    scene.world.block_on(async {
        scene.put("a").await.unwrap();
        let got = scene.network.get("a".into(), Consistency::Linearizable);
        assert_eq!(got.await.unwrap().kv.unwrap().value, "value");
        let refused = scene.network.compact(99).await.unwrap_err();
        assert_eq!(refused.kind(), KvErrorKind::FutureRevision);
    });
    assert_eq!(scene.world.elapsed(), Duration::ZERO);
}

#[test]
fn request_and_reply_each_take_their_time() {
    let scene = Scene::new(slow());
    scene.world.block_on(scene.put("a")).unwrap();
    let took = scene.world.elapsed();
    assert!(
        Duration::from_millis(200) <= took && took < Duration::from_millis(400),
        "{took:?}"
    );
}

#[test]
fn a_lost_reply_leaves_the_call_applied_and_its_caller_in_doubt() {
    let scene = Scene::new(Weather::calm());
    scene.faults.lose_next_replies(1);
    scene.world.block_on(async {
        let error = scene.put("a").await.unwrap_err();
        assert_eq!(error.kind(), KvErrorKind::Unavailable);
        assert_eq!(error.applied(), Applied::Unknown);
        scene.put("b").await.unwrap();
    });
    assert_eq!(scene.stored(), ["a", "b"]);
}

#[test]
fn a_lost_request_leaves_its_caller_in_the_same_doubt() {
    let scene = Scene::new(Weather::calm());
    scene.faults.lose_next_requests(1);
    scene.world.block_on(async {
        // A read is not what the script waits for.
        let read = scene.network.get("a".into(), Consistency::Linearizable);
        read.await.unwrap();
        let error = scene.put("a").await.unwrap_err();
        assert_eq!(error.applied(), Applied::Unknown);
        scene.put("b").await.unwrap();
    });
    assert_eq!(scene.stored(), ["b"]);
}

#[test]
fn a_call_that_is_not_sent_is_known_not_to_be_applied() {
    let scene = Scene::new(Weather::calm());
    scene.faults.fail_next(2);
    scene.world.block_on(async {
        let read = scene.network.get("a".into(), Consistency::Linearizable);
        assert_eq!(read.await.unwrap_err().applied(), Applied::No);
        assert_eq!(scene.put("a").await.unwrap_err().applied(), Applied::No);
        scene.put("b").await.unwrap();
    });
    assert_eq!(scene.stored(), ["b"]);
}

#[test]
fn dropping_a_call_does_not_unsend_it() {
    let scene = Scene::new(slow());
    scene.world.block_on(async {
        let limit = Duration::from_millis(50);
        let given_up = scene.runtime.timeout(limit, scene.put("a")).await;
        assert!(given_up.is_err());
        assert!(scene.stored().is_empty());
        scene.runtime.sleep(SECOND).await;
    });
    assert_eq!(scene.stored(), ["a"]);
}

#[test]
fn a_partition_is_silent_and_heals() {
    let scene = Scene::new(Weather::calm());
    scene.faults.partition();
    scene.world.block_on(async {
        assert!(scene.put_impatiently("a").await.is_none());
        scene.faults.heal();
        scene.put("b").await.unwrap();
    });
    assert_eq!(scene.stored(), ["b"]);
}

#[test]
fn a_partition_swallows_the_reply_that_travels() {
    let scene = Scene::new(slow());
    scene.world.block_on(async {
        let put = scene.put_impatiently("a");
        let cut = async {
            while scene.stored().is_empty() {
                scene.runtime.sleep(Duration::from_millis(10)).await;
            }
            scene.faults.partition();
        };
        let (answer, ()) = tokio::join!(biased; put, cut);
        assert!(answer.is_none());
    });
    assert_eq!(scene.stored(), ["a"]);
}

#[test]
fn a_held_request_arrives_when_it_is_released_though_its_caller_has_gone() {
    let scene = Scene::new(Weather::calm());
    scene.faults.hold_requests();
    scene.world.block_on(async {
        assert!(scene.put_impatiently("a").await.is_none());
        scene.runtime.sleep(60 * SECOND).await;
        assert!(scene.stored().is_empty());
        scene.faults.release_requests();
        scene.put("b").await.unwrap();
        scene.runtime.sleep(SECOND).await;
    });
    assert_eq!(scene.stored(), ["a", "b"]);
}

#[test]
fn a_copied_request_is_applied_twice() {
    let scene = Scene::new(Weather {
        duplicates: 1000,
        ..slow()
    });
    scene.world.block_on(async {
        scene.put("a").await.unwrap();
        assert_eq!(scene.server.entries()[0].version, 1);
        scene.runtime.sleep(10 * SECOND).await;
    });
    assert_eq!(scene.server.entries()[0].version, 2);
}

#[test]
fn a_straggler_is_overtaken_and_arrives_though_its_caller_has_gone() {
    let scene = Scene::new(Weather {
        stragglers: 1000,
        ..Weather::calm()
    });
    scene.world.block_on(async {
        while scene.put_impatiently("a").await.is_some() {}
        assert!(scene.stored().len() <= 1);
        scene.faults.set_weather(Weather::calm());
        scene.put("b").await.unwrap();
        let before = scene.server.revision();
        scene.runtime.sleep(10 * SECOND).await;
        assert_eq!(scene.server.revision(), before + 1);
    });
    assert_eq!(scene.stored(), ["a", "b"]);
}

#[test]
fn silence_and_resets_come_as_often_as_the_weather_has_it() {
    let scene = Scene::new(Weather {
        lost_requests: 500,
        resets: 500,
        ..Weather::calm()
    });
    let (mut answered, mut silent, mut reset) = (0, 0, 0);
    scene.world.block_on(async {
        for _ in 0..400 {
            match scene.put_impatiently("a").await {
                Some(Ok(())) => answered += 1,
                Some(Err(_)) => reset += 1,
                None => silent += 1,
            }
        }
    });
    assert!((150..250).contains(&answered), "{answered}");
    assert!((60..140).contains(&silent), "{silent}");
    assert!((60..140).contains(&reset), "{reset}");
}

#[test]
fn a_watch_is_silent_in_a_partition_and_ends_when_it_heals() {
    let scene = Scene::new(Weather::calm());
    scene.world.block_on(async {
        let request = WatchRequest::new(KeyRange::prefix("a"));
        let mut watch = scene.network.watch(request).await.unwrap();
        scene.put("a1").await.unwrap();
        let seen = watch.next().await.unwrap().unwrap();
        assert_eq!(seen.events[0].kind, EventKind::Put);

        scene.faults.partition();
        scene.server.put(PutRequest::new("a2", "")).await.unwrap();
        let silence = scene.runtime.timeout(60 * SECOND, watch.next()).await;
        assert!(silence.is_err());

        scene.faults.heal();
        let cut = watch.next().await.unwrap().unwrap_err();
        assert_eq!(cut.kind(), KvErrorKind::Unavailable);
        assert!(watch.next().await.is_none());
    });
}

#[test]
fn changes_arrive_late_and_in_order() {
    let scene = Scene::new(slow());
    scene.world.block_on(async {
        let request = WatchRequest::new(KeyRange::prefix("a"));
        let mut watch = scene.network.watch(request).await.unwrap();
        let begun = scene.runtime.now();
        for key in ["a1", "a2", "a3"] {
            scene.server.put(PutRequest::new(key, "")).await.unwrap();
        }
        for key in ["a1", "a2", "a3"] {
            let seen = watch.next().await.unwrap().unwrap();
            assert_eq!(seen.events[0].kv.key, key);
        }
        let took = scene.runtime.now().saturating_since(begun);
        assert!(
            Duration::from_millis(100) <= took && took < Duration::from_millis(400),
            "{took:?}"
        );
    });
}

#[test]
fn reset_streams_end_at_once() {
    let scene = Scene::new(Weather::calm());
    scene.world.block_on(async {
        let request = WatchRequest::new(KeyRange::prefix("a"));
        let mut watch = scene.network.watch(request.clone()).await.unwrap();
        scene.faults.reset_streams();
        assert!(watch.next().await.unwrap().is_err());
        let mut again = scene.network.watch(request).await.unwrap();
        scene.put("a").await.unwrap();
        assert!(again.next().await.unwrap().is_ok());
    });
}

#[test]
fn a_keepalive_stream_keeps_its_lease_until_a_partition_cuts_it() {
    let scene = Scene::new(Weather::calm());
    let lease = LeaseId(5);
    scene.world.block_on(async {
        scene.network.lease_grant(lease, 10).await.unwrap();
        let bound = PutRequest::new("a", "").with_lease(lease);
        scene.network.put(bound).await.unwrap();
        let period = 3 * SECOND;
        let mut renewals = scene.network.lease_keep_alive(lease, period).await.unwrap();
        assert_eq!(renewals.next().await.unwrap().unwrap().ttl, 10);
        // Nobody reads meanwhile, and it renews all the same.
        scene.runtime.sleep(60 * SECOND).await;
        assert_eq!(scene.stored(), ["a"]);

        scene.faults.partition();
        scene.runtime.sleep(11 * SECOND).await;
        assert!(scene.stored().is_empty());
        scene.faults.heal();
        while let Some(answer) = renewals.next().await {
            drop(answer);
        }
    });
}

#[test]
fn a_dropped_keepalive_stream_renews_no_more() {
    let scene = Scene::new(Weather::calm());
    let lease = LeaseId(5);
    scene.world.block_on(async {
        scene.network.lease_grant(lease, 10).await.unwrap();
        drop(scene.network.lease_keep_alive(lease, SECOND).await.unwrap());
        scene.runtime.sleep(11 * SECOND).await;
        let left = scene.network.lease_time_to_live(lease).await.unwrap();
        assert_eq!(left.ttl, -1);
    });
}

#[test]
fn calls_are_counted_by_method() {
    let scene = Scene::new(Weather::calm());
    scene.faults.fail_next(1);
    scene.world.block_on(async {
        drop(scene.put("a").await);
        scene.put("a").await.unwrap();
        let read = scene.network.get("a".into(), Consistency::Linearizable);
        read.await.unwrap();
    });
    let calls: Vec<_> = scene.faults.calls().into_iter().collect();
    assert_eq!(calls, [("get", 1), ("put", 2)]);
}

#[test]
fn one_seed_has_one_weather() {
    let story = |seed| {
        let scene = Scene::with_seed(seed, Weather::stormy());
        scene.world.block_on(async {
            for _ in 0..50 {
                drop(scene.put_impatiently("a").await);
            }
        });
        scene.world.trace_hash()
    };
    assert_eq!(story(1), story(1));
    assert_ne!(story(1), story(2));
}

#[test]
fn a_link_can_be_cut_one_way() {
    for (requests, stored) in [(true, vec![]), (false, vec!["a"])] {
        let scene = Scene::new(Weather::calm());
        match requests {
            true => scene.faults.cut_requests(),
            false => scene.faults.cut_replies(),
        }
        scene.world.block_on(async {
            assert!(scene.put_impatiently("a").await.is_none());
            assert_eq!(scene.stored(), stored);
            scene.faults.heal();
            scene.put("b").await.unwrap();
        });
    }
}

#[test]
fn an_observer_hears_of_every_mishap() {
    let scene = Scene::new(Weather::calm());
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    scene
        .faults
        .observe(move |mishap| heard.lock().unwrap().push(mishap));
    scene.faults.lose_next_replies(1);
    scene.world.block_on(async {
        assert!(scene.put("a").await.is_err());
        scene.put("b").await.unwrap();
    });
    assert_eq!(*told.lock().unwrap(), [sim_runtime::Mishap::ReplyLost]);
}
