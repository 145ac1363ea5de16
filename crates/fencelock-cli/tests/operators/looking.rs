//! Commands that only look.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::clients::{block_on, client, hold, hold_and_show, spawn};
use crate::command::Running;
use crate::sites::on_each;
use crate::snapshots::assert_printed;

/// B161, first part: who holds it is told without taking it, in words and in JSON.
#[test]
fn a_lock_that_is_held_is_shown() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guard = hold_and_show(&worker, "nightly", "host a, since noon");
        let token = guard.token().to_string();
        let words = [(token.as_str(), "[token]")];
        let shown = site.run(&["inspect", "nightly"]).data();
        assert_printed(&format!("inspect_{}", site.name), &shown, &words);
        let document = site.run(&["inspect", "nightly", "--json"]).data();
        assert_printed(&format!("inspect_json_{}", site.name), &document, &words);
        let document: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["holder"]["token"], json!(token));
        assert_eq!(
            guard.check().unwrap().to_string(),
            token,
            "it is still held"
        );
    });
}

#[test]
fn a_lock_that_is_free_is_no_error() {
    on_each(|site| {
        let shown = site.run(&["inspect", "free"]).data();
        assert_printed("inspect_free", &shown, &[]);
        let document = site.run(&["inspect", "free", "--json"]).json();
        assert_eq!(document["held"], json!(false));
        assert_eq!(document["holder"], Value::Null);
    });
}

/// Prefixes are compared byte for byte; what others have written cannot move the cursor.
#[test]
fn locks_that_are_held_are_listed() {
    on_each(|site| {
        let nothing = site.run(&["list"]).data();
        assert_eq!(nothing, "no lock is held\n");
        assert_eq!(site.run(&["list", "--json"]).json(), json!([]));
        let worker = client(&site.url, "worker-3");
        let guards = ["orders/1", "orders/2", "orderly"].map(|key| hold(&worker, key));
        let tokens = guards.each_ref().map(|guard| guard.token().to_string());
        let words = tokens.each_ref().map(|token| (token.as_str(), "[token]"));
        let listed = site.run(&["list", "orders/"]).data();
        assert_printed(&format!("list_{}", site.name), &listed, &words);
        let document = site.run(&["list", "--json"]).json();
        let mut keys: Vec<_> = document.as_array().unwrap().iter().collect();
        keys.sort_by_key(|lock| lock["key"].as_str());
        let keys: Vec<_> = keys.iter().map(|lock| lock["key"].clone()).collect();
        assert_eq!(keys, ["orderly", "orders/1", "orders/2"]);
        let all = document.as_array().unwrap();
        assert!(all.iter().all(|lock| lock["holder"]["token"].is_string()));
    });
}

#[test]
fn what_changes_is_told_as_it_happens() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let first = hold(&worker, "first");
        let arguments = ["list", "--watch", "--every", "100ms", "--json"];
        let mut watch = Running::start(&site.url, &arguments);
        let mut next = || -> (Value, Value) {
            let change: Value = serde_json::from_str(&watch.line()).unwrap();
            (change["event"].clone(), change["key"].clone())
        };
        assert_eq!(next(), (json!("granted"), json!("first")));
        let second = hold(&worker, "second");
        assert_eq!(next(), (json!("granted"), json!("second")));
        block_on(first.release()).unwrap();
        assert_eq!(next(), (json!("ended"), json!("first")));
        // Handed on between two looks, it is another grant.
        block_on(second.release()).unwrap();
        assert_eq!(next(), (json!("ended"), json!("second")));
        assert!(watch.is_running());
    });
}

#[test]
fn who_waits_is_listed_in_order() {
    on_each(|site| {
        assert_eq!(site.run(&["waiters", "nightly"]).data(), "nobody waits\n");
        let holder = client(&site.url, "holder");
        let guard = hold(&holder, "nightly");
        let waiting: Vec<_> = ["first", "second"]
            .into_iter()
            .enumerate()
            .map(|(before, name)| {
                let waiter = client(&site.url, name);
                let waiting = spawn(async move { waiter.acquire("nightly").await });
                let deadline = Instant::now() + Duration::from_secs(20);
                let queued = || site.run(&["waiters", "nightly", "--json"]).json();
                while queued().as_array().unwrap().len() <= before {
                    assert!(Instant::now() < deadline, "{name} does not queue");
                }
                waiting
            })
            .collect();
        let listed = site.run(&["waiters", "nightly"]).data();
        assert_printed("waiters", &listed, &[]);
        let document = site.run(&["waiters", "nightly", "--json"]).json();
        let owners: Vec<_> = document.as_array().unwrap().iter().collect();
        let owners: Vec<_> = owners.iter().map(|waiter| &waiter["owner"]).collect();
        assert_eq!(owners, [&json!("first"), &json!("second")]);
        let shown = site.run(&["inspect", "nightly", "--json"]).json();
        assert_eq!(shown["waiters"], json!(2));
        let listed = site.run(&["list", "--waiters", "--json"]).json();
        assert_eq!(listed[0]["waiters"], json!(2));
        block_on(guard.release()).unwrap();
        for waiting in waiting {
            let guard = block_on(waiting).unwrap().unwrap();
            block_on(guard.release()).unwrap();
        }
    });
}

#[test]
fn open_sessions_are_listed() {
    on_each(|site| {
        assert_eq!(site.run(&["sessions"]).data(), "no session is open\n");
        let worker = client(&site.url, "worker-3");
        let _guard = hold(&worker, "nightly");
        let listed = site.run(&["sessions"]).data();
        assert_printed(&format!("sessions_{}", site.name), &listed, &[]);
        let document = site.run(&["sessions", "--json"]).json();
        assert_eq!(document[0]["owner"], json!("worker-3"));
        assert_eq!(document[0]["ttl_ms"], json!(15_000));
    });
}

/// More than one page of the store.
#[test]
fn a_listing_has_all_pages() {
    on_each(|site| {
        let worker = client(&site.url, "worker-3");
        let guards: Vec<_> = (0..130).map(|n| hold(&worker, &format!("k{n}"))).collect();
        let document = site.run(&["list", "--json"]).json();
        assert_eq!(document.as_array().unwrap().len(), guards.len());
        block_on(worker.shutdown());
    });
}
