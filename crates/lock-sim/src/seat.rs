//! A place for a node: its name and its network, which outlive it when it crashes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{BoxFuture, Joined, Runtime};
use sim_runtime::{Faults as Steering, Faulty, Mishap, Weather};

use crate::believers::Believers;
use crate::bugs::Planted;
use crate::chronicle::Chronicle;
use crate::cluster::{Cluster, Endpoints, MEMBERS, Member};
use crate::faults::Fault;
use crate::node::{Node, Start};
use crate::record::{Lane, What};
use crate::recorded::Watching;

/// What every node does, whenever it starts.
pub(crate) type Work = Arc<dyn Fn(Node) -> BoxFuture<()> + Send + Sync>;

/// What all seats of a run have in common.
pub(crate) struct House {
    pub(crate) chronicle: Chronicle,
    pub(crate) cluster: Cluster,
    pub(crate) believers: Believers,
    pub(crate) planted: Arc<Planted>,
    pub(crate) ttl: Duration,
    pub(crate) watching: Watching,
}

/// The place of one node.
pub(crate) struct Seat {
    name: Arc<str>,
    house: Arc<House>,
    work: Work,
    /// What runs the network, also when the node does not.
    air: Arc<dyn Runtime>,
    /// Of the ways to the members.
    links: Vec<Steering>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    starts: u32,
    /// Whose lane it is now.
    lane: Option<Lane>,
    runtime: Option<Arc<dyn Runtime>>,
    /// Once its store is open.
    node: Option<Node>,
    work: Option<Joined<()>>,
    paused: bool,
}

impl Seat {
    pub(crate) fn new(
        name: Arc<str>,
        house: Arc<House>,
        work: Work,
        weather: &Weather,
    ) -> Arc<Self> {
        let processes = house.chronicle.processes().clone();
        let air = processes.runtime(format!("network of {name}"));
        let links: Vec<Steering> = (0..MEMBERS)
            .map(|_| Steering::new(weather.clone()))
            .collect();
        for link in &links {
            let (chronicle, name) = (house.chronicle.clone(), Arc::clone(&name));
            link.observe(move |mishap| {
                let lane = Lane::client(Arc::clone(&name), 0);
                chronicle.happened(&lane, named(mishap).name());
            });
        }
        Arc::new(Self {
            name,
            house,
            work,
            air,
            links,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn links(&self) -> &[Steering] {
        &self.links
    }

    /// The lane of the node that has the seat now.
    pub(crate) fn lane(&self) -> Lane {
        let lane = self.state().lane.clone();
        lane.unwrap_or_else(|| Lane::client(Arc::clone(&self.name), 0))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn node(&self) -> Option<Node> {
        self.state().node.clone()
    }

    /// Starts a node, which forgets what an earlier one knew.
    pub(crate) fn start(self: &Arc<Self>) {
        let house = &self.house;
        let runtime = house.chronicle.processes().runtime(Arc::clone(&self.name));
        let mut state = self.state();
        let incarnation = state.starts;
        state.starts += 1;
        let lane = Lane::client(Arc::clone(&self.name), incarnation);
        state.lane = Some(lane.clone());
        state.runtime = Some(Arc::clone(&runtime));
        state.paused = false;
        let links = (0..MEMBERS).zip(&self.links).map(|(index, link)| {
            let member = Member::new(house.cluster.clone(), index, lane.clone());
            Faulty::steered_by(member, Arc::clone(&self.air), link.clone())
        });
        let first = usize::try_from(runtime.random_below(3)).unwrap_or(0);
        let server: Arc<dyn MetadataStore> = Arc::new(Endpoints::new(links.collect(), first));
        let start = Start {
            name: Arc::clone(&self.name),
            incarnation,
            runtime: Arc::clone(&runtime),
            server,
            ttl: house.ttl,
            planted: Arc::clone(&house.planted),
            chronicle: house.chronicle.clone(),
            believers: house.believers.clone(),
            watching: house.watching,
        };
        let (seat, work) = (Arc::clone(self), Arc::clone(&self.work));
        state.work = Some(runtime.run_to_end(async move {
            let node = Node::start(start).await;
            seat.state().node = Some(node.clone());
            work(node).await;
        }));
    }

    /// The process ends where it stands.
    pub(crate) fn crash(&self) {
        let mut state = self.state();
        let (Some(lane), Some(_)) = (state.lane.clone(), state.runtime.take()) else {
            return;
        };
        let node = state.node.take();
        let work = state.work.take();
        state.paused = false;
        drop(state);
        self.house.chronicle.note(&lane, What::Crashed);
        self.house.believers.forget(&lane);
        self.house.chronicle.processes().kill(&self.name);
        drop((node, work));
    }

    pub(crate) fn is_down(&self) -> bool {
        self.state().runtime.is_none()
    }

    /// The process stands still until it is resumed.
    pub(crate) fn pause(&self) {
        let mut state = self.state();
        if state.paused || state.runtime.is_none() {
            return;
        }
        state.paused = true;
        drop(state);
        self.house.chronicle.note(&self.lane(), What::Paused);
        self.house.chronicle.processes().pause(&self.name);
    }

    pub(crate) fn resume(&self) {
        let paused = std::mem::take(&mut self.state().paused);
        if paused {
            self.house.chronicle.note(&self.lane(), What::Resumed);
            self.house.chronicle.processes().resume(&self.name);
        }
    }

    /// Its clocks go wrong by so much from now on.
    pub(crate) fn set_clock_rate(&self, rate: i64) {
        let lane = self.lane();
        self.house
            .chronicle
            .note(&lane, What::ClockChanged { rate });
        let processes = self.house.chronicle.processes();
        processes.set_clock_rate(&self.name, rate);
    }

    /// Its clocks skip some time: for all that it can know, they went fast.
    pub(crate) fn jump_clock(&self, ahead: Duration) {
        let lane = self.lane();
        let rate = i64::try_from(ahead.as_micros()).unwrap_or(i64::MAX);
        self.house
            .chronicle
            .note(&lane, What::ClockChanged { rate });
        let processes = self.house.chronicle.processes();
        processes.jump_clock(&self.name, ahead);
    }

    /// Resolves when the node's work is done, whichever node has the seat then.
    pub(crate) async fn done(&self) {
        loop {
            let Some(work) = self.state().work.take() else {
                return;
            };
            // It ends early when the node crashes, and then another one works.
            let _ended = work.await;
        }
    }

    /// Runs something on the node that has the seat, to its end.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce(Node) -> BoxFuture<T>,
    ) -> Option<Joined<T>> {
        let node = self.node()?;
        let runtime = Arc::clone(node.runtime());
        Some(runtime.run_to_end(act(node)))
    }
}

const fn named(mishap: Mishap) -> Fault {
    match mishap {
        Mishap::Refused => Fault::Refused,
        Mishap::RequestLost => Fault::RequestLost,
        Mishap::ReplyLost => Fault::ReplyLost,
        Mishap::Straggles => Fault::Straggler,
        Mishap::Copied => Fault::Duplicate,
    }
}
