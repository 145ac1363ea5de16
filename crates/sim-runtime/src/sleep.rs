use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, Waker};

use crate::executor::{Executor, State, TimerName};
use crate::nodes::NodeId;

/// Waits until the clock of a node shows some time.
pub(crate) struct Sleep {
    executor: Weak<Executor>,
    node: NodeId,
    /// In nanoseconds on the node's clock.
    deadline: u64,
    timer: Option<Set>,
}

struct Set {
    name: TimerName,
    waker: Waker,
    /// How often the clock had been tampered with by then.
    changes: u64,
}

impl Sleep {
    pub(crate) const fn new(executor: Weak<Executor>, node: NodeId, deadline: u64) -> Self {
        Self {
            executor,
            node,
            deadline,
            timer: None,
        }
    }

    fn clear(&mut self) {
        if let (Some(set), Some(executor)) = (self.timer.take(), self.executor.upgrade()) {
            executor.clear_timer(set.name);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(executor) = self.executor.upgrade() else {
            return Poll::Pending;
        };
        let mut state = executor.state();
        let State { now, nodes, .. } = &mut *state;
        let (now, clock) = (*now, nodes.clock(self.node));
        let (due, changes) = clock.map_or((u64::MAX, 0), |clock| {
            (clock.when(self.deadline), clock.changes())
        });
        if now >= due {
            drop(state);
            self.clear();
            return Poll::Ready(());
        }
        let waker = context.waker();
        let stands = self
            .timer
            .as_ref()
            .is_some_and(|set| set.changes == changes && set.waker.will_wake(waker));
        if !stands {
            let name = Executor::set_timer(&mut state, self.node, due, waker.clone());
            drop(state);
            self.clear();
            self.timer = Some(Set {
                name,
                waker: waker.clone(),
                changes,
            });
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clear();
    }
}
