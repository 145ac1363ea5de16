use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lock_spi::Runtime;

use crate::executor::{Executor, Step};
use crate::processes::Processes;
use crate::tape::{Recorder, Tape};

/// A deterministic world: one clock, one thread, one tape of choices.
#[derive(Debug)]
pub struct World {
    executor: Arc<Executor>,
    seed: Option<u64>,
}

impl World {
    /// A world that this seed decides altogether.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::of(Recorder::recording(seed), Some(seed))
    }

    /// A world in which the choices of `tape` are made once more. An edited tape is a run too.
    #[must_use]
    pub fn replay(tape: &Tape) -> Self {
        Self::of(Recorder::replaying(tape), None)
    }

    fn of(recorder: Recorder, seed: Option<u64>) -> Self {
        Self {
            executor: Arc::new(Executor::new(recorder)),
            seed,
        }
    }

    /// Every choice made so far.
    #[must_use]
    pub fn tape(&self) -> Tape {
        self.executor.state().recorder.tape()
    }

    /// The runtime of a new node.
    #[must_use]
    pub fn runtime(&self, name: impl AsRef<str>) -> Arc<dyn Runtime> {
        self.processes().runtime(name)
    }

    /// What can befall nodes, as a handle for tasks of this world.
    #[must_use]
    pub fn processes(&self) -> Processes {
        Processes(Arc::downgrade(&self.executor))
    }

    /// Ends every task of the nodes of this name: [`Processes::kill`].
    pub fn kill(&self, name: &str) {
        self.processes().kill(name);
    }

    /// Runs everything until `future` is done, and answers what it answers. What was spawned and is
    /// not done stays, for the next call.
    ///
    /// # Panics
    ///
    /// When `future` waits for something that can no longer happen, or tasks only wake each other
    /// and time stands still; and with `future`.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let waker = self.executor.main_waker();
        waker.wake_by_ref();
        loop {
            match self.executor.next() {
                Step::Main => {
                    if let Poll::Ready(output) =
                        future.as_mut().poll(&mut Context::from_waker(&waker))
                    {
                        return output;
                    }
                }
                Step::Run(task) => self.executor.poll(&task),
                Step::Spinning => panic!("{}: the clock stands still", self.which()),
                Step::Stuck => panic!("{}: everybody waits and no timer runs", self.which()),
            }
        }
    }

    fn which(&self) -> String {
        match self.seed {
            Some(seed) => format!("seed {seed}"),
            None => "this tape".to_owned(),
        }
    }

    /// Virtual time since the world began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.processes().elapsed()
    }

    /// How many tasks ended by a panic. Each was contained, and may have gone unnoticed.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.executor.state().panics
    }

    /// Adds something that happened to the trace.
    pub fn note(&self, words: &str) {
        self.executor.state().trace.add_text(words);
    }

    /// A hash of everything that happened so far, the order of all steps included. Two runs of one
    /// seed have the same.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.executor.state().trace.hash()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold what holds tasks; nothing would ever be freed.
        self.executor.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn story(seed: u64) -> (u64, Vec<u64>) {
        let world = World::new(seed);
        let heard = tell(&world);
        (world.trace_hash(), heard)
    }

    fn tell(world: &World) -> Vec<u64> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let runtimes: Vec<_> = (0..3_u8)
            .map(|node| world.runtime(format!("{node}")))
            .collect();
        for (node, runtime) in (0..).zip(&runtimes) {
            let (heard, own) = (Arc::clone(&heard), Arc::clone(runtime));
            runtime.spawn(Box::pin(async move {
                for _ in 0..10 {
                    own.sleep(own.jitter(Duration::from_millis(10))).await;
                    heard.lock().unwrap().push(node);
                }
            }));
        }
        world.block_on(runtimes[0].sleep(Duration::from_secs(1)));
        heard.lock().unwrap().clone()
    }

    #[test]
    fn one_seed_is_one_run() {
        assert_eq!(story(1), story(1));
        assert_ne!(story(1), story(2));
        assert_eq!(story(1).1.len(), 30);
    }

    #[test]
    fn nodes_of_one_seed_draw_differently() {
        let world = World::new(5);
        let (a, b) = (world.runtime("a"), world.runtime("b"));
        assert_ne!(a.random(), b.random());
    }

    #[test]
    fn a_panic_ends_its_task_only() {
        let world = World::new(1);
        let runtime = world.runtime("a");
        let lost = world.block_on(runtime.run_to_end(async {
            if true {
                panic!("planted")
            }
        }));
        assert!(lost.is_err());
        assert_eq!(world.panics(), 1);
        assert_eq!(world.block_on(runtime.run_to_end(async { 3 })), Ok(3));
    }

    #[test]
    fn a_killed_node_stops_where_it_stands_and_takes_up_nothing_new() {
        let world = World::new(1);
        let (doomed, other) = (world.runtime("doomed"), world.runtime("other"));
        let limit = Duration::from_secs(2);
        let ours = doomed.run_to_end(doomed.sleep(Duration::from_secs(1)));
        let others = other.run_to_end(other.sleep(Duration::from_secs(1)));
        world.kill("doomed");
        assert!(world.block_on(ours).is_err());
        assert!(world.block_on(doomed.run_to_end(async {})).is_err());
        assert_eq!(world.block_on(others), Ok(()));
        let reborn = world.runtime("doomed");
        let alive = world.block_on(other.timeout(limit, reborn.run_to_end(async {})));
        assert_eq!(alive, Ok(Ok(())));
    }

    #[test]
    #[should_panic(expected = "everybody waits")]
    fn a_hang_is_told() {
        World::new(1).block_on(std::future::pending::<()>());
    }

    #[test]
    #[should_panic(expected = "the clock stands still")]
    fn a_livelock_is_told() {
        World::new(1).block_on(std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
    }

    #[test]
    fn what_is_dropped_early_fires_no_timer() {
        let world = World::new(1);
        let runtime = world.runtime("a");
        drop(runtime.sleep(Duration::from_secs(9)));
        let late =
            world.block_on(runtime.timeout(Duration::from_secs(1), std::future::pending::<()>()));
        assert!(late.is_err());
        assert_eq!(world.elapsed(), Duration::from_secs(1));
    }

    #[test]
    fn a_tape_replays_a_run_and_an_empty_one_is_a_run_without_chance() {
        let world = World::new(11);
        let told = tell(&world);
        let tape = world.tape();
        let replayed = World::replay(&tape);
        assert_eq!(tell(&replayed), told);
        assert_eq!(replayed.trace_hash(), world.trace_hash());
        assert_eq!(replayed.tape(), tape);
        // Nobody waits, and who came first is first.
        let plain = tell(&World::replay(&Tape::default()));
        assert!(plain.is_sorted(), "{plain:?}");
    }

    #[test]
    fn names_stay_apart_whatever_is_drawn() {
        let world = World::replay(&Tape::default());
        let (a, b) = (world.runtime("a"), world.runtime("b"));
        let names: std::collections::BTreeSet<_> =
            (0..100).flat_map(|_| [a.random(), b.random()]).collect();
        assert_eq!(names.len(), 200);
    }

    #[test]
    fn a_paused_node_does_nothing_while_its_clock_goes_on() {
        let world = World::new(1);
        let (paused, other) = (world.runtime("paused"), world.runtime("other"));
        let began = paused.now();
        let slept = paused.run_to_end({
            let (own, sleep) = (Arc::clone(&paused), paused.sleep(Duration::from_secs(1)));
            async move {
                sleep.await;
                own.now()
            }
        });
        world.processes().pause("paused");
        world.block_on(other.sleep(Duration::from_secs(5)));
        world.processes().resume("paused");
        let woken = world.block_on(slept).unwrap();
        assert_eq!(woken.saturating_since(began), Duration::from_secs(5));
    }

    #[test]
    fn sleepers_go_by_the_clock_of_their_node() {
        let world = World::new(1);
        let (fast, other) = (world.runtime("fast"), world.runtime("other"));
        let sleep = fast.run_to_end(fast.sleep(Duration::from_secs(30)));
        world.block_on(other.sleep(Duration::from_secs(10)));
        world.processes().set_clock_rate("fast", 1_000_000);
        world.block_on(other.sleep(Duration::from_secs(5)));
        world.processes().jump_clock("fast", Duration::from_secs(8));
        world.block_on(sleep).unwrap();
        assert_eq!(world.elapsed(), Duration::from_secs(16));
    }

    #[test]
    fn a_killed_node_may_kill_itself_and_stays_dead_when_it_was_paused() {
        let world = World::new(1);
        let (own, other) = (world.runtime("own"), world.runtime("other"));
        let processes = world.processes();
        let suicide = own.run_to_end(async move {
            processes.kill("own");
            std::future::pending::<()>().await;
        });
        assert!(world.block_on(suicide).is_err());
        let (paused, processes) = (world.runtime("paused"), world.processes());
        let work = paused.run_to_end(async {});
        processes.pause("paused");
        world.block_on(other.sleep(Duration::from_secs(1)));
        processes.kill("paused");
        processes.resume("paused");
        assert!(world.block_on(work).is_err());
    }

    /// tokio's watch channels choose by a chance of their own whom they wake first.
    #[test]
    fn the_order_in_which_one_step_wakes_others_does_not_matter() {
        let story = || {
            let world = World::replay(&Tape::default());
            let sender = tokio::sync::watch::Sender::new(0);
            let heard = Arc::new(Mutex::new(Vec::new()));
            for number in 0..40 {
                let (heard, mut receiver) = (Arc::clone(&heard), sender.subscribe());
                world.runtime("node").spawn(Box::pin(async move {
                    receiver.changed().await.unwrap();
                    heard.lock().unwrap().push(number);
                }));
            }
            let runtime = world.runtime("sender");
            world.block_on(runtime.sleep(Duration::from_secs(1)));
            sender.send_replace(1);
            world.block_on(runtime.sleep(Duration::from_secs(1)));
            heard.lock().unwrap().clone()
        };
        assert_eq!(story(), (0..40).collect::<Vec<_>>());
    }
}
