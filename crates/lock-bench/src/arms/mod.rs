//! What is measured: each arm does the same thing its own way. The arms here serve every backend.

pub(crate) mod clients;
pub(crate) mod guards;
pub(crate) mod store;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use clap::ValueEnum;
use lock_spi::Runtime;

use crate::hold::Hold;

/// Generous, so that a busy machine slows a slice down and does not end it.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// So long that nothing has to be renewed in a slice.
pub(crate) const TTL: Duration = Duration::from_secs(3600);

/// One way to do one operation: a write, or a lock taken and given back.
#[async_trait]
pub(crate) trait Arm: Send + Sync {
    /// Does it once and waits until it is confirmed. With one key for all, it waits for its turn.
    async fn once(&self, task: u32, key: &str) -> Result<()>;
}

/// Which keys the tasks work on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Keys {
    /// Each task has some of its own.
    Distinct,
    /// All have the same one.
    Hot,
    /// All have the same one, and each keeps it for 3 ms.
    Held,
}

/// What an arm is to work on.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) keys: Keys,
    /// How many tasks work side by side.
    pub(crate) tasks: u32,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// For whoever holds a lock.
    pub(crate) hold: Hold,
}

impl Keys {
    /// How many times as long as usual a slice is: of one key there are few hand-overs.
    pub(crate) const fn slices(self) -> u32 {
        match self {
            Self::Distinct => 1,
            Self::Hot | Self::Held => 4,
        }
    }
}
