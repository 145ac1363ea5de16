//! What a proxy is told to do wrong, asked for each piece that passes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::proxy::Direction;
use crate::proxy::pattern::{LONGEST, Window};
use crate::proxy::trap::{Cut, Trap};

/// The faults of one proxy.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    to_server: Way,
    to_client: Way,
    traps: Vec<Armed>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// How long everything is held up.
    pub(super) delay: Duration,
    /// Whether everything disappears.
    pub(super) swallows: bool,
}

#[derive(Debug)]
struct Armed {
    pattern: Vec<u8>,
    cut: Cut,
    trap: Trap,
}

impl Faults {
    pub(super) fn delay(&self, direction: Direction, delay: Duration) {
        self.lock().way(direction).delay = delay;
    }

    pub(super) fn swallow(&self, direction: Direction) {
        self.lock().way(direction).swallows = true;
    }

    pub(super) fn arm(&self, pattern: Vec<u8>, cut: Cut) -> Trap {
        let lengths = 1..=LONGEST;
        assert!(lengths.contains(&pattern.len()), "1 to {LONGEST} bytes");
        let trap = Trap::new();
        self.lock().traps.push(Armed {
            pattern,
            cut,
            trap: trap.clone(),
        });
        trap
    }

    pub(super) fn clear(&self) {
        *self.lock() = State::default();
    }

    /// What happens to all that goes this way now.
    pub(super) fn way(&self, direction: Direction) -> Way {
        *self.lock().way(direction)
    }

    /// Springs the first trap whose pattern the window shows.
    pub(super) fn spring(&self, window: &Window) -> Option<Cut> {
        let traps = &mut self.lock().traps;
        let found = traps
            .iter()
            .position(|armed| window.shows(&armed.pattern))?;
        let Armed { cut, trap, .. } = traps.remove(found);
        trap.spring();
        Some(cut)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    const fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }
}
