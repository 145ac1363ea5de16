//! Flaws that the suite must notice, each with the scenario that does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parity_tests::{SCENARIOS, Stop};

use crate::deployment::play;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flaw {
    ExtendsWhateverStands,
    FoldsCase,
    ForgetsTokens,
    ForgetsWhatWasAbandoned,
    GrantsEndedAttempts,
    IgnoresTheFloor,
    KeepsPlacesOfDeadSessions,
    KeepsWhatIsNotListed,
    LetsOthersBarge,
    ListsByPathSegment,
    MissesEarlyReleases,
    RefusesRepeats,
    ReleasesByKey,
    RevokesAgain,
    ServesTheLastFirst,
    SharesAmongOneOwner,
    StopsWhenDropped,
    TakesSilenceForLoss,
}

/// Checks that a store with this flaw fails this scenario.
fn is_noticed(flaw: Flaw, scenario: &str) {
    let Some(scenario) = SCENARIOS.iter().find(|known| known.name == scenario) else {
        panic!("there is no scenario {scenario}");
    };
    match catch_unwind(AssertUnwindSafe(|| play(scenario, Some(flaw), 0))) {
        Err(_) | Ok(Err(Stop::Failed { .. })) => {}
        Ok(Err(stop)) => panic!("{}: {stop}", scenario.name),
        Ok(Ok(())) => panic!("{} passes with {flaw:?}", scenario.name),
    }
}

macro_rules! noticed {
    ($($test:ident: $flaw:ident, $scenario:ident;)*) => {$(
        #[test]
        fn $test() {
            is_noticed(Flaw::$flaw, stringify!($scenario));
        }
    )*};
}

noticed! {
    a_release_by_key_alone_is_noticed: ReleasesByKey, a_stale_holder_cannot_release_its_successor;
    a_release_of_anothers_grant_is_noticed: ReleasesByKey, a_wrong_token_releases_nothing;
    an_extend_of_anothers_grant_is_noticed: ExtendsWhateverStands, an_expired_grant_is_never_extended;
    tokens_that_start_again_are_noticed: ForgetsTokens, tokens_rise_over_hundreds_of_grants;
    a_floor_that_is_not_kept_is_noticed: IgnoresTheFloor, a_floor_raised_by_hand_is_never_undercut;
    a_revoke_that_happens_twice_is_noticed: RevokesAgain, a_repeated_revoke_answers_its_first_outcome;
    a_repeat_that_is_refused_is_noticed: RefusesRepeats, an_attempt_that_is_repeated_finds_its_grant;
    an_attempt_granted_twice_is_noticed: GrantsEndedAttempts, the_attempt_of_an_ended_grant_is_over;
    owners_that_share_a_lock_are_noticed: SharesAmongOneOwner, sessions_of_one_owner_exclude_each_other;
    barging_is_noticed: LetsOthersBarge, nobody_barges_past_a_queue;
    a_queue_served_backwards_is_noticed: ServesTheLastFirst, waiters_are_served_in_order;
    places_of_the_dead_are_noticed: KeepsPlacesOfDeadSessions, closing_a_session_ends_all_that_it_has;
    what_nobody_listed_and_stays_is_noticed: KeepsWhatIsNotListed, a_dropped_insert_leaves_nothing;
    a_missed_release_is_noticed: MissesEarlyReleases, a_release_before_the_wait_is_not_missed;
    a_release_that_stops_when_dropped_is_noticed: StopsWhenDropped, a_dropped_release_frees_the_key;
    a_grant_after_the_abandon_is_noticed: ForgetsWhatWasAbandoned, an_insert_that_arrives_after_its_abandon_does_nothing;
    silence_taken_for_loss_is_noticed: TakesSilenceForLoss, cut_off_every_operation_is_an_error;
    keys_that_fold_case_are_noticed: FoldsCase, keys_know_nothing_of_each_other;
    a_loose_listing_is_noticed: ListsByPathSegment, a_listing_shows_exactly_the_keys_with_the_prefix;
}
