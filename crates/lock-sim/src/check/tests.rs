//! Each invariant, on records written by hand: what keeps it passes, what breaks it is found, and by
//! the checker that it belongs to.

use std::time::Duration;

use super::{Checkers, Invariant, LockState};
use crate::record::{Answer, Asks, Commit, EndCause, Lane, Phase, What};
use crate::sample::{BOUNDS, Script, TTL, a, b, key, session, token};

/// It finds exactly one thing, of this kind, in these words.
fn finds(script: &Script, invariant: Invariant, words: &str) {
    let found = script.violations();
    let told: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1, "{told:#?}");
    assert_eq!(found[0].invariant, invariant, "{told:#?}");
    assert!(found[0].sentence.contains(words), "{told:#?}");
}

fn finds_nothing(script: &Script) {
    let found = script.violations();
    assert!(found.is_empty(), "{found:#?}");
}

/// Millis until a session that is never renewed has ended.
fn whole_ttl() -> u64 {
    u64::try_from(TTL.as_millis()).unwrap()
}

/// The lease of session 1 runs out, and the grant with it.
fn expires(script: &mut Script, number: u64) {
    script.wait(whole_ttl() + 200);
    script.ended(Lane::Server, number, EndCause::Expired);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
}

#[test]
fn a_run_without_fault_passes() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).believes(a(), 5).wrote(a(), 5, true);
    let waiting = script.acquire(b());
    script.wait(10).queued(b(), 7, 2).wait(3_000).renew(a(), 1);
    script.believes(a(), 5).release(a(), 5);
    script.granted(b(), 7, 2).left(b(), 7, EndCause::Served);
    script
        .wait(10)
        .answer(b(), waiting, Answer::Granted(token(7)));
    script
        .wrote(a(), 5, true)
        .wrote(b(), 7, true)
        .wrote(a(), 5, false);
    script.wait(10).phase(Phase::Liveness).release(b(), 7);
    script.session_ended(a(), 1, EndCause::LeaseRevoked);
    script.session_ended(b(), 2, EndCause::LeaseRevoked);
    script
        .wait(10)
        .phase(Phase::Quiet)
        .wait(10)
        .phase(Phase::End);
    finds_nothing(&script);
}

#[test]
fn a_grant_that_expires_and_its_holder_who_gives_up_in_time_pass() {
    let mut script = Script::new();
    script
        .renew(a(), 1)
        .grant(a(), 5, 1)
        .wait(whole_ttl() - 1_050);
    script.believes(a(), 5).wait(70).lost(a(), 5, false);
    script.wait(1_200).ended(Lane::Server, 5, EndCause::Expired);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    finds_nothing(&script);
}

/// INV-01
#[test]
fn a_second_grant_of_a_key_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).grant(b(), 7, 2);
    finds(&script, Invariant::OneGrant, "while token 5 stands");
}

/// INV-01
#[test]
fn a_grant_that_was_never_committed_is_found() {
    let mut script = Script::new();
    let call = script.acquire(a());
    script.wait(10).answer(a(), call, Answer::Granted(token(9)));
    finds(&script, Invariant::OneGrant, "never committed");
}

/// INV-01
#[test]
fn a_grant_that_two_callers_are_given_is_found() {
    let mut script = Script::new();
    let (first, second) = (script.acquire(a()), script.acquire(b()));
    script.wait(10).granted(a(), 5, 1);
    script.answer(a(), first, Answer::Granted(token(5)));
    script.answer(b(), second, Answer::Granted(token(5)));
    finds(
        &script,
        Invariant::OneGrant,
        "a second time, after client a",
    );
}

/// INV-01
#[test]
fn until_a_recovery_a_backup_may_give_a_token_out_again() {
    let mut script = Script::new();
    let first = script.acquire(a());
    script.wait(10).granted(a(), 5, 1);
    script.answer(a(), first, Answer::Granted(token(5)));
    script.release(a(), 5);
    script.commit(Lane::Operator, Commit::Restored);
    let second = script.acquire(b());
    script.wait(10).granted(b(), 5, 1);
    script.answer(b(), second, Answer::Granted(token(5)));
    finds_nothing(&script);
}

/// INV-06
#[test]
fn until_a_recovery_a_backup_may_bring_back_what_was_released() {
    let mut script = Script::new();
    let taken = script.acquire(a());
    script.wait(10).granted(a(), 5, 1);
    script.answer(a(), taken, Answer::Granted(token(5)));
    let release = script.release_call(a(), 5);
    script.ended(a(), 5, EndCause::Deleted);
    script.commit(Lane::Operator, Commit::Restored);
    script.granted(Lane::Operator, 5, 1);
    script.answer(a(), release, Answer::Released);
    finds_nothing(&script);
}

/// INV-06
#[test]
fn whoever_took_a_session_over_may_end_it_when_a_backup_has_brought_it_back() {
    let opened = |session| Commit::SessionOpened {
        session,
        owner: "client a".into(),
        ttl: TTL,
    };
    let mut script = Script::new();
    script.commit(
        b(),
        Commit::SessionTaken {
            session: session(1),
        },
    );
    script.session_ended(b(), 1, EndCause::LeaseRevoked);
    script.commit(Lane::Operator, Commit::Restored);
    script.commit(a(), opened(session(1)));
    script.commit(Lane::Operator, Commit::Recovered { term: 1 });
    script.session_ended(b(), 1, EndCause::LeaseRevoked);
    finds_nothing(&script);
    script.commit(a(), opened(session(3)));
    script.session_ended(b(), 3, EndCause::LeaseRevoked);
    finds(&script, Invariant::ExactEnd, "is ended by client b");
}

/// INV-02
#[test]
fn a_grant_that_outlives_its_session_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    script.wait(1).add(Lane::World, What::Note("later".into()));
    finds(&script, Invariant::Cascade, "its grant 5 of \"k\" stands");
}

/// INV-02
#[test]
fn a_place_that_outlives_its_session_is_found() {
    let mut script = Script::new();
    script.queued(b(), 7, 2).wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 2, EndCause::Expired);
    finds(&script, Invariant::Cascade, "its place for \"k\" stands");
}

/// INV-02
#[test]
fn what_is_made_under_a_session_that_is_over_is_found() {
    let mut script = Script::new();
    script.wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    script.wait(1).granted(a(), 5, 1);
    finds(&script, Invariant::Cascade, "which ended at 10.200 s");

    let mut script = Script::new();
    script.wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    script.wait(1).queued(a(), 5, 1);
    finds(&script, Invariant::Cascade, "takes a place");
}

/// INV-03
#[test]
fn an_entry_that_is_written_over_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1);
    let (key, token) = (key(), token(6));
    script.commit(a(), Commit::Rewritten { key, token });
    finds(&script, Invariant::SameToken, "written over");
}

/// INV-03
#[test]
fn belief_in_a_token_that_was_never_given_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10).believes(b(), 5);
    finds(&script, Invariant::SameToken, "never given");
}

/// INV-04
#[test]
fn tokens_that_go_back_are_found() {
    let mut script = Script::new();
    let early = script.acquire(b());
    script.grant(a(), 5, 1).release(a(), 5);
    script.granted(b(), 4, 2).wait(10);
    script.answer(b(), early, Answer::Granted(token(4)));
    finds(&script, Invariant::TokensRise, "token 4 after token 5");
}

/// INV-04
#[test]
fn a_grant_at_the_floor_is_found() {
    let mut script = Script::new();
    let (floor, key) = (token(9), key());
    script.commit(Lane::Operator, Commit::FloorRaised { key, floor });
    script.wait(10).grant(a(), 9, 1);
    finds(&script, Invariant::TokensRise, "floor 9 was known");
}

/// INV-04
#[test]
fn a_term_that_goes_back_is_found() {
    let mut script = Script::new();
    script.commit(Lane::Operator, Commit::Restored);
    script.commit(Lane::Operator, Commit::Recovered { term: 3 });
    script.wait(10).grant(a(), 9, 1);
    finds(&script, Invariant::TokensRise, "of a term below 3");
}

/// INV-04
#[test]
fn in_a_store_that_went_back_a_client_trusts_what_it_was_told_itself() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).release(a(), 5).wait(10);
    script.commit(Lane::Operator, Commit::Restored);
    script.grant(b(), 4, 2).release(b(), 4);
    finds_nothing(&script);
    script.grant(a(), 3, 1);
    finds(&script, Invariant::TokensRise, "token or floor 5 was known");
}

/// INV-04
#[test]
fn a_resource_that_takes_an_older_token_is_found() {
    let mut script = Script::new();
    script.wrote(b(), 7, true).wait(10).wrote(a(), 5, true);
    finds(&script, Invariant::TokensRise, "takes a write with token 5");
}

/// INV-05
#[test]
fn a_definite_loss_of_what_stands_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10).lost(a(), 5, true);
    finds(&script, Invariant::NoFalseLoss, "definitely gone");
}

/// INV-05
#[test]
fn giving_up_with_time_left_is_found() {
    let mut script = Script::new();
    script.renew(a(), 1).grant(a(), 5, 1).wait(3_000);
    script.lost(a(), 5, false);
    finds(&script, Invariant::NoFalseLoss, "last confirmed renewal");
}

/// INV-05
#[test]
fn a_release_that_calls_gone_what_stands_is_found() {
    let mut script = Script::new();
    script.renew(a(), 1).grant(a(), 5, 1);
    let call = script.release_call(a(), 5);
    script.wait(10).answer(a(), call, Answer::AlreadyGone);
    finds(&script, Invariant::NoFalseLoss, "gone before its release");
}

/// INV-06
#[test]
fn the_end_of_anothers_grant_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10);
    script.ended(b(), 5, EndCause::Deleted);
    finds(&script, Invariant::ExactEnd, "not its own");
}

/// INV-06
#[test]
fn the_end_of_what_the_own_caller_holds_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10);
    script.ended(a(), 5, EndCause::Deleted);
    finds(&script, Invariant::ExactEnd, "which client a holds");
}

/// INV-06
#[test]
fn a_release_that_released_nothing_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1);
    let call = script.release_call(a(), 5);
    script.wait(10).answer(a(), call, Answer::Released);
    finds(&script, Invariant::ExactEnd, "and stands");
}

/// INV-06
#[test]
fn a_release_that_succeeds_twice_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).release(a(), 5);
    let call = script.release_call(a(), 5);
    script.wait(10).answer(a(), call, Answer::Released);
    finds(&script, Invariant::ExactEnd, "a second time");
}

/// INV-06
#[test]
fn a_lease_that_is_ended_before_its_time_is_found() {
    let mut script = Script::new();
    script.renew(a(), 1).wait(1_000);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    finds(&script, Invariant::ExactEnd, "had until 10.010 s");

    let mut script = Script::new();
    script.session_ended(b(), 1, EndCause::LeaseRevoked);
    finds(&script, Invariant::ExactEnd, "is ended by client b");
}

/// INV-07
#[test]
fn a_grant_that_comes_back_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).release(a(), 5);
    script.wait(10).granted(a(), 5, 1);
    let found = script.violations();
    assert!(
        found
            .iter()
            .any(|found| found.invariant == Invariant::GoneForGood
                && found.sentence.contains("stands again")),
        "{found:?}"
    );
}

/// INV-07
#[test]
fn a_session_that_comes_back_is_found() {
    let mut script = Script::new();
    script.wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    let (session, until) = (session(1), Duration::from_secs(60));
    script.commit(a(), Commit::SessionRenewed { session, until });
    finds(&script, Invariant::GoneForGood, "lives again");
}

/// INV-07
#[test]
fn a_renewal_of_what_was_gone_is_found() {
    let mut script = Script::new();
    script.wait(whole_ttl() + 200);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    script.wait(10);
    let call = script.call(
        a(),
        Asks::Renew {
            session: session(1),
        },
    );
    script.wait(10).answer(a(), call, Answer::Renewed(TTL));
    finds(&script, Invariant::GoneForGood, "before that was asked");
}

/// INV-08
#[test]
fn a_waiter_that_nobody_serves_is_found() {
    let mut script = Script::new();
    script.acquire(a());
    script.wait(10).phase(Phase::Liveness);
    script
        .wait(29_000)
        .add(Lane::World, What::Note("in time".into()));
    finds_nothing(&script);
    script
        .wait(1_001)
        .add(Lane::World, What::Note("late".into()));
    finds(&script, Invariant::Turns, "longer than 30.0 s");
}

/// INV-08
#[test]
fn a_wait_in_vain_after_faults_are_healed_is_found() {
    let mut script = Script::new();
    script.phase(Phase::Liveness);
    let call = script.acquire(a());
    script.wait(10).answer(a(), call, Answer::Failed);
    finds(&script, Invariant::Turns, "in vain");
}

/// INV-08
#[test]
fn whoever_passes_a_queue_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).queued(b(), 7, 2).release(a(), 5);
    script.granted(a(), 9, 1).wait(10);
    finds(&script, Invariant::Turns, "1 waited before it");
}

/// INV-08
#[test]
fn a_backup_passes_nobody() {
    let mut script = Script::new();
    script.queued(b(), 7, 2).wait(10);
    script.commit(Lane::Operator, Commit::Restored);
    script.granted(Lane::Operator, 5, 1).wait(10);
    finds_nothing(&script);
}

/// INV-08
#[test]
fn whoever_pushes_another_out_of_the_queue_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).queued(b(), 7, 2).release(a(), 5);
    script.left(a(), 7, EndCause::Deleted);
    finds(&script, Invariant::Turns, "not its own");
}

/// INV-08
#[test]
fn a_head_that_does_not_come_may_be_passed() {
    let mut script = Script::new();
    script.renew(a(), 1).grant(a(), 5, 1).queued(b(), 7, 2);
    script.queued(a(), 9, 1).release(a(), 5).renew(b(), 2);
    script.wait(6_000).renew(a(), 1).renew(b(), 2).wait(6_000);
    script.granted(a(), 9, 1).left(a(), 9, EndCause::Served);
    script.left(a(), 7, EndCause::Deleted).wait(10);
    finds_nothing(&script);
}

/// INV-09
#[test]
fn a_ghost_that_outlives_a_renewal_is_found() {
    let mut script = Script::new();
    let call = script.acquire(a());
    script.wait(10).answer(a(), call, Answer::Cancelled);
    script.wait(10).granted(a(), 5, 1).wait(10).renew(a(), 1);
    finds(&script, Invariant::NoGhost, "stands for nobody");
}

/// INV-09
#[test]
fn a_ghost_that_a_renewal_ends_passes() {
    let mut script = Script::new();
    let call = script.acquire(a());
    script.wait(10).answer(a(), call, Answer::Cancelled);
    script.wait(10).granted(a(), 5, 1).wait(10);
    let call = script.call(
        a(),
        Asks::Renew {
            session: session(1),
        },
    );
    script.wait(10).ended(a(), 5, EndCause::Deleted).wait(10);
    script.answer(a(), call, Answer::Renewed(TTL));
    finds_nothing(&script);
}

/// INV-09
#[test]
fn what_is_left_in_the_end_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10).phase(Phase::End);
    finds(&script, Invariant::NoGhost, "token 5 of \"k\" stands");

    let mut script = Script::new();
    script.queued(b(), 7, 2).wait(10).phase(Phase::End);
    finds(&script, Invariant::NoGhost, "a place for \"k\" stands");
}

/// INV-10
#[test]
fn belief_in_what_has_ended_is_found() {
    let mut script = Script::new();
    script.grant(a(), 5, 1);
    expires(&mut script, 5);
    script.believes(a(), 5);
    finds(&script, Invariant::NoFalseHold, "its lease ran out");
}

/// INV-10
#[test]
fn a_clock_beyond_the_bound_excuses_belief() {
    let mut script = Script::new();
    script.add(a(), What::ClockChanged { rate: -200_000 });
    script.grant(a(), 5, 1);
    expires(&mut script, 5);
    script.believes(a(), 5);
    finds_nothing(&script);
}

/// INV-10
#[test]
fn an_administrator_excuses_belief_for_a_ttl_and_not_for_ever() {
    let mut script = Script::new();
    script.grant(a(), 5, 1).wait(10);
    script.ended(Lane::Operator, 5, EndCause::Deleted);
    script.wait(3_000).believes(a(), 5).renew(a(), 1);
    finds_nothing(&script);
    script.wait(whole_ttl()).believes(a(), 5);
    finds(&script, Invariant::NoFalseHold, "more than a ttl ago");
}

#[test]
fn a_panic_is_found() {
    let mut script = Script::new();
    script.add(a(), What::Panicked);
    finds(&script, Invariant::Sound, "client a panicked");
}

/// INV-09
#[test]
fn a_crash_forgets_calls_and_guards() {
    let mut script = Script::new();
    script.grant(a(), 5, 1);
    script.acquire(a());
    script
        .add(a(), What::Crashed)
        .wait(10)
        .phase(Phase::Liveness);
    script.wait(whole_ttl() + 200);
    script.ended(Lane::Server, 5, EndCause::Expired);
    script.session_ended(Lane::Server, 1, EndCause::Expired);
    script
        .wait(60_000)
        .add(Lane::World, What::Note("late".into()));
    finds_nothing(&script);
}

#[test]
fn faults_are_counted_by_the_state_in_which_they_are_met() {
    let mut script = Script::new();
    script.add(b(), What::FaultHappened("pause"));
    script.grant(a(), 5, 1).acquire(b());
    script.add(b(), What::FaultHappened("pause"));
    script
        .add(Lane::Network, What::FaultBegan("partition"))
        .renew(a(), 1);
    script
        .add(Lane::Network, What::FaultEnded("partition"))
        .release(a(), 5);
    let mut checkers = Checkers::new(BOUNDS);
    for entry in &script.entries {
        checkers.observe(entry);
    }
    let mut met = checkers.met().clone();
    for (fault, state, count) in [
        ("pause", LockState::Waiting, 1),
        ("pause", LockState::Held, 0),
        ("partition", LockState::Waiting, 1),
        ("partition", LockState::Held, 1),
        ("partition", LockState::Renewing, 1),
        ("partition", LockState::Releasing, 0),
    ] {
        assert_eq!(met.count(fault, state), count, "{fault} {state}");
    }
    met.add(checkers.met());
    assert_eq!(met.count("partition", LockState::Held), 2);
    let missing: Vec<_> = met.missing(["partition"]).collect();
    assert_eq!(
        missing,
        [
            ("partition", LockState::Releasing),
            ("partition", LockState::Lost)
        ]
    );
}
