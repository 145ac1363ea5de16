//! Servers start, fail on demand, come back, and are gone afterwards.

use std::net::TcpStream;
use test_servers::Etcd;

fn has_listener(endpoint: &str) -> bool {
    TcpStream::connect(endpoint).is_ok()
}

#[test]
fn a_killed_server_comes_back_with_its_data_where_it_was() {
    let mut etcd = Etcd::start().unwrap();
    let endpoints = etcd.endpoints();
    etcd.ctl(&["put", "color", "green"]).unwrap();

    etcd.kill(0).unwrap();
    assert!(!has_listener(&endpoints[0]));
    assert!(etcd.kill(0).is_err(), "it is down");

    etcd.restart(0).unwrap();
    assert!(etcd.restart(0).is_err(), "it is up");
    assert_eq!(etcd.endpoints(), endpoints);
    let value = etcd.ctl(&["get", "color", "--print-value-only"]).unwrap();
    assert_eq!(value.trim(), "green");
}

#[test]
fn a_paused_server_answers_nothing_until_it_is_resumed() {
    let etcd = Etcd::start().unwrap();
    let put = ["--command-timeout=500ms", "put", "color", "green"];
    etcd.pause(0).unwrap();
    assert!(has_listener(&etcd.endpoints()[0]), "the system listens");
    assert!(etcd.ctl(&put).is_err());
    etcd.resume(0).unwrap();
    etcd.ctl(&["put", "color", "green"]).unwrap();
}

#[test]
fn a_cluster_of_three_does_without_one_member() {
    let mut etcd = Etcd::cluster(3).unwrap();
    assert_eq!(etcd.endpoints().len(), 3);
    for member in 0..3 {
        etcd.kill(member).unwrap();
        etcd.await_ready().unwrap();
        etcd.ctl(&["put", "color", "green"]).unwrap();
        etcd.restart(member).unwrap();
    }
}

#[test]
fn a_cluster_that_was_killed_as_a_whole_comes_back() {
    let mut etcd = Etcd::cluster(3).unwrap();
    etcd.ctl(&["put", "color", "green"]).unwrap();
    for member in 0..3 {
        etcd.kill(member).unwrap();
    }
    for member in 0..3 {
        etcd.restart(member).unwrap();
    }
    etcd.await_ready().unwrap();
    let value = etcd.ctl(&["get", "color", "--print-value-only"]).unwrap();
    assert_eq!(value.trim(), "green");
}

#[test]
fn a_lease_can_be_as_short_as_a_second() {
    let etcd = Etcd::start().unwrap();
    let granted = etcd.ctl(&["lease", "grant", "1"]).unwrap();
    assert!(granted.contains("TTL(1s)"), "{granted}");
}

#[test]
fn servers_that_are_dropped_are_gone() {
    let mut etcd = Etcd::cluster(3).unwrap();
    let endpoints = etcd.endpoints();
    etcd.kill(2).unwrap();
    etcd.pause(1).unwrap();
    drop(etcd);
    for endpoint in endpoints {
        assert!(!has_listener(&endpoint), "{endpoint}");
    }
}
