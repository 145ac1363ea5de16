//! "Sometimes": which faults were met in which states of locks. A fault that was never met proves
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::truth::Truth;
use crate::record::{Asks, Entry, FaultName, Lane, What};

/// How long a client counts as one that has just lost a lock.
const LATELY: Duration = Duration::from_secs(2);

/// What a client is doing with a lock.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum LockState {
    /// It waits for one.
    Waiting,
    /// It has one.
    Held,
    /// It keeps a session alive at this moment.
    Renewing,
    /// It gives one back at this moment.
    Releasing,
    /// It has just lost one.
    Lost,
}

impl LockState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Waiting,
        Self::Held,
        Self::Renewing,
        Self::Releasing,
        Self::Lost,
    ];
}

impl fmt::Display for LockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Renewing => "renewing",
            Self::Releasing => "releasing",
            Self::Lost => "lost",
        })
    }
}

/// How often each fault met each state of a lock.
#[derive(Clone, Debug, Default)]
pub struct Met {
    counts: BTreeMap<(FaultName, LockState), u64>,
    lasting: BTreeSet<(FaultName, Lane)>,
    lost: BTreeMap<Lane, Duration>,
}

impl Met {
    /// How often the fault began, or went on, while some client was in this state.
    #[must_use]
    pub fn count(&self, fault: FaultName, state: LockState) -> u64 {
        self.counts
            .get(&(fault, state))
            .copied()
            .unwrap_or_default()
    }

    /// Adds what another run met.
    pub fn add(&mut self, other: &Self) {
        for (cell, count) in &other.counts {
            *self.counts.entry(*cell).or_default() += count;
        }
    }

    /// The cells of the table that no run met: these faults in these states.
    pub fn missing<'a>(
        &'a self,
        faults: impl IntoIterator<Item = FaultName> + 'a,
    ) -> impl Iterator<Item = (FaultName, LockState)> + 'a {
        let cells = faults.into_iter();
        let cells = cells.flat_map(|fault| LockState::ALL.map(|state| (fault, state)));
        cells.filter(|(fault, state)| self.count(fault, *state) == 0)
    }

    pub(super) fn observe(&mut self, entry: &Entry, truth: &Truth) {
        match &entry.what {
            What::FaultBegan(fault) => {
                self.count_states(fault, entry, truth);
                self.lasting.insert((fault, entry.lane.clone()));
            }
            What::FaultHappened(fault) => self.count_states(fault, entry, truth),
            What::FaultEnded(fault) => {
                self.lasting.remove(&(*fault, entry.lane.clone()));
            }
            What::Lost { .. } => {
                self.lost.insert(entry.lane.clone(), entry.at);
                self.go_on(&entry.lane, LockState::Lost);
            }
            What::Called { asks, .. } => {
                let state = match asks {
                    Asks::Acquire { .. } => LockState::Waiting,
                    Asks::Release { .. } => LockState::Releasing,
                    Asks::Renew { .. } => LockState::Renewing,
                    Asks::Adopt { .. } | Asks::Ensure { .. } | Asks::Try { .. } => return,
                };
                self.go_on(&entry.lane, state);
            }
            _ => {}
        }
    }

    /// A client comes into a state while faults last.
    fn go_on(&mut self, lane: &Lane, state: LockState) {
        for (fault, hit) in &self.lasting {
            if hits(hit, lane) {
                *self.counts.entry((fault, state)).or_default() += 1;
            }
        }
    }

    fn count_states(&mut self, fault: FaultName, entry: &Entry, truth: &Truth) {
        let mut states = BTreeSet::new();
        for open in truth
            .calls
            .values()
            .filter(|open| hits(&entry.lane, &open.lane))
        {
            match &open.asks {
                Asks::Acquire { .. } => drop(states.insert(LockState::Waiting)),
                Asks::Release { .. } => drop(states.insert(LockState::Releasing)),
                Asks::Renew { .. } => drop(states.insert(LockState::Renewing)),
                Asks::Adopt { .. } | Asks::Ensure { .. } | Asks::Try { .. } => {}
            }
        }
        let mut told = truth.keys.values().flat_map(|facts| {
            // The last ones only: the others are over.
            facts.told.values().rev().take(4)
        });
        if told.any(|told| told.open && hits(&entry.lane, &told.lane)) {
            states.insert(LockState::Held);
        }
        let lately =
            |(lane, at): (&Lane, &Duration)| hits(&entry.lane, lane) && *at + LATELY >= entry.at;
        if self.lost.iter().any(lately) {
            states.insert(LockState::Lost);
        }
        for state in states {
            *self.counts.entry((fault, state)).or_default() += 1;
        }
    }
}

/// Whether what happens to one lane concerns the client of another: a client's own faults are its
/// own, all others are everybody's.
fn hits(hit: &Lane, client: &Lane) -> bool {
    !hit.is_client() || hit.is_same_place(client)
}
