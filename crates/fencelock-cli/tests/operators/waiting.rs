//! Waiting for a lock to be free.

use std::time::{Duration, Instant};

use crate::clients::{block_on, client, hold};
use crate::command::Running;
use crate::sites::on_each;

const TIMED_OUT: i32 = 79;

#[test]
fn a_wait_ends_once_nobody_holds_the_lock_and_not_before() {
    on_each(|site| {
        let free = site.run(&["wait", "nightly"]);
        assert_eq!((free.status, free.stdout.as_str()), (0, ""), "{free:?}");
        let worker = client(&site.url, "worker-3");
        let guard = hold(&worker, "nightly");
        let mut wait = Running::start(&site.url, &["wait", "nightly"]);
        std::thread::sleep(Duration::from_secs(1));
        assert!(wait.is_running());
        block_on(guard.release()).unwrap();
        assert_eq!(wait.status_within(Duration::from_secs(20)), Some(0));
        // It was not taken.
        drop(hold(&worker, "nightly"));
    });
}

#[test]
fn a_wait_ends_in_time_and_tells_who_holds_the_lock() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let _guard = hold(&worker, "nightly");
        let begun = Instant::now();
        let waited = site.run(&["wait", "nightly", "--at-most", "500ms"]);
        assert_eq!(waited.status, TIMED_OUT, "{waited:?}");
        assert!(begun.elapsed() >= Duration::from_millis(500));
        assert!(waited.stderr.contains("held by worker-3"), "{waited:?}");
    });
}
