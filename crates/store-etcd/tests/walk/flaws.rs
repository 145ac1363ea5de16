//! Flaws planted into single transactions of the store on their way, and that the walks notice.

use etcd_kv::{Compare, DeleteRequest, KeyRange, Lease, Op, Txn};

use crate::common::Postman;
use crate::walk;
use crate::walking::findings::Wrong;
use crate::walking::storm;

/// A flaw that shows in none of so many walks is not noticed.
const SEEDS: u64 = 300;

/// Checks that walks find this wrong with stores whose transactions are altered so.
fn is_noticed(flaw: fn(&mut Txn), wrong: Wrong) {
    let found = (0..SEEDS).find(|seed| {
        let tale = walk(*seed, storm(), |server| Postman::altering(server, flaw));
        let findings = tale.findings(false);
        findings.iter().any(|finding| finding.wrong == wrong)
    });
    assert!(found.is_some(), "{SEEDS} walks find nothing {wrong:?}");
}

/// Whether a key is of this family.
fn is_of(key: &[u8], family: &str) -> bool {
    String::from_utf8_lossy(key).contains(&format!("/{family}/"))
}

fn compares(compare: &Compare, family: &str) -> bool {
    let (KeyRange::Key(key) | KeyRange::Prefix(key)) = &compare.range else {
        return false;
    };
    is_of(key, family)
}

fn puts(op: &Op, family: &str) -> bool {
    matches!(op, Op::Put(put) if is_of(&put.key, family))
}

fn deletes(op: &Op, family: &str) -> bool {
    matches!(op, Op::Delete(DeleteRequest { range: KeyRange::Key(key), .. }) if is_of(key, family))
}

/// A transaction that makes a grant: GRANT, or TAKE, which deletes the ticket.
fn grants(txn: &Txn) -> bool {
    txn.then.iter().any(|op| puts(op, "lock"))
}

fn takes(txn: &Txn) -> bool {
    grants(txn) && txn.then.iter().any(|op| deletes(op, "wait"))
}

/// Does nothing, and is answered as a write.
fn nothing() -> Op {
    DeleteRequest::key("/dlock/walk/nothing").into()
}

fn replace(txn: &mut Txn, which: impl Fn(&Op) -> bool) {
    let ops = txn.then.iter_mut().filter(|op| which(op));
    ops.for_each(|op| *op = nothing());
}

#[test]
fn a_grant_that_ignores_the_epoch_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if grants(txn) {
            txn.when.retain(|compare| !compares(compare, "epoch"));
        }
    };
    is_noticed(flaw, Wrong::Late);
}

#[test]
fn a_place_that_ignores_the_epoch_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if txn.then.iter().any(|op| puts(op, "wait")) {
            txn.when.retain(|compare| !compares(compare, "epoch"));
        }
    };
    is_noticed(flaw, Wrong::Late);
}

#[test]
fn a_grant_that_ignores_the_queue_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if grants(txn) && !takes(txn) {
            txn.when.retain(|compare| !compares(compare, "wait"));
        }
    };
    is_noticed(flaw, Wrong::Barged);
}

#[test]
fn a_grant_that_ignores_the_lock_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if grants(txn) {
            txn.when.retain(|compare| !compares(compare, "lock"));
        }
    };
    is_noticed(flaw, Wrong::TwoHolders);
}

#[test]
fn a_grant_without_a_lease_is_noticed() {
    let flaw = |txn: &mut Txn| {
        for op in &mut txn.then {
            if let Op::Put(put) = op
                && is_of(&put.key, "lock")
            {
                put.lease = Lease::Detached;
            }
        }
    };
    is_noticed(flaw, Wrong::Immortal);
}

#[test]
fn a_turn_that_leaves_its_place_behind_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if takes(txn) {
            replace(txn, |op| deletes(op, "wait"));
        }
    };
    is_noticed(flaw, Wrong::Ghost);
}

#[test]
fn a_turn_that_ignores_its_place_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if takes(txn) {
            txn.when.retain(|compare| !compares(compare, "wait"));
        }
    };
    is_noticed(flaw, Wrong::Late);
}

#[test]
fn an_abandon_that_raises_no_epoch_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if txn.then.iter().any(|op| deletes(op, "wait")) {
            replace(txn, |op| puts(op, "epoch"));
        }
    };
    is_noticed(flaw, Wrong::Late);
}

#[test]
fn an_abandon_that_leaves_its_place_behind_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if !grants(txn) {
            replace(txn, |op| deletes(op, "wait"));
        }
    };
    is_noticed(flaw, Wrong::Ghost);
}

#[test]
fn a_release_by_the_key_alone_is_noticed() {
    let flaw = |txn: &mut Txn| {
        if txn.then.iter().all(|op| deletes(op, "lock")) {
            txn.when.retain(|compare| !compares(compare, "lock"));
        }
    };
    is_noticed(flaw, Wrong::EndedByNobody);
}
