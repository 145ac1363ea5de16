//! Code of one's own in the world: what it can touch, and that losing an update is noticed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_sim::{Fault, Faults, Simulation};

const PAUSE: Duration = Duration::from_millis(100);

#[test]
fn clients_work_until_they_are_stopped_and_start_again_after_a_crash() {
    let starts = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&starts);
    let report = Simulation::seeds(0..3)
        .faults(Faults::only([Fault::ClientCrashed]))
        .simulated_time(Duration::from_secs(60))
        .ttl(Duration::from_secs(3))
        .run(|world| {
            let counter = world.resource("counter");
            let (resource, starts) = (counter.clone(), Arc::clone(&counted));
            world.clients(2, move |node| {
                starts.fetch_add(1, Ordering::Relaxed);
                let counter = resource.clone();
                async move {
                    loop {
                        node.sleep(PAUSE).await;
                        let Ok(guard) = node.locks().acquire("k").await else {
                            continue;
                        };
                        let Ok(value) = counter.read(&node).await else {
                            continue;
                        };
                        let write = counter.write_fenced(&node, value + 1, guard.token());
                        if write.await.is_ok() {
                            drop(guard.release().await);
                        }
                    }
                }
            });
            world.check("something was counted", move || counter.accepted() > 2);
        });
    report.assert_ok();
    assert_eq!(report.seeds(), 3);
    assert!(starts.load(Ordering::Relaxed) > 2 * 3, "some crashed");
}

#[test]
fn what_does_not_hold_in_the_end_is_told_with_its_seed_and_its_record() {
    let report = Simulation::seeds(4..5)
        .faults(Faults::none())
        .simulated_time(Duration::from_secs(1))
        .run(|world| {
            world.clients(1, |node| async move { node.sleep(PAUSE).await });
            world.check("two and two are five", || false);
        });
    assert!(!report.is_ok());
    let failed = &report.failed()[0];
    assert_eq!(failed.seed, 4);
    assert!(!failed.run.record.entries().is_empty());
    let told = report.to_string();
    assert!(told.contains("seed 4: own at"), "{told}");
    assert!(told.contains("two and two are five"), "{told}");
}

#[test]
fn a_resource_refuses_tokens_older_than_it_has_seen() {
    Simulation::seeds(0..1)
        .faults(Faults::none())
        .simulated_time(Duration::from_secs(10))
        .run(|world| {
            let register = world.resource("register");
            let resource = register.clone();
            world.clients(1, move |node| {
                let register = resource.clone();
                async move {
                    let first = node.locks().acquire("k").await.unwrap();
                    let old = first.token();
                    first.release().await.unwrap();
                    let second = node.locks().acquire("k").await.unwrap();
                    register.read_fenced(&node, second.token()).await.unwrap();
                    assert!(register.read_fenced(&node, old).await.is_err());
                    assert!(register.write_fenced(&node, 1, old).await.is_err());
                    register
                        .write_fenced(&node, 7, second.token())
                        .await
                        .unwrap();
                }
            });
            world.check("the new holder wrote", move || {
                (register.value(), register.refused()) == (7, 2)
            });
        })
        .assert_ok();
}
