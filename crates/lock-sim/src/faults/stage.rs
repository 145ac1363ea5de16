use std::sync::Arc;
use std::time::Duration;

use lock_spi::Runtime;

use super::{Dose, Fault};
use crate::chronicle::Chronicle;
use crate::cluster::Cluster;
use crate::record::{Lane, What};
use crate::seat::Seat;

/// Everything in a run that faults can get hold of.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) chronicle: Chronicle,
    pub(crate) cluster: Cluster,
    pub(crate) seats: Arc<[Arc<Seat>]>,
    pub(crate) keys: Arc<[Arc<str>]>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// When no fault begins any more.
    pub(crate) until: Duration,
}

impl Stage {
    pub(crate) fn below(&self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        usize::try_from(self.runtime.random_below(limit)).unwrap_or(0)
    }

    /// Up to so long.
    pub(crate) fn up_to(&self, longest: Duration) -> Duration {
        self.runtime.jitter(longest)
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.runtime.sleep(duration).await;
    }

    /// Waits until a fault happens again; `false` when none does any more.
    pub(crate) async fn another(&self, dose: &Dose) -> bool {
        loop {
            let pause = dose.pause();
            self.sleep(pause / 2 + self.up_to(pause)).await;
            if self.runtime.now().since_origin() >= self.until {
                return false;
            }
            // Drawn, so that single ones can be left out of a tape.
            if self.below(4) > 0 {
                return true;
            }
        }
    }

    /// One of the clients.
    pub(crate) fn seat(&self) -> Option<&Arc<Seat>> {
        self.seats.get(self.below(self.seats.len()))
    }

    /// Lets a fault begin, last for up to so long, and end.
    pub(crate) async fn lasts(
        &self,
        fault: Fault,
        lane: &Lane,
        longest: Duration,
        begin: impl FnOnce(),
        end: impl FnOnce(),
    ) {
        self.chronicle.note(lane, What::FaultBegan(fault.name()));
        begin();
        self.sleep(self.up_to(longest)).await;
        end();
        self.chronicle.note(lane, What::FaultEnded(fault.name()));
    }

    pub(crate) fn happened(&self, fault: Fault, lane: &Lane) {
        self.chronicle.happened(lane, fault.name());
    }
}
