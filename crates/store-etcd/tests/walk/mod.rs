//! Random walks of the protocol, on any server of etcd's shape, and what must be true of each.

pub(crate) mod findings;
mod history;
mod operator;
mod stage;
mod told;
mod walker;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::SessionId;
use sim_runtime::Weather;

use history::{Moment, Witness};
use operator::Operator;
use told::Told;
use walker::Walker;

pub(crate) use stage::Stage;

/// Nothing of a storm arrives later than this after it.
const AFTERMATH: Duration = Duration::from_secs(11);

/// How a walk goes.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) walkers: usize,
    pub(crate) rounds: usize,
    /// The longest between two steps.
    pub(crate) pause: Duration,
    pub(crate) weather: Weather,
    /// Whether walkers sleep past the ends of their sessions.
    pub(crate) oversleeps: bool,
    /// For all of it.
    pub(crate) limit: Duration,
}

/// What came of a walk.
#[derive(Debug)]
pub(crate) struct Tale {
    history: Vec<Moment>,
    told: Told,
    /// What stood at the end without anybody who stands by it.
    left: Vec<String>,
    /// Whether everybody got to the end.
    finished: bool,
}

/// A storm without copies: what a proxy repeats after its answer is for reconciliation to end.
pub(crate) fn storm() -> Weather {
    Weather {
        lost_requests: 60,
        lost_replies: 60,
        stragglers: 40,
        duplicates: 0,
        ..Weather::stormy()
    }
}

impl Tale {
    /// Fails, and tells all of it, when anything is wrong with the walk of this seed.
    pub(crate) fn assert_right(&self, seed: u64, copies: bool) {
        let findings = self.findings(copies);
        let right = findings.is_empty();
        assert!(right, "FENCELOCK_SEED={seed}: {findings:#?}\n{self:?}");
    }
}

/// Walks.
pub(crate) async fn walk<M: MetadataStore + Clone>(stage: Stage<M>, plan: Plan) -> Tale {
    let clock = stage.runtime("witness");
    let witness = Witness::begin(&stage.server, Arc::clone(&clock), &stage.namespace).await;
    let told = Arc::new(Mutex::new(Told::default()));
    let all_of_it = through_the_storm(&stage, &plan, &told);
    let left = clock.timeout(plan.limit, all_of_it).await;
    let history = witness.finish(&stage.server).await;
    let told = told.lock().unwrap().clone();
    Tale {
        history,
        told,
        finished: left.is_ok(),
        left: left.unwrap_or_default(),
    }
}

/// Walks to the end; answers with what is left when nobody stands by anything.
async fn through_the_storm<M: MetadataStore + Clone>(
    stage: &Stage<M>,
    plan: &Plan,
    told: &Arc<Mutex<Told>>,
) -> Vec<String> {
    let operator = Operator {
        stage: stage.clone(),
        node: stage.node("operator").await,
        told: Arc::clone(told),
        plan: plan.clone(),
    };
    let mut walks = Vec::new();
    for number in 0..plan.walkers {
        let node = stage.node(&format!("walker {number}")).await;
        let runtime = Arc::clone(&node.runtime);
        let walker = Walker {
            stage: stage.clone(),
            session: SessionId::random(&*runtime),
            node,
            told: Arc::clone(told),
            plan: plan.clone(),
        };
        walks.push(runtime.run_to_end(walker.walk()));
    }
    let walks = async {
        let mut walkers = Vec::new();
        for walk in walks {
            walkers.push(walk.await.unwrap());
        }
        walkers
    };
    let mut walkers = tokio::select! {
        biased;
        walkers = walks => walkers,
        never = operator.interfere() => never,
    };
    // What straggles has arrived then, and the second renewal ends what nobody accounts for.
    for walker in &mut walkers {
        walker.settle().await;
    }
    stage.runtime("pause").sleep(AFTERMATH).await;
    for walker in &mut walkers {
        walker.settle().await;
    }
    let left = stage.held().await;
    for walker in &mut walkers {
        walker.take_all().await;
        walker.close().await;
    }
    left
}
