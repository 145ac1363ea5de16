//! Clusters whose links can be cut and whose disks can stall.

use std::time::Duration;

use test_servers::{Etcd, EtcdBuilder};

fn three() -> EtcdBuilder {
    Etcd::builder().members(3)
}

/// Whether `etcdctl` succeeds at this member within a second.
fn writes_through(etcd: &Etcd, member: usize) -> bool {
    let endpoint = &etcd.endpoints()[member];
    let arguments = [
        "--endpoints",
        endpoint,
        "--command-timeout=1s",
        "put",
        "color",
        "green",
    ];
    etcd.ctl(&arguments).is_ok()
}

/// Waits until a put through the member does as it should.
#[track_caller]
fn settles(etcd: &Etcd, member: usize, writes: bool) {
    let tries = 200;
    assert!(
        (0..tries).any(|_| writes_through(etcd, member) == writes),
        "member {member}"
    );
}

#[test]
fn an_isolated_leader_is_replaced_and_follows_once_the_network_heals() {
    let etcd = three().peers_behind_proxies().start().unwrap();
    let former = etcd.leader().unwrap();
    etcd.isolate(former).unwrap();
    settles(&etcd, former, false);
    let other = (former + 1) % 3;
    settles(&etcd, other, true);
    assert_ne!(etcd.leader().unwrap(), former);

    etcd.heal().unwrap();
    settles(&etcd, former, true);
    etcd.await_ready().unwrap();
}

#[test]
fn a_leader_that_nobody_hears_is_replaced() {
    let etcd = three().peers_behind_proxies().start().unwrap();
    let former = etcd.leader().unwrap();
    for other in [1, 2].map(|step| (former + step) % 3) {
        etcd.cut(former, other).unwrap();
    }
    settles(&etcd, (former + 1) % 3, true);
    assert_ne!(etcd.leader().unwrap(), former);
}

#[test]
fn one_cut_link_leaves_a_majority() {
    let etcd = three().peers_behind_proxies().start().unwrap();
    let leader = etcd.leader().unwrap();
    let [cut_off, other] = [1, 2].map(|step| (leader + step) % 3);
    etcd.cut(leader, cut_off).unwrap();
    etcd.cut(cut_off, leader).unwrap();
    settles(&etcd, other, true);
}

#[test]
fn peers_without_proxies_cannot_be_cut_off() {
    let etcd = Etcd::start().unwrap();
    assert!(etcd.isolate(0).is_ok(), "there is nobody else");
    assert!(etcd.cut(0, 0).is_err());
    assert!(etcd.heal().is_err());
}

#[test]
fn a_leader_with_a_stalled_disk_writes_nothing_and_is_replaced() {
    let mut etcd = three().stallable_disk().start().unwrap();
    let former = etcd.leader().unwrap();
    etcd.stall_disk(former).unwrap();
    assert!(etcd.stall_disk(former).is_err(), "it is stalled");
    settles(&etcd, former, false);
    settles(&etcd, (former + 1) % 3, true);

    etcd.free_disk(former).unwrap();
    assert!(etcd.free_disk(former).is_err(), "it is not stalled");
    settles(&etcd, former, true);
    etcd.await_ready().unwrap();
}

#[test]
fn a_member_with_a_stalled_disk_can_be_killed() {
    let mut etcd = Etcd::builder().stallable_disk().start().unwrap();
    etcd.stall_disk(0).unwrap();
    etcd.kill(0).unwrap();
    etcd.restart(0).unwrap();
    settles(&etcd, 0, true);
    etcd.stall_disk(0).unwrap();
}

#[test]
fn arguments_and_the_election_timeout_reach_the_servers() {
    let timeout = Duration::from_secs(2);
    let etcd = Etcd::builder()
        .election_timeout(timeout)
        .argument("--max-txn-ops=2")
        .start()
        .unwrap();
    let granted = etcd.ctl(&["lease", "grant", "1"]).unwrap();
    assert!(granted.contains("TTL(3s)"), "{granted}");
}
