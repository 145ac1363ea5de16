use std::collections::BTreeSet;
use std::time::Duration;

use lock_spi::Runtime;

use super::Fault;

/// Which faults runs may meet.
///
/// Each run draws some of them, and how strong they are; some runs have none. A run with all faults
/// at once would hardly ever get anywhere interesting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Faults {
    menu: BTreeSet<Fault>,
    always: bool,
}

/// How strong a fault is in one run.
#[derive(Clone, Debug)]
pub(crate) struct Dose {
    /// From 1 to 8.
    strength: u16,
    /// That of the run, as many faults go by it.
    pub(crate) ttl: Duration,
}

impl Faults {
    /// None.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            menu: BTreeSet::new(),
            always: false,
        }
    }

    /// Everything on the menu.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            menu: Fault::ALL.iter().copied().collect(),
            always: false,
        }
    }

    /// These, in every run.
    #[must_use]
    pub fn only(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self {
            menu: faults.into_iter().collect(),
            always: true,
        }
    }

    /// Without this one.
    #[must_use]
    pub fn without(mut self, fault: Fault) -> Self {
        self.menu.remove(&fault);
        self
    }

    /// What one run meets.
    pub(crate) fn draw(&self, runtime: &dyn Runtime, ttl: Duration) -> Vec<(Fault, Dose)> {
        // One in eight has none; the others have few or many.
        let share = if self.always {
            8
        } else {
            runtime.random_below(8).min(4)
        };
        if share == 0 {
            return Vec::new();
        }
        let mut drawn = Vec::new();
        for fault in &self.menu {
            let with = self.always || runtime.random_below(16) + share >= 16;
            if with {
                let strength = 1 + u16::try_from(runtime.random_below(8)).unwrap_or(0);
                drawn.push((*fault, Dose { strength, ttl }));
            }
        }
        drawn
    }
}

impl Dose {
    /// A chance of up to so many per mille.
    pub(crate) fn per_mille(&self, most: u16) -> u16 {
        (most * self.strength).div_ceil(8)
    }

    /// How long it takes on average until it happens again.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs(32) / u32::from(self.strength + 1)
    }
}
