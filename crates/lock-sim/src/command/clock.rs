use std::time::{Duration, Instant};

/// Real time, of which only people and their patience hear.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[allow(
        clippy::disallowed_methods,
        reason = "how long playing takes is measured in real time; nothing of it is replayed"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
