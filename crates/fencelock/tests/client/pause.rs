//! Suspended machines and starved executors (K03, K15).

use std::sync::Arc;
use std::time::Duration;

use sim_runtime::World;

use fencelock::fence::HighWaterMark;
use fencelock::spi::Runtime;
use fencelock::{Client, LostReason, Release};

use crate::common::{
    Act, Double, JumpingClock, Op, Scene, acquired, client_of, is_free, is_ready, millis, seconds,
};

/// A machine that can be suspended, in a world whose store goes on.
struct Machine {
    world: World,
    store: Double,
    clock: JumpingClock,
    client: Client,
}

impl Machine {
    fn new() -> Self {
        let world = World::new(3);
        // The store's clock is the world's, and jumps with the machine's to model time passing.
        let clock = JumpingClock::new(world.runtime("a"));
        let runtime: Arc<dyn Runtime> = Arc::new(clock.clone());
        let store = Double::new(Arc::clone(&runtime));
        let client = client_of(&store, &runtime, "a", |builder| builder);
        Self {
            world,
            store,
            clock,
            client,
        }
    }

    /// Time passes while the machine runs.
    fn pass(&self, duration: Duration) {
        let until = self.clock.now() + duration;
        self.world.block_on(self.clock.sleep_until(until));
    }
}

/// B112: on resume the guard is invalid at once, before any timer has fired.
#[test]
fn suspended_holder_learns_of_it_by_asking() {
    let machine = Machine::new();
    let guard = machine.world.block_on(acquired(&machine.client, "k"));
    machine.clock.jump(seconds(600));
    let lost = guard.check().unwrap_err();
    assert_eq!(lost.reason, LostReason::Overslept);
    assert!(!lost.reason.is_definite());
    assert!(is_ready(guard.lost()));
    assert!(guard.remaining().is_zero());
}

/// B112: work that goes on after resume is stopped when it is next polled.
#[test]
fn work_is_dropped_after_a_suspend() {
    let machine = Machine::new();
    let guard = machine.world.block_on(acquired(&machine.client, "k"));
    let clock = machine.clock.clone();
    let outcome = machine.world.block_on(guard.run(async {
        clock.jump(seconds(600));
        "done"
    }));
    assert_eq!(outcome.unwrap_err().reason, LostReason::Overslept);
}

/// B28, B113: after a suspend the guard is lost; the client acquires again at once, by the caller's
/// explicit act, with a higher token.
#[test]
fn after_a_suspend_the_same_client_acquires_at_once() {
    let machine = Machine::new();
    let guard = machine.world.block_on(acquired(&machine.client, "k"));
    machine.clock.jump(seconds(45));
    let again = machine.world.block_on(acquired(&machine.client, "k"));
    assert!(again.token() > guard.token());
    assert!(again.is_held());
    assert_eq!(guard.check().unwrap_err().reason, LostReason::Overslept);
    let release = machine.world.block_on(guard.release()).unwrap();
    assert_eq!(release, Release::AlreadyGone);
    assert_eq!(machine.store.holder("k"), Some(again.token()));
}

/// B116: the holder that wakes after another had the lock is a new guard with a third token; the
/// old one stays dead, and the resource sees it.
#[test]
fn tokens_rise_over_a_pause_in_which_another_held() {
    let machine = Machine::new();
    let resource = HighWaterMark::new();
    let runtime: Arc<dyn Runtime> = Arc::new(machine.clock.clone());
    let other = client_of(&machine.store, &runtime, "b", |builder| builder);

    let first = machine.world.block_on(acquired(&machine.client, "k"));
    resource.admit(first.token()).unwrap();
    machine.clock.jump(seconds(45));
    let second = machine.world.block_on(acquired(&other, "k"));
    resource.admit(second.token()).unwrap();
    machine.clock.jump(seconds(45));
    let third = machine.world.block_on(acquired(&machine.client, "k"));
    assert!(first.token() < second.token() && second.token() < third.token());
    resource.admit(third.token()).unwrap();
    assert!(resource.admit(first.token()).is_err());
    assert!(!first.is_held() && !second.is_held() && third.is_held());
}

/// B34: the answer to a renewal that was under way when the machine was suspended comes too late to
/// revive the guard, though nobody had asked in between.
#[test]
fn answer_after_a_suspend_does_not_revive() {
    let machine = Machine::new();
    let guard = machine.world.block_on(acquired(&machine.client, "k"));
    machine
        .store
        .next(Op::KeepAlive, [Act::LateReply(seconds(2))]);
    machine.pass(seconds(6));
    machine.clock.jump(seconds(10));
    machine.pass(seconds(1) + millis(1));
    assert_eq!(machine.store.count(Op::KeepAlive), 1);
    assert!(!guard.is_held());
    assert_eq!(guard.check().unwrap_err().reason, LostReason::Overslept);
}

/// A guard whose session was suspended away is not renewed when the machine resumes.
#[test]
fn nothing_is_renewed_after_a_suspend() {
    let machine = Machine::new();
    let guard = machine.world.block_on(acquired(&machine.client, "k"));
    machine.clock.jump(seconds(14));
    machine.world.block_on(guard.lost());
    machine.pass(seconds(60));
    assert_eq!(machine.store.count(Op::KeepAlive), 0);
    assert_eq!(machine.store.residue(), (0, 0));
}

/// B28: an outage that outlasts the ttl leaves no tombstone.
#[test]
fn after_an_outage_the_key_is_free() {
    let scene = Scene::new();
    let guard = scene.guard("k");
    scene.store.cut_off(&Act::TIMEOUT);
    scene.run(guard.lost());
    scene.pass(seconds(45));
    scene.store.heal();
    assert!(scene.run(is_free(&scene.client, "k")));
}
