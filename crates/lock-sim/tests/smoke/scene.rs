//! One run: its nodes, its storm and its end.

use std::sync::Arc;
use std::time::Duration;

use etcd_mock::MockStore;
use futures_util::future::join_all;
use lock_spi::{Instant, Joined, Runtime};
use sim_runtime::{Faulty, Weather, World};

use crate::ledger::Ledger;
use crate::node::Node;
use crate::operator::Operator;
use crate::storm;
use crate::tally::Tally;

pub(crate) const KEYS: [&str; 2] = ["orders/7", "nightly report"];
pub(crate) const TTL: Duration = Duration::from_secs(5);

/// What sessions own, below the namespace.
const LEASED: &[&str] = &["lock/", "wait/", "session/", "epoch/"];

const NODES: [&str; 2] = ["a", "b"];
const WORKERS: usize = 2;
const STORM: Duration = Duration::from_secs(45);
/// No lock is longer in dead hands than its ttl, and no queue stands still longer than it takes to
/// skip its head.
const HAND_OVER_BOUND: Duration = Duration::from_secs(5 + 24 + 5);
/// Stragglers have arrived, and every session was renewed after that.
const AFTERMATH: Duration = Duration::from_secs(10 + 5);

pub(crate) struct Outcome {
    pub(crate) breaches: Vec<String>,
    pub(crate) tally: Tally,
    pub(crate) trace_hash: u64,
}

pub(crate) fn run(seed: u64) -> Outcome {
    let world = World::new(seed);
    let server = MockStore::in_step_with(world.runtime("server"));
    let ledger = Arc::new(Ledger::new(server.clone()));
    // A copy made on the way may grant an attempt once more; without copies nothing may.
    let copies = seed.is_multiple_of(2);
    let scene = Scene {
        world: &world,
        server,
        ledger: &ledger,
        clock: world.runtime("director"),
        weather: Weather {
            duplicates: if copies { 50 } else { 0 },
            ..Weather::stormy()
        },
    };
    world.block_on(scene.play());
    let commits = world.block_on(ledger.witness().commits());
    world.note(&format!("{commits:?}"));
    ledger.judge(&commits, world.panics());
    if !copies {
        ledger.judge_attempts(&commits);
    }
    Outcome {
        breaches: ledger.breaches(),
        tally: ledger.tally(),
        trace_hash: world.trace_hash(),
    }
}

struct Scene<'a> {
    world: &'a World,
    server: MockStore,
    ledger: &'a Arc<Ledger>,
    clock: Arc<dyn Runtime>,
    weather: Weather,
}

impl Scene<'_> {
    async fn play(&self) {
        let until = self.clock.now() + STORM;
        let office = self.world.runtime("operator");
        let operator = Operator::start(
            Arc::clone(&office),
            self.server.clone(),
            Arc::clone(self.ledger),
        );
        let operator = office.run_to_end(operator.await.work(until));

        let (witness, ledger) = (self.world.runtime("witness"), Arc::clone(self.ledger));
        witness.spawn(Box::pin(async move {
            let tell = |revision| ledger.ended(revision);
            ledger.witness().tell_of_ends(tell).await;
        }));

        let nodes = join_all(NODES.map(|name| self.weather_the_storm(name, until))).await;
        // A panic in it is counted by the world, like those of the nodes.
        join_all([operator]).await;
        self.look_for_ghosts(&nodes).await;
        for node in &nodes {
            self.take_every_lock(node).await;
        }
        for node in nodes {
            let left = node.client.shutdown().await.left_to_expire;
            if !left.is_empty() {
                self.ledger.breach(format!("not released: {left:?}"));
            }
        }
        self.clock.sleep(AFTERMATH).await;
        for leftover in self.ledger.witness().leftovers(LEASED) {
            self.ledger.breach(format!("left over: {leftover}"));
        }
    }

    /// A node at work in bad weather, which may be killed and started again; as it is in the end.
    async fn weather_the_storm(&self, name: &str, until: Instant) -> Node {
        // The network outlives the node.
        let air = self.world.runtime(format!("network of {name}"));
        let network = Faulty::new(self.server.clone(), Arc::clone(&air), self.weather.clone());
        let storm = air.run_to_end(storm::rage(Arc::clone(&air), network.faults(), until));
        let (mut node, mut workers) = self.start(name, &network, until).await;
        if self.clock.random().is_multiple_of(2) {
            self.clock.sleep(self.clock.jitter(STORM)).await;
            self.world.kill(name);
            (node, workers) = self.start(name, &network, until).await;
        }
        join_all(workers.into_iter().chain([storm])).await;
        node
    }

    async fn start(
        &self,
        name: &str,
        network: &Faulty<MockStore>,
        until: Instant,
    ) -> (Node, Vec<Joined<()>>) {
        let runtime = self.world.runtime(name);
        let node = Node::start(name, runtime, network.clone(), Arc::clone(self.ledger)).await;
        let work = || node.runtime.run_to_end(node.clone().work(until));
        let workers = std::iter::repeat_with(work).take(WORKERS).collect();
        (node, workers)
    }

    /// Nothing that was given up outlives a renewal, although sessions live on.
    async fn look_for_ghosts(&self, nodes: &[Node]) {
        let anchors = ["anchor of a", "anchor of b"];
        let kept = nodes
            .iter()
            .zip(anchors)
            .map(|(node, key)| self.keep(node, key));
        tokio::join!(biased; self.clock.sleep(AFTERMATH), join_all(kept));
        for ghost in self.ledger.witness().leftovers(&["lock/", "wait/"]) {
            if !ghost.contains("anchor") {
                self.ledger.breach(format!("a ghost: {ghost}"));
            }
        }
    }

    /// Holds a lock, so that its session lives. It may be lost, if its session was about to end when
    /// the storm did, but not while the session has time.
    async fn keep(&self, node: &Node, key: &str) {
        let anchor = match node.client.acquire(key).await {
            Ok(anchor) => anchor,
            Err(error) => return self.ledger.breach(format!("{key}: {error:?}")),
        };
        if let Ok(lost) = self.clock.timeout(AFTERMATH, anchor.lost()).await {
            let left = self.ledger.witness().seconds_left(key).await;
            if left > Some(1) {
                let found = format!("in calm weather: {lost}; its session has {left:?} s left");
                self.ledger.breach(found);
            }
        }
    }

    /// Once the weather is calm, no lock is out of reach.
    async fn take_every_lock(&self, node: &Node) {
        for key in KEYS {
            let acquired = node.client.acquire(key).wait_at_most(HAND_OVER_BOUND).await;
            let released = match acquired {
                Ok(guard) => guard.release().await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = released {
                self.ledger
                    .breach(format!("after the storm, {key}: {error:?}"));
            }
        }
    }
}
