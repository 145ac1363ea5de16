//! The contract, executable: what may be answered to a call, given all calls before it.
//!
//! A [`Model`] is a set of [`World`]s, each a state that fits everything that was told so far. There
//! is more than one only where a moment decides: whether a session whose time is about over has
//! ended, and whether somebody who did not take its turn was passed over.

mod forks;
mod grants;
mod looks;
mod sessions;
mod world;

use lock_spi::{Capabilities, Instant, SessionId};

use self::world::World;
use super::answer::Answer;
use super::call::Call;

/// When a call was made: the store answered somewhere between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) begin: Instant,
    pub(super) end: Instant,
}

/// All that may be true by now.
#[derive(Clone, Debug)]
pub(super) struct Model {
    capabilities: Capabilities,
    worlds: Vec<World>,
}

impl Model {
    pub(super) fn new(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            worlds: vec![World::default()],
        }
    }

    /// Whether a call can be judged: it speaks of something, and does not hang on the moment.
    pub(super) fn means_something(&self, call: Call, now: Instant) -> bool {
        self.worlds
            .iter()
            .all(|world| world.means_something(call, now))
    }

    /// What is true after this answer, or what could have been answered instead.
    pub(super) fn judge(
        &self,
        call: Call,
        answer: &Answer,
        window: Window,
        mut session_id: impl FnMut(u8) -> SessionId,
    ) -> Result<Self, Vec<String>> {
        let mut worlds: Vec<World> = Vec::new();
        let mut allowed = Vec::new();
        for mut world in self.possible(window) {
            let rules = Rules {
                capabilities: &self.capabilities,
                window,
                answer,
            };
            match world.follow(call, &rules, &mut session_id) {
                Ok(()) if worlds.contains(&world) => {}
                Ok(()) => worlds.push(world),
                Err(expected) if allowed.contains(&expected) => {}
                Err(expected) => allowed.push(expected),
            }
        }
        if worlds.is_empty() {
            return Err(allowed);
        }
        Ok(Self {
            capabilities: self.capabilities.clone(),
            worlds,
        })
    }
}

/// What a world judges an answer by.
pub(super) struct Rules<'a> {
    pub(super) capabilities: &'a Capabilities,
    pub(super) window: Window,
    pub(super) answer: &'a Answer,
}

impl Rules<'_> {
    /// Checks that the answer is the one expected; else what was.
    pub(super) fn expect(&self, fits: bool, expected: impl FnOnce() -> String) -> Judged {
        match fits {
            true => Ok(()),
            false => Err(expected()),
        }
    }
}

/// Whether an answer fits; if not, what would have.
pub(super) type Judged = Result<(), String>;
