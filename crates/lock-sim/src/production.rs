//! One run from its beginning to its end: faults happen, then they are healed, then nobody wants
//! anything any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lock_spi::Runtime;
use sim_runtime::{Weather, World};

use crate::believers::Believers;
use crate::bugs::Planted;
use crate::check::{Bounds, Invariant, Violation};
use crate::chronicle::Chronicle;
use crate::cluster::{Cluster, Conditions, Witness};
use crate::faults::{HONEST_RATE, Stage};
use crate::phases::Phases;
use crate::plan::Plan;
use crate::record::{Lane, Phase, Record};
use crate::recorded::Watching;
use crate::run::{Counters, Run, RunOptions};
use crate::seat::{House, Seat, Work};

/// How long a waiter may wait beside the ttls: for a head that does not come, seen twice (24 s), for
/// an election, for the lateness of an expiry, and for as long as stragglers travel.
const HAND_OVER: Duration = Duration::from_secs(24 + 3 + 1 + 10);
/// Stragglers have arrived, and every session was renewed after that.
const AFTERMATH: Duration = Duration::from_secs(10 + 5);
/// How long closing down may take beside a ttl.
const CLOSING: Duration = Duration::from_secs(30);
/// What is under way when faults are healed has this long to come to its end, where nobody says
/// when that is.
const SETTLING: Duration = Duration::from_secs(5);
const SKIP_AFTER: Duration = Duration::from_secs(12);

/// How a run ends once faults are healed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// Everybody gets what they wait for, and goes home.
    Liveness,
    /// Everybody is stopped where they are.
    Stop,
}

/// What the user of a run wants to hold in the end: in words, and whether it does.
pub(crate) type Check = (String, Box<dyn FnOnce() -> bool + Send>);

/// Everything that a run needs.
pub(crate) struct Production {
    world: World,
    director: Arc<dyn Runtime>,
    plan: Plan,
    phases: Phases,
    house: Arc<House>,
    simulated_time: Duration,
}

impl Production {
    pub(crate) fn new(
        world: World,
        director: Arc<dyn Runtime>,
        plan: Plan,
        watching: Watching,
        options: &RunOptions,
    ) -> Self {
        let record = if options.record {
            Record::new()
        } else {
            Record::off()
        };
        let bounds = Bounds {
            clock_rate: HONEST_RATE.unsigned_abs(),
            hand_over: hand_over(&plan),
            margin: (plan.ttl / 10).max(Duration::from_millis(200)),
            skip_after: SKIP_AFTER,
        };
        let chronicle = Chronicle::new(world.processes(), bounds, record, options.most_entries);
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
        let house = Arc::new(House {
            chronicle,
            cluster,
            believers,
            planted,
            ttl: plan.ttl,
            watching,
        });
        Self {
            world,
            director,
            plan,
            phases,
            house,
            simulated_time: options.simulated_time,
        }
    }

    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) const fn phases(&self) -> &Phases {
        &self.phases
    }

    /// How long a waiter waits at most once faults are healed.
    pub(crate) fn hand_over(&self) -> Duration {
        hand_over(&self.plan)
    }

    /// Runs it, each client at its work, and judges it.
    pub(crate) fn perform(self, works: Vec<Work>, ending: Ending, checks: Vec<Check>) -> Run {
        let Self {
            world,
            director,
            plan,
            phases,
            house,
            simulated_time,
        } = self;
        let (chronicle, cluster) = (house.chronicle.clone(), house.cluster.clone());
        let clients = u64::try_from(works.len()).unwrap_or(u64::MAX);
        let seats = works.into_iter().enumerate().map(|(number, work)| {
            let name: Arc<str> = name(number).into();
            Seat::new(name, Arc::clone(&house), work, &plan.weather)
        });
        let stage = Stage {
            chronicle: chronicle.clone(),
            cluster: cluster.clone(),
            seats: seats.collect(),
            keys: plan.keys.clone().into(),
            runtime: director,
            until: simulated_time,
        };
        // Once something is wrong, what comes after it is of no interest.
        let play = async {
            tokio::select! {
                biased;
                () = chronicle.over() => {}
                () = play(&stage, &plan, &phases, ending) => {}
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| world.block_on(play)));
        if let Err(panic) = outcome {
            let told = panic.downcast_ref::<String>().map(String::as_str);
            let told = told.or_else(|| panic.downcast_ref::<&str>().copied());
            unsound(&chronicle, told.unwrap_or("the run panicked"));
        }
        if world.panics() > 0 {
            unsound(&chronicle, &format!("{} tasks panicked", world.panics()));
        }
        for (words, holds) in checks {
            if !holds() {
                let at = world.elapsed();
                chronicle.add(Violation::new(Invariant::Own, at, words));
            }
        }
        let entries = chronicle.entries();
        let (record, checkers) = chronicle.close();
        let tape = world.tape();
        Run {
            hash: world.trace_hash() ^ entries,
            violations: checkers.violations().to_vec(),
            met: checkers.met().clone(),
            counters: Counters {
                simulated: world.elapsed(),
                entries,
                draws: u64::try_from(tape.draws().len()).unwrap_or(u64::MAX),
                clients,
                revisions: u64::try_from(cluster.store().revision()).unwrap_or(0),
            },
            tape,
            record,
        }
    }
}

/// How long a waiter waits at most once faults are healed: whoever is before it in the line may be
/// dead, and the lock in dead hands until then.
fn hand_over(plan: &Plan) -> Duration {
    plan.ttl * 2 + HAND_OVER
}

fn unsound(chronicle: &Chronicle, sentence: &str) {
    let at = chronicle.processes().elapsed();
    let violation = Violation::new(Invariant::Sound, at, sentence);
    chronicle.add(violation.of_lane(&Lane::World));
}

fn name(number: usize) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let letter = letters.chars().cycle().nth(number).unwrap_or('z');
    match number / letters.len() {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

async fn play(stage: &Stage, plan: &Plan, phases: &Phases, ending: Ending) {
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
    heal(stage);
    match ending {
        Ending::Liveness => {
            phases.begin(Phase::Liveness);
            everybody_is_served(stage, plan).await;
            phases.begin(Phase::Quiet);
            close_down(stage, plan).await;
        }
        Ending::Stop => {
            runtime.sleep(SETTLING).await;
            phases.begin(Phase::Quiet);
            stage.seats.iter().for_each(|seat| seat.crash());
        }
    }
    // What nobody could give back is over with its session.
    stage.sleep(AFTERMATH + plan.ttl * 2).await;
    phases.begin(Phase::End);
}

async fn everybody_is_served(stage: &Stage, plan: &Plan) {
    let done = join_all(stage.seats.iter().map(|seat| seat.done()));
    let limit = hand_over(plan) * 2 + CLOSING;
    if stage.runtime.timeout(limit, done).await.is_err() {
        let at = stage.chronicle.processes().elapsed();
        let sentence = "work is not over long after faults were healed";
        stage
            .chronicle
            .add(Violation::new(Invariant::Turns, at, sentence));
    }
}

/// Everybody lets go. Whoever was out of reach for too long is gone with its session.
async fn close_down(stage: &Stage, plan: &Plan) {
    let shutdowns = stage.seats.iter().filter_map(|seat| {
        seat.run(|node| Box::pin(async move { node.locks().clone().shutdown().await }))
    });
    let shutdowns: Vec<_> = shutdowns.collect();
    let limit = plan.ttl + CLOSING;
    let closed = stage.runtime.timeout(limit, join_all(shutdowns));
    if closed.await.is_err() {
        unsound(&stage.chronicle, "a client does not close down");
    }
}

/// Nothing goes wrong any more.
fn heal(stage: &Stage) {
    stage
        .cluster
        .set_conditions(|conditions| *conditions = Conditions::default());
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
