//! After data went back: every token goes on above all that were handed out, and old guards are lost.

use std::time::Duration;

use fencelock::spi::FencingToken;
use fencelock::{Client, Guard};
use serde_json::json;
use test_servers::{Etcd, Postgres, RestoredAs};

use crate::clients::{block_on, client, hold, lost};
use crate::command::{Running, run};
use crate::doctor::{examine, examine_until};
use crate::sites::{DATABASE, etcd_url, with_schema};

/// Of the clients here; so long the namespace has to be closed.
const TTL: &str = "2s";
/// How often a lock changes hands that the backup knows nothing of.
const FORGOTTEN: usize = 20;

/// Takes and releases the lock, and takes it once more; the last token is the highest.
fn go_on(client: &Client, key: &str) -> Guard {
    for _ in 0..FORGOTTEN {
        block_on(hold(client, key).release()).unwrap();
    }
    hold(client, key)
}

/// The guard is over, and what is granted now is above it.
fn assert_goes_on_above(url: &str, old: &Guard, highest: FencingToken) {
    lost(old);
    assert!(old.check().is_err());
    let next = hold(&client(url, "the next one"), "nightly");
    assert!(
        next.token() > highest,
        "{} is not above {highest}",
        next.token()
    );
    assert_eq!(examine(url).status, 0);
}

fn recover(url: &str, more: &[&str]) -> serde_json::Value {
    let all = ["recover", "--hold-off", TTL, "--yes", "--json"];
    let recovered = run(url, &[&all, more].concat());
    assert_eq!(recovered.status, 0, "{recovered:?}");
    recovered.json()
}

/// A restored backup of etcd, as its former self and as another cluster: the revisions begin below
/// what was handed out.
#[test]
fn after_a_snapshot_of_etcd_was_restored_tokens_go_on_above() {
    for identity in [RestoredAs::ItsFormerSelf, RestoredAs::AnotherCluster] {
        let mut server = Etcd::start().unwrap();
        let url = format!("{}?ttl={TTL}", etcd_url(&server));
        let worker = client(&url, "worker-3");
        block_on(hold(&worker, "nightly").release()).unwrap();
        let backup = server.save().unwrap();
        let old = go_on(&worker, "nightly");
        let highest = old.token();
        server.restore(&backup, identity).unwrap();
        if identity == RestoredAs::AnotherCluster {
            examine(&url).assert("other_cluster", "critical", "holds a copy");
        }
        let recovered = recover(&url, &["--above", &highest.to_string()]);
        assert!(recovered["term"].as_u64().unwrap() > highest.term());
        assert_goes_on_above(&url, &old, highest);
    }
}

/// A restored dump: sequence, rows and sessions are as they were.
#[test]
fn after_a_dump_of_postgres_was_restored_tokens_go_on_above() {
    let server = Postgres::start().unwrap();
    with_schema(&server);
    let url = format!("{}?ttl={TTL}", server.url(DATABASE));
    let worker = client(&url, "worker-3");
    block_on(hold(&worker, "nightly").release()).unwrap();
    let dump = server.run_program("pg_dump", &[DATABASE]).unwrap();
    let old = go_on(&worker, "nightly");
    let highest = old.token();
    server
        .psql("postgres", "DROP DATABASE app WITH (FORCE)")
        .unwrap();
    server.create_database(DATABASE).unwrap();
    server.psql(DATABASE, &dump).unwrap();
    let recovered = recover(&url, &[]);
    assert!(recovered["term"].as_u64().unwrap() > highest.term());
    assert_goes_on_above(&url, &old, highest);
}

/// Nobody is asked by accident, and what will happen is said first.
#[test]
fn a_recovery_demands_consent_and_says_what_it_will_do() {
    let server = Etcd::start().unwrap();
    let url = etcd_url(&server);
    let worker = client(&url, "worker-3");
    let guard = hold(&worker, "nightly");
    let refused = run(&url, &["recover", "--hold-off", "5s"]);
    assert_eq!(refused.status, 64, "{refused:?}");
    assert!(refused.stderr.contains("ends every session"), "{refused:?}");
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    assert!(guard.check().is_ok());
}

/// Interrupted, it is gone on with by its id, in the same term, and until then nothing is granted.
#[test]
fn a_recovery_that_was_interrupted_is_gone_on_with_by_its_id() {
    let server = Postgres::start().unwrap();
    with_schema(&server);
    let url = format!("{}?ttl={TTL}", server.url(DATABASE));
    let id = "00000000000000000000000000000007";
    let begin = ["recover", "--hold-off", "3s", "--yes", "--id", id];
    let begun = Running::start(&url, &begin);
    assert!(examine_until(&url, "namespace_closed").has("namespace_closed"));
    drop(begun);
    let waiting = client(&url, "worker-3");
    let refused = block_on(waiting.try_acquire("nightly"));
    assert!(refused.is_err(), "{refused:?}");
    let recovered = recover(&url, &["--id", id]);
    assert_eq!(recovered["id"], json!(id));
    let term = recovered["term"].as_u64().unwrap();
    let guard = block_on(async {
        let acquire = waiting.acquire("nightly");
        acquire.wait_at_most(Duration::from_secs(20)).await
    });
    assert_eq!(guard.unwrap().token().term(), term);
}
