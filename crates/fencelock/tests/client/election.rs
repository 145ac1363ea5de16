//! Elections over the embedded store: reigns, hand-overs, and what observers see.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::{LeaseId, MetadataStore};
use fencelock::fence::HighWaterMark;
use fencelock::spi::{FencingToken, Payload, Runtime};
use fencelock::{Election, ErrorKind, Leader, Leadership, LostReason, Release};
use futures_util::StreamExt;
use sim_runtime::{Faults, Faulty, Weather};

use crate::common::{Embedded, Scene, millis, seconds, ttl};

const KEY: &str = "scheduler";

fn payload(text: &str) -> Payload {
    Payload::new(text.to_owned()).unwrap()
}

async fn campaign(election: &Election, name: &str) -> Leadership {
    election.campaign(payload(name)).await.unwrap()
}

/// What leaders write to: it knows whose each reign was, and notes every write that it refuses.
#[derive(Default)]
struct Resource {
    mark: HighWaterMark,
    reigns: Mutex<BTreeMap<FencingToken, String>>,
    faults: Mutex<Vec<String>>,
}

impl Resource {
    fn write(&self, name: &str, token: FencingToken) {
        let mut reigns = self.reigns.lock().unwrap();
        let whose = reigns.entry(token).or_insert_with(|| name.to_owned());
        if whose != name {
            self.fault(format!("{token} is {whose}'s, and {name} writes with it"));
        }
        if let Err(stale) = self.mark.admit(token) {
            self.fault(format!("{name} leads and is refused: {stale}"));
        }
    }

    fn fault(&self, what: String) {
        self.faults.lock().unwrap().push(what);
    }

    /// The latest reign and whose it is.
    fn latest(&self) -> Option<(FencingToken, String)> {
        let reigns = self.reigns.lock().unwrap();
        let latest = reigns.last_key_value();
        latest.map(|(token, name)| (*token, name.clone()))
    }
}

/// Leads whenever it can, and writes every 100 ms while it does.
async fn stand(
    election: Election,
    name: String,
    resource: Arc<Resource>,
    runtime: Arc<dyn Runtime>,
) {
    loop {
        let Ok(leadership) = election.campaign(payload(&name)).await else {
            runtime.sleep(seconds(1)).await;
            continue;
        };
        let work = async {
            while let Ok(token) = leadership.check() {
                resource.write(&name, token);
                runtime.sleep(millis(100)).await;
            }
        };
        drop(leadership.run(work).await);
    }
}

/// Candidates of one election, each on a node of its own, and one who only observes.
struct Campaigns {
    scene: Embedded,
    resource: Arc<Resource>,
    seen: Arc<Mutex<Vec<Option<Leader>>>>,
    links: BTreeMap<String, Faults>,
}

impl Campaigns {
    fn new(seed: u64) -> Self {
        let scene = Embedded::of_seed(seed);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut leaders = scene.client("observer").election(KEY).unwrap().observe();
        let tell = Arc::clone(&seen);
        scene.world.runtime("observer").spawn(Box::pin(async move {
            while let Some(leader) = leaders.next().await {
                tell.lock().unwrap().push(leader);
            }
        }));
        Self {
            scene,
            resource: Arc::default(),
            seen,
            links: BTreeMap::new(),
        }
    }

    fn start(&mut self, name: String) {
        let weather = Weather {
            delay: millis(1)..millis(5),
            ..Weather::calm()
        };
        // What a killed node has sent still arrives.
        let way = self.scene.world.runtime(format!("way of {name}"));
        let network = Faulty::new(self.scene.server.clone(), way, weather);
        self.links.insert(name.clone(), network.faults());
        let client = self
            .scene
            .client_over(network, &name, |builder| builder.ttl(ttl(3)));
        let election = client.election(KEY).unwrap();
        let runtime = self.scene.world.runtime(&name);
        let resource = Arc::clone(&self.resource);
        let standing = stand(election, name, resource, Arc::clone(&runtime));
        runtime.spawn(Box::pin(standing));
    }

    /// Waits for a reign after `before` that the observer has seen as well, and answers whose it
    /// is.
    fn next_reign(&self, before: Option<FencingToken>) -> (FencingToken, String) {
        for _ in 0..600 {
            if let Some((token, name)) = self.resource.latest()
                && Some(token) > before
                && self.reigns_seen().contains(&(token, name.clone()))
            {
                return (token, name);
            }
            self.scene.pass(millis(100));
        }
        panic!("no leader after {before:?} in a minute");
    }

    fn reigns_seen(&self) -> Vec<(FencingToken, String)> {
        let seen = self.seen.lock().unwrap();
        let leaders = seen.iter().flatten();
        let reigns = leaders.map(|leader| {
            let name = String::from_utf8(leader.payload.as_bytes().to_vec()).unwrap();
            assert_eq!(leader.owner.as_str(), name);
            (leader.token, name)
        });
        reigns.collect()
    }

    /// Nobody was refused who led, and the observer saw each reign once, in order.
    fn assert_sound(&self, reigns: usize) {
        assert_eq!(*self.resource.faults.lock().unwrap(), [""; 0]);
        let held: Vec<_> = self
            .resource
            .reigns
            .lock()
            .unwrap()
            .clone()
            .into_iter()
            .collect();
        assert_eq!(held.len(), reigns);
        assert_eq!(self.reigns_seen(), held);
        assert_eq!(self.scene.world.panics(), 0);
    }
}

/// B100, INV-04: five stand; whoever leads is killed, twenty times.
#[test]
fn killed_leaders_are_followed_one_by_one_and_observed_in_order() {
    for seed in 0..5 {
        let mut campaigns = Campaigns::new(seed);
        for n in 0..5 {
            campaigns.start(format!("candidate {n}"));
        }
        let mut last = None;
        for n in 5..25 {
            let (token, name) = campaigns.next_reign(last);
            campaigns.scene.world.kill(&name);
            campaigns.start(format!("candidate {n}"));
            last = Some(token);
        }
        campaigns.next_reign(last);
        campaigns.assert_sound(21);
    }
}

/// INV-10: a leader that is cut off steps down before another one leads, twenty times.
#[test]
fn leaders_that_are_cut_off_step_down_before_the_next_one_leads() {
    for seed in 0..5 {
        let mut campaigns = Campaigns::new(seed);
        for n in 0..5 {
            campaigns.start(format!("candidate {n}"));
        }
        let mut reign = campaigns.next_reign(None);
        for _ in 0..20 {
            let link = campaigns.links[&reign.1].clone();
            link.partition();
            reign = campaigns.next_reign(Some(reign.0));
            link.heal();
        }
        campaigns.assert_sound(21);
    }
}

#[test]
fn who_resigns_hands_over_at_once_and_those_who_observe_learn_of_it() {
    let scene = Embedded::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| scene.client(name).election(KEY).unwrap());
    let first = scene.run(campaign(&a, "a"));
    let (first_token, now) = (first.token(), || scene.runtime.now());
    let mut leaders = c.observe();
    let observing = async {
        // Nobody may be told in between, where a look falls between the two reigns.
        loop {
            match leaders.next().await.unwrap() {
                Some(leader) if leader.token > first_token => return (leader, now()),
                _ => {}
            }
        }
    };
    let resigning = async {
        scene.runtime.sleep(seconds(60)).await;
        assert_eq!(first.resign().await.unwrap(), Release::Released);
        now()
    };
    let leading = async { (campaign(&b, "b").await, now()) };
    let (resigned, led, told) = scene.run(async { tokio::join!(resigning, leading, observing) });
    let ((second, led), (leader, told)) = (led, told);
    assert!(led.saturating_since(resigned) < millis(10));
    assert!(told.saturating_since(resigned) < millis(100));
    assert_eq!(leader.token, second.token());
    assert_eq!(leader.owner.as_str(), "b");
}

#[test]
fn a_dropped_leadership_is_resigned_in_the_background() {
    let scene = Embedded::new();
    let (a, b) = (scene.client("a"), scene.client("b"));
    drop(scene.run(campaign(&a.election(KEY).unwrap(), "a")));
    let begun = scene.world.elapsed();
    let _second = scene.run(campaign(&b.election(KEY).unwrap(), "b"));
    assert!(scene.world.elapsed() - begun < millis(100));
}

/// B140: one client, two campaigns; clones of an election are no exception.
#[test]
fn of_two_campaigns_of_one_client_one_leads() {
    let scene = Embedded::new();
    let election = scene.client("a").election(KEY).unwrap();
    let first = scene.run(campaign(&election, "1"));
    let again = election.clone();
    scene.run(async {
        let waits = scene.runtime.timeout(seconds(120), campaign(&again, "2"));
        assert!(waits.await.is_err(), "both lead");
        let token = first.check().unwrap();
        assert_eq!(first.resign().await.unwrap(), Release::Released);
        assert!(campaign(&again, "2").await.token() > token);
    });
}

/// A campaign that is dropped leaves the way to the others.
#[test]
fn a_dropped_campaign_is_over() {
    let scene = Embedded::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| scene.client(name).election(KEY).unwrap());
    scene.run(async {
        let first = campaign(&a, "a").await;
        let gives_up = scene.runtime.timeout(seconds(30), campaign(&b, "b"));
        assert!(gives_up.await.is_err());
        first.resign().await.unwrap();
        let third = scene.runtime.timeout(seconds(1), campaign(&c, "c"));
        assert!(third.await.is_ok());
    });
}

#[test]
fn the_leader_can_be_looked_up() {
    let scene = Embedded::new();
    let election = scene.client("a").election(KEY).unwrap();
    let elsewhere = scene.client("b").election(KEY).unwrap();
    assert_eq!(election.key().as_str(), KEY);
    assert_eq!(scene.run(elsewhere.leader()).unwrap(), None);
    let leadership = scene.run(campaign(&election, "10.0.0.7:8080"));
    let leader = scene.run(elsewhere.leader()).unwrap().unwrap();
    assert_eq!(leader.token, leadership.token());
    assert_eq!(leader.owner.as_str(), "a");
    assert_eq!(leader.payload, payload("10.0.0.7:8080"));
}

#[test]
fn work_of_a_leader_stops_with_its_term() {
    let scene = Scene::new();
    let election = scene.client.election(KEY).unwrap();
    let leadership = scene.run(campaign(&election, "a"));
    let held = leadership.held();
    assert_eq!(held.check(), Ok(leadership.token()));
    scene.store.kill_sessions();
    let ran = scene.run(leadership.run(std::future::pending::<()>()));
    let lost = ran.unwrap_err();
    assert_eq!(
        (lost.key.as_str(), &lost.reason),
        (KEY, &LostReason::SessionClosed)
    );
    assert_eq!(scene.run(leadership.lost()), lost);
    assert_eq!(leadership.check(), Err(lost));
    let resigned = scene.run(leadership.resign()).unwrap();
    assert_eq!(resigned, Release::AlreadyGone);
}

#[test]
fn a_client_that_was_shut_down_neither_leads_nor_observes() {
    let scene = Embedded::new();
    let client = scene.client("a");
    let election = client.election(KEY).unwrap();
    let mut leaders = election.observe();
    scene.run(async {
        assert_eq!(leaders.next().await, Some(None));
        client.shutdown().await;
        let refused = election.campaign(payload("a")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ShuttingDown);
        let ends = scene.runtime.timeout(seconds(3), leaders.next()).await;
        assert_eq!(ends, Ok(None));
    });
}

#[test]
fn a_bad_key_is_refused_before_anything_is_asked() {
    let scene = Embedded::new();
    let refused = scene.client("a").election("").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
}

/// An observer behind a network that can fail, and a client whose own network does not.
struct Observed {
    scene: Embedded,
    leaders: fencelock::Client,
    observer: Election,
    faults: Faults,
}

impl Observed {
    fn new() -> Self {
        let scene = Embedded::new();
        let way = scene.world.runtime("way");
        let network = Faulty::new(scene.server.clone(), way, Weather::calm());
        let faults = network.faults();
        let client = scene.client_over(network, "observer", |builder| builder);
        Self {
            leaders: scene.client("leader"),
            observer: client.election(KEY).unwrap(),
            scene,
            faults,
        }
    }

    fn lead(&self, name: &str) -> Leadership {
        let election = self.leaders.election(KEY).unwrap();
        self.scene.run(campaign(&election, name))
    }

    fn calls(&self) -> u64 {
        self.faults.calls().values().sum()
    }
}

#[test]
fn errors_and_lost_sessions_do_not_end_an_observation() {
    let observed = Observed::new();
    let scene = &observed.scene;
    let mut leaders = observed.observer.observe();
    let first = observed.lead("1");
    let told = scene.run(leaders.next()).unwrap().unwrap();
    assert_eq!(told.token, first.token());

    // Long enough for the observer's own session to end.
    observed.faults.partition();
    let nothing = scene.runtime.timeout(seconds(60), leaders.next());
    assert!(scene.run(nothing).is_err());
    scene.run(first.resign()).unwrap();
    let second = observed.lead("2");
    observed.faults.heal();
    let next = scene.runtime.timeout(seconds(4), leaders.next());
    let told = scene.run(next).expect("it goes on").unwrap().unwrap();
    assert_eq!(told.token, second.token());

    observed.faults.fail_next(20);
    scene.run(second.resign()).unwrap();
    let next = scene.runtime.timeout(seconds(60), leaders.next());
    assert_eq!(scene.run(next), Ok(Some(None)), "it goes on");
}

#[test]
fn an_observer_is_never_busy() {
    const TIME: Duration = Duration::from_secs(600);
    let observed = Observed::new();
    let scene = &observed.scene;
    let mut leaders = observed.observer.observe();
    let mut calls_while = |what: &str, most: u64| {
        let before = observed.calls();
        let told = scene.run(scene.runtime.timeout(TIME, async {
            loop {
                drop(leaders.next().await);
            }
        }));
        let Err(_elapsed) = told;
        let calls = observed.calls() - before;
        assert!(calls <= most, "{calls} while {what}");
        assert!(calls >= 100, "{calls} while {what}");
    };
    // Every second at the most, and a look may take several calls.
    calls_while("nobody leads", 1_000);
    let leadership = observed.lead("1");
    calls_while("one leads", 4_000);
    observed.faults.fail_next(u32::MAX);
    calls_while("nothing is answered", 4_000);
    assert!(leadership.check().is_ok());
}

/// Its session is gone, so that every wait for a hint ends at once; it learns of that by a renewal.
#[test]
fn hints_that_nothing_follows_keep_no_observer_busy() {
    const TIME: Duration = Duration::from_secs(100);
    let scene = Embedded::new();
    let leader = scene.client("leader").election(KEY).unwrap();
    let _leadership = scene.run(campaign(&leader, "leader"));
    let way = scene.world.runtime("way");
    let network = Faulty::new(scene.server.clone(), way, Weather::calm());
    let faults = network.faults();
    let observer = scene.client_over(network, "observer", |builder| builder.ttl(ttl(600)));
    let mut leaders = observer.election(KEY).unwrap().observe();
    let calls = || faults.calls().values().sum::<u64>();
    scene.run(async {
        assert!(leaders.next().await.flatten().is_some());
        let nothing = scene.runtime.timeout(seconds(10), leaders.next());
        assert!(nothing.await.is_err());
        let session = observer.health().sessions[0].session;
        let lease = LeaseId(session.as_i64());
        scene.server.lease_revoke(lease).await.unwrap();
        let before = calls();
        let nothing = scene.runtime.timeout(TIME, leaders.next());
        assert!(nothing.await.is_err());
        let calls = calls() - before;
        assert!((50..=600).contains(&calls), "{calls}");
    });
}

#[test]
fn an_observation_that_is_dropped_leaves_nothing_behind() {
    let observed = Observed::new();
    let scene = &observed.scene;
    let leadership = observed.lead("1");
    let mut leaders = observed.observer.observe();
    assert!(scene.run(leaders.next()).unwrap().is_some());
    let more = scene.runtime.timeout(seconds(30), leaders.next());
    assert!(scene.run(more).is_err());
    drop(leaders);
    scene.run(leadership.resign()).unwrap();
    scene.pass(seconds(6));
    assert_eq!(scene.residue(), [""; 0]);
}

#[test]
fn a_slow_reader_gets_the_present_and_no_backlog() {
    let observed = Observed::new();
    let scene = &observed.scene;
    let mut leaders = observed.observer.observe();
    assert_eq!(scene.run(leaders.next()), Some(None));
    let mut last = None;
    for name in ["1", "2", "3"] {
        let leadership = observed.lead(name);
        last = Some(leadership.token());
        match name {
            "3" => std::mem::forget(leadership),
            _ => drop(scene.run(leadership.resign())),
        }
    }
    let told = scene.run(leaders.next()).unwrap().unwrap();
    assert_eq!(Some(told.token), last);
}
