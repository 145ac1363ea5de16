use std::sync::Arc;

use tokio::sync::watch;

use crate::chronicle::Chronicle;
use crate::record::{Lane, Phase, What};

/// Which part of the run it is, for everybody who has to know.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    chronicle: Chronicle,
    now: Arc<watch::Sender<Phase>>,
}

impl Phases {
    pub(crate) fn new(chronicle: Chronicle) -> Self {
        chronicle.note(&Lane::World, What::PhaseBegan(Phase::Safety));
        Self {
            chronicle,
            now: Arc::new(watch::Sender::new(Phase::Safety)),
        }
    }

    pub(crate) fn now(&self) -> Phase {
        *self.now.borrow()
    }

    pub(crate) fn begin(&self, phase: Phase) {
        self.chronicle.note(&Lane::World, What::PhaseBegan(phase));
        self.now.send_replace(phase);
    }

    /// Resolves when this part of the run has begun, or a later one.
    pub(crate) async fn reached(&self, phase: Phase) {
        // The sender is in `self`, so the wait cannot fail.
        drop(self.now.subscribe().wait_for(|now| *now >= phase).await);
    }
}
