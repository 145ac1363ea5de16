//! The doctor finds each fault that was planted, and says what to do about it.

mod etcd;
mod postgres;

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::run;
use crate::sites::on_each;

/// What was found, by id.
pub(crate) struct Found {
    pub(crate) status: i32,
    findings: Vec<Value>,
}

pub(crate) fn examine(url: &str) -> Found {
    let ended = run(url, &["doctor", "--json"]);
    Found {
        status: ended.status,
        findings: ended.json().as_array().unwrap().clone(),
    }
}

impl Found {
    fn of(&self, id: &str) -> Option<&Value> {
        self.findings.iter().find(|finding| finding["id"] == id)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.of(id).is_some()
    }

    /// Finds it with this severity, these words in it, and something to do; the status fits.
    #[track_caller]
    pub(crate) fn assert(&self, id: &str, severity: &str, words: &str) {
        let all = &self.findings;
        let finding = self.of(id).unwrap_or_else(|| panic!("no {id}: {all:#?}"));
        assert_eq!(finding["severity"], severity, "{finding:#}");
        assert!(
            finding["what"].as_str().unwrap().contains(words),
            "{finding:#}"
        );
        if severity != "note" {
            assert!(finding["what_to_do"].as_str().is_some(), "{finding:#}");
        }
        let critical = all.iter().any(|finding| finding["severity"] == "critical");
        assert_eq!(self.status, i32::from(critical), "{all:#?}");
    }
}

/// Examines until it is found, for what servers take time to notice.
pub(crate) fn examine_until(url: &str, id: &str) -> Found {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = examine(url);
        if found.has(id) || Instant::now() > deadline {
            return found;
        }
    }
}

#[test]
fn a_store_in_order_has_nothing_critical() {
    on_each(|site| {
        let found = examine(&site.url);
        assert_eq!(found.status, 0, "{:#?}", found.findings);
        found.assert("server", "note", "127.0.0.1:");
        let told = site.run(&["doctor"]);
        assert!(told.stdout.contains("note      server: "), "{told:?}");
        assert!(told.stderr.starts_with("fencelock: "), "{told:?}");
    });
}

/// The worst first, with its sum on stderr.
#[test]
fn people_are_told_what_to_do() {
    let told = run("postgres://nobody@127.0.0.1:1/none", &["doctor"]);
    assert_eq!(told.status, 1);
    assert!(
        told.stdout
            .starts_with("critical  unreachable: 127.0.0.1:1"),
        "{told:?}"
    );
    assert!(
        told.stdout.contains("to do: check that the server runs"),
        "{told:?}"
    );
    assert_eq!(told.stderr, "fencelock: 1 critical\n");
}

#[test]
fn a_url_that_makes_no_sense_is_no_finding() {
    for url in [
        "redis://h",
        "etcd://h?colour=red",
        "postgres://h/d?sslmode=maybe",
    ] {
        let refused = run(url, &["doctor"]);
        assert_eq!(
            (refused.status, refused.stdout.as_str()),
            (64, ""),
            "{refused:?}"
        );
    }
}
