use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::Runtime;

use crate::check::Violation;
use crate::faults::Faults;
use crate::node::Node;
use crate::plan::{Given, Plan};
use crate::production::{Check, Ending, Production};
use crate::recorded::Watching;
use crate::resource::Resource;
use crate::run::{Run, RunOptions, Source};
use crate::seat::Work;

/// So many failures are enough.
const FAILURES: usize = 10;
/// Between two reads of a resource that is close.
const CLOSE: Duration = Duration::from_millis(10);

/// Runs code of one's own in simulated worlds: does a critical section survive?
///
/// Each seed is a world of its own, which `run` sets up: what clients do, what they share, and what
/// has to hold in the end. There faults happen, for as long as was asked for; every invariant of
/// locks is judged besides.
///
/// # Examples
///
/// A counter that is read and written under a lock. The resource sees the token with the read as
/// well as with the write, and no update is lost:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
/// use lock_sim::{Faults, Simulation};
///
/// Simulation::seeds(0..20)
///     .faults(Faults::usual())
///     .simulated_time(Duration::from_secs(30))
///     .run(|world| {
///         let counter = world.resource("counter");
///         let acknowledged = Arc::new(AtomicU64::new(0));
///         let (resource, done) = (counter.clone(), Arc::clone(&acknowledged));
///         world.clients(3, move |node| {
///             let (counter, done) = (resource.clone(), Arc::clone(&done));
///             async move {
///                 loop {
///                     node.sleep(Duration::from_millis(100)).await;
///                     let acquire = node.locks().acquire("counter");
///                     let Ok(guard) = acquire.await else { continue };
///                     let token = guard.token();
///                     let read = counter.read_fenced(&node, token).await;
///                     let Ok(value) = read else { continue };
///                     let write = counter.write_fenced(&node, value + 1, token);
///                     if write.await.is_ok() {
///                         done.fetch_add(1, Ordering::Relaxed);
///                     }
///                 }
///             }
///         });
///         world.check("no update is lost", move || {
///             counter.value() >= acknowledged.load(Ordering::Relaxed)
///         });
///     })
///     .assert_ok();
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before it is run"]
pub struct Simulation {
    seeds: Range<u64>,
    options: RunOptions,
    ttl: Option<Duration>,
}

/// One world, before it begins.
pub struct Setting {
    works: Vec<Work>,
    resources: Vec<Resource>,
    checks: Vec<Check>,
}

/// What came of all seeds.
#[derive(Debug)]
#[must_use = "ask it whether all is well"]
pub struct Report {
    seeds: u64,
    failed: Vec<Failed>,
}

/// A seed in which something did not hold.
#[derive(Debug)]
pub struct Failed {
    /// Which.
    pub seed: u64,
    /// What happened in it, with its record.
    pub run: Run,
}

impl Simulation {
    /// One world for each of these seeds, with all faults on the menu, for 60 s each. To see one
    /// seed again, run it alone: `seeds(17..18)`.
    pub fn seeds(seeds: Range<u64>) -> Self {
        Self {
            seeds,
            options: RunOptions::default(),
            ttl: None,
        }
    }

    /// Which faults there may be.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.options.faults = faults;
        self
    }

    /// How long faults happen, on the clock of the world.
    pub fn simulated_time(mut self, duration: Duration) -> Self {
        self.options.simulated_time = duration;
        self
    }

    /// The ttl of the clients' locks, in whole seconds; drawn for each world unless it is given.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets up a world for each seed and runs it, until ten have failed.
    pub fn run(self, set_up: impl Fn(&mut Setting)) -> Report {
        let mut report = Report {
            seeds: 0,
            failed: Vec::new(),
        };
        for seed in self.seeds.clone() {
            report.seeds += 1;
            let run = self.play(seed, &set_up);
            if !run.violations.is_empty() {
                report.failed.push(Failed { seed, run });
            }
            if report.failed.len() == FAILURES {
                break;
            }
        }
        report
    }

    fn play(&self, seed: u64, set_up: &impl Fn(&mut Setting)) -> Run {
        let mut setting = Setting {
            works: Vec::new(),
            resources: Vec::new(),
            checks: Vec::new(),
        };
        set_up(&mut setting);
        let Setting {
            works,
            resources,
            checks,
        } = setting;
        let world = Source::Seed(seed).world();
        let director = world.runtime("director");
        let given = Given {
            clients: Some(works.len()),
            ttl: self.ttl,
        };
        let plan = Plan::draw(&*director, &given, &self.options.faults);
        place(&resources, &*director, &plan);
        let production = Production::new(world, director, plan, Watching::Wishes, &self.options);
        production.perform(works, Ending::Stop, checks)
    }
}

/// Some resources are far off, and some fail at times, where anything does.
fn place(resources: &[Resource], runtime: &dyn Runtime, plan: &Plan) {
    for resource in resources {
        let (far, fails) = match plan.faults.is_empty() {
            true => (0, 0),
            false => (runtime.random_below(4), runtime.random_below(4)),
        };
        let delay = if far == 3 { plan.ttl } else { CLOSE };
        resource.place(delay, if fails == 3 { 50 } else { 0 });
    }
}

impl Setting {
    /// Something that a lock protects. It knows no client of another world.
    pub fn resource(&mut self, name: &str) -> Resource {
        let resource = Resource::new(name);
        self.resources.push(resource.clone());
        resource
    }

    /// So many clients, each a process of its own, that do this: from the beginning, and once more
    /// whenever one starts again after a crash. They are stopped where they are in the end, so they
    /// may go on for ever.
    pub fn clients<F>(&mut self, count: usize, work: impl Fn(Node) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let work: Work = Arc::new(move |node| Box::pin(work(node)));
        self.works.extend(vec![work; count]);
    }

    /// What has to hold once everybody was stopped, in words and as a test.
    pub fn check(&mut self, words: &str, holds: impl FnOnce() -> bool + Send + 'static) {
        self.checks.push((words.to_owned(), Box::new(holds)));
    }
}

impl Report {
    /// Whether everything held in every seed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.failed.is_empty()
    }

    /// How many seeds were run.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// Those in which something did not hold.
    #[must_use]
    pub fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// Asserts that everything held in every seed.
    ///
    /// # Panics
    ///
    /// With the seeds in which something did not, and what it was.
    pub fn assert_ok(&self) {
        assert!(self.is_ok(), "{self}");
    }
}

impl Failed {
    /// What did not hold, in the order in which it was found.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.run.violations
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} seeds failed", self.failed.len(), self.seeds)?;
        for failed in &self.failed {
            for violation in failed.violations() {
                write!(f, "\nseed {}: {violation}", failed.seed)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting")
            .field("clients", &self.works.len())
            .field("resources", &self.resources)
            .finish_non_exhaustive()
    }
}
