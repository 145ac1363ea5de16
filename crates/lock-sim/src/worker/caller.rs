use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::mailbox::Mailbox;
use crate::node::Node;
use crate::phases::Phases;
use crate::plan::Plan;
use crate::record::Phase;
use crate::resource::Resource;

/// What all callers of a run have in common.
pub(crate) struct Scene {
    pub(crate) plan: Plan,
    pub(crate) phases: Phases,
    /// One for each lock.
    pub(crate) resources: Vec<Resource>,
    pub(super) mailbox: Mailbox,
    /// How long whoever waits may have to, once nothing goes wrong any more.
    pub(crate) hand_over: Duration,
}

/// One caller.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) node: Node,
    pub(super) scene: Arc<Scene>,
}

/// One of the locks, with what it protects.
pub(super) struct Target<'a> {
    pub(super) key: &'a Arc<str>,
    pub(super) resource: &'a Resource,
}

impl Scene {
    pub(crate) fn new(plan: Plan, phases: Phases, hand_over: Duration) -> Self {
        let resources = plan.keys.iter().map(|key| {
            let name: Arc<str> = Arc::clone(key);
            Resource::new(name)
        });
        Self {
            resources: resources.collect(),
            plan,
            phases,
            mailbox: Mailbox::default(),
            hand_over,
        }
    }
}

/// Works as planned for as long as faults happen; then takes every lock once.
pub(crate) async fn work(node: Node, scene: Arc<Scene>) {
    let callers = (0..scene.plan.callers).map(|_| {
        let caller = Caller {
            node: node.clone(),
            scene: Arc::clone(&scene),
        };
        let runtime = Arc::clone(node.runtime());
        runtime.run_to_end(async move { caller.work().await })
    });
    join_all(callers).await;
    scene.phases.reached(Phase::Liveness).await;
    let caller = Caller {
        node,
        scene: Arc::clone(&scene),
    };
    let keys = 0..scene.plan.keys.len();
    let takes = keys.map(|key| {
        let caller = caller.clone();
        let runtime = Arc::clone(caller.node.runtime());
        runtime.run_to_end(async move { caller.take_once(key).await })
    });
    join_all(takes).await;
}

impl Caller {
    async fn work(&self) {
        while self.scene.phases.now() == Phase::Safety {
            self.pause(self.scene.plan.idle).await;
            if self.scene.phases.now() != Phase::Safety {
                return;
            }
            self.operate().await;
        }
    }

    pub(super) async fn pause(&self, longest: Duration) {
        // The plainest pause is the longest, in which the least happens; and none is quite nothing,
        // or time would stand still.
        let less = self.node.runtime().jitter(longest);
        let pause = Duration::from_millis(1) + longest.saturating_sub(less);
        self.node.sleep(pause).await;
    }

    pub(super) fn below(&self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        usize::try_from(self.node.runtime().random_below(limit)).unwrap_or(0)
    }

    pub(super) fn up_to(&self, longest: Duration) -> Duration {
        self.node.runtime().jitter(longest)
    }

    pub(super) fn target(&self, index: usize) -> Option<Target<'_>> {
        Some(Target {
            key: self.scene.plan.keys.get(index)?,
            resource: self.scene.resources.get(index)?,
        })
    }
}
