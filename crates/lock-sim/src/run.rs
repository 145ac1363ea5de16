use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sim_runtime::{Tape, World};

use crate::bugs::Bug;
use crate::check::{Met, Violation};
use crate::faults::Faults;
use crate::plan::{Given, Plan};
use crate::production::{Ending, Production};
use crate::record::Record;
use crate::recorded::Watching;
use crate::seat::Work;
use crate::worker::{Scene, work};

/// Where the choices of a run come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// From chance.
    Seed(u64),
    /// From a tape: one that was recorded, or a changed one.
    Tape(Tape),
}

/// What a run is told beside its choices.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What is wrong with the clients, or their cluster, on purpose.
    pub bug: Option<Bug>,
    /// Which faults there may be.
    pub faults: Faults,
    /// How long faults happen, on the clock of the world.
    pub simulated_time: Duration,
    /// How many clients; drawn unless it is given.
    pub clients: Option<usize>,
    /// Keep everything that happened; violations are found either way.
    pub record: bool,
    /// Break off after so many entries of the record, kept or not.
    pub most_entries: Option<u64>,
}

/// A run that is over.
#[derive(Debug)]
pub struct Run {
    /// Every choice that was made.
    pub tape: Tape,
    /// Everything that happened, if it was to be kept.
    pub record: Record,
    /// Two runs with the same have happened the same way.
    pub hash: u64,
    /// What was found wrong, in the order in which it was.
    pub violations: Vec<Violation>,
    /// Which faults were met in which states of locks.
    pub met: Met,
    /// How much happened.
    pub counters: Counters,
}

/// How much happened in a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// How long the run took on the clock of the world.
    pub simulated: Duration,
    /// Entries of the record, kept or not.
    pub entries: u64,
    /// Choices that were made.
    pub draws: u64,
    /// Clients that took part.
    pub clients: u64,
    /// Revisions of the store.
    pub revisions: u64,
}

impl Default for RunOptions {
    /// All faults on the menu for 60 s, and nothing wrong on purpose.
    fn default() -> Self {
        Self {
            bug: None,
            faults: Faults::usual(),
            simulated_time: Duration::from_secs(60),
            clients: None,
            record: true,
            most_entries: None,
        }
    }
}

/// Runs one world of clients of the planned kind, and judges it.
#[must_use]
pub fn run(source: Source, options: &RunOptions) -> Run {
    let world = source.world();
    let director = world.runtime("director");
    let given = Given {
        clients: options.clients,
        ttl: None,
    };
    let plan = Plan::draw(&*director, &given, &options.faults);
    let clients = plan.clients;
    let production = Production::new(world, director, plan, Watching::Renewals, options);
    let scene = Arc::new(Scene::new(
        production.plan().clone(),
        production.phases().clone(),
        production.hand_over(),
    ));
    let work: Work = Arc::new(move |node| Box::pin(work(node, Arc::clone(&scene))));
    production.perform(vec![work; clients], Ending::Liveness, Vec::new())
}

impl Source {
    pub(crate) fn world(&self) -> World {
        match self {
            Self::Seed(seed) => World::new(*seed),
            Self::Tape(tape) => World::replay(tape),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => write!(f, "seed {seed}"),
            Self::Tape(tape) => write!(f, "a tape of {} draws", tape.draws().len()),
        }
    }
}
