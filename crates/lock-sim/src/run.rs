use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sim_runtime::{Tape, Weather, World};

use crate::believers::Believers;
use crate::bugs::{Bug, Planted};
use crate::check::{Bounds, Invariant, Met, Violation};
use crate::chronicle::Chronicle;
use crate::cluster::{Cluster, Witness};
use crate::faults::{Faults, HONEST_RATE, Stage};
use crate::phases::Phases;
use crate::plan::{Given, Plan};
use crate::record::{Lane, Phase, Record};
use crate::recorded::Watching;
use crate::seat::{House, Seat, Work};
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
        }
    }
}

/// How long a waiter may wait beside the ttls: for a head that does not come, seen twice (24 s), for
/// an election, for the lateness of an expiry, and for as long as stragglers travel.
const HAND_OVER: Duration = Duration::from_secs(24 + 3 + 1 + 10);
/// Stragglers have arrived, and every session was renewed after that.
const AFTERMATH: Duration = Duration::from_secs(10 + 5);
/// How long closing down may take beside a ttl.
const CLOSING: Duration = Duration::from_secs(30);
const SKIP_AFTER: Duration = Duration::from_secs(12);

impl Counters {
    pub(crate) fn add_world(&mut self, world: &World, tape: &Tape) {
        self.simulated = world.elapsed();
        self.draws = u64::try_from(tape.draws().len()).unwrap_or(u64::MAX);
    }
}

/// Runs one world of clients of the planned kind, and judges it.
#[must_use]
pub fn run(source: Source, options: &RunOptions) -> Run {
    let world = match &source {
        Source::Seed(seed) => World::new(*seed),
        Source::Tape(tape) => World::replay(tape),
    };
    let director = world.runtime("director");
    let given = Given {
        clients: options.clients,
        ttl: None,
    };
    let plan = Plan::draw(&*director, &given, &options.faults);
    let record = if options.record {
        Record::new()
    } else {
        Record::off()
    };
    let hand_over = bound(&plan);
    let bounds = Bounds {
        clock_rate: HONEST_RATE.unsigned_abs(),
        hand_over,
        margin: (plan.ttl / 10).max(Duration::from_millis(200)),
        skip_after: SKIP_AFTER,
    };
    let chronicle = Chronicle::new(world.processes(), bounds, record);
    let believers = Believers::new(chronicle.clone());
    let witness = Witness::new(chronicle.clone(), believers.clone());
    let planted = Arc::new(Planted::new(options.bug));
    let cluster = Cluster::new(
        world.runtime("cluster"),
        chronicle.clone(),
        witness,
        planted.cluster(),
    );
    let phases = Phases::new(chronicle.clone());
    let scene = Arc::new(Scene::new(plan.clone(), phases.clone(), hand_over));
    let work: Work = Arc::new(move |node| Box::pin(work(node, Arc::clone(&scene))));
    let house = Arc::new(House {
        chronicle: chronicle.clone(),
        cluster: cluster.clone(),
        believers,
        planted,
        ttl: plan.ttl,
        watching: Watching::Renewals,
        work,
    });
    let seats = (0..plan.clients).map(|number| {
        let name: Arc<str> = name(number).into();
        Seat::new(name, Arc::clone(&house), &plan.weather)
    });
    let stage = Stage {
        chronicle: chronicle.clone(),
        cluster: cluster.clone(),
        seats: seats.collect(),
        keys: plan.keys.clone().into(),
        runtime: director,
        until: options.simulated_time,
    };
    let clients = u64::try_from(plan.clients).unwrap_or(u64::MAX);
    let play = play(stage, plan, phases);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.block_on(play)));
    if let Err(panic) = outcome {
        let words = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| {
                panic
                    .downcast_ref::<&str>()
                    .map(|words| (*words).to_owned())
            })
            .unwrap_or_else(|| "the run panicked".to_owned());
        let violation = Violation::new(Invariant::Sound, world.elapsed(), words);
        chronicle.add(violation.of_lane(&Lane::World));
    }
    if world.panics() > 0 {
        let sentence = format!("{} tasks panicked", world.panics());
        let violation = Violation::new(Invariant::Sound, world.elapsed(), sentence);
        chronicle.add(violation.of_lane(&Lane::World));
    }
    let entries = chronicle.entries();
    let (record, checkers) = chronicle.close();
    let tape = world.tape();
    let mut counters = Counters {
        entries,
        clients,
        revisions: u64::try_from(cluster.store().revision()).unwrap_or(0),
        ..Counters::default()
    };
    counters.add_world(&world, &tape);
    Run {
        hash: world.trace_hash() ^ entries,
        violations: checkers.violations().to_vec(),
        met: checkers.met().clone(),
        tape,
        record,
        counters,
    }
}

/// How long a waiter waits at most once faults are healed: those before it in the line each for as
/// long as a dead session lives, if they are dead.
fn bound(plan: &Plan) -> Duration {
    plan.ttl * 2 + HAND_OVER
}

fn name(number: usize) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let letter = letters.chars().cycle().nth(number).unwrap_or('z');
    match number / letters.len() {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

async fn play(stage: Stage, plan: Plan, phases: Phases) {
    let runtime = Arc::clone(&stage.runtime);
    for seat in stage.seats.iter() {
        seat.start();
    }
    stage.cluster.set_conditions(|conditions| {
        for (fault, dose) in &plan.faults {
            fault.season(dose, conditions);
        }
    });
    let drivers: Vec<_> = plan
        .faults
        .iter()
        .filter_map(|(fault, dose)| fault.drive(stage.clone(), dose.clone()))
        .map(|driver| runtime.run_to_end(driver))
        .collect();
    runtime.sleep(stage.until).await;
    join_all(drivers).await;
    heal(&stage);
    phases.begin(Phase::Liveness);
    let done = join_all(stage.seats.iter().map(|seat| seat.done()));
    let limit = bound(&plan) * 2 + CLOSING;
    if runtime.timeout(limit, done).await.is_err() {
        let at = runtime.now().since_origin();
        let sentence = "work is not over long after faults were healed";
        stage
            .chronicle
            .add(Violation::new(Invariant::Turns, at, sentence));
    }
    phases.begin(Phase::Quiet);
    close_down(&stage, &plan).await;
    phases.begin(Phase::End);
}

/// Everybody lets go. Whoever was out of reach for too long is gone with its session.
async fn close_down(stage: &Stage, plan: &Plan) {
    let shutdowns = stage.seats.iter().filter_map(|seat| {
        seat.run(|node| Box::pin(async move { node.locks().clone().shutdown().await }))
    });
    let shutdowns: Vec<_> = shutdowns.collect();
    let limit = plan.ttl + CLOSING;
    if stage
        .runtime
        .timeout(limit, join_all(shutdowns))
        .await
        .is_err()
    {
        let at = stage.runtime.now().since_origin();
        let sentence = "a client does not close down";
        stage
            .chronicle
            .add(Violation::new(Invariant::Sound, at, sentence));
    }
    // What nobody could give back is over with its session.
    stage.sleep(AFTERMATH + plan.ttl * 2).await;
}

/// Nothing goes wrong any more.
fn heal(stage: &Stage) {
    stage
        .cluster
        .set_conditions(|conditions| *conditions = Default::default());
    stage.cluster.reconnect_all();
    for seat in stage.seats.iter() {
        for link in seat.links() {
            link.set_weather(Weather {
                delay: Duration::from_micros(200)..Duration::from_millis(5),
                ..Weather::calm()
            });
            link.heal();
        }
        seat.resume();
        if seat.is_down() {
            seat.start();
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
