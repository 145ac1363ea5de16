use crate::scenario::Scenario;
use crate::scenarios;

/// Calls a macro with its arguments and the list of all scenarios: chapter by chapter, their names,
/// the clauses that they show and the cases that they re-enact.
#[macro_export]
macro_rules! for_each_scenario {
    ([$($callback:tt)+] $($argument:tt)*) => {
        $($callback)+! { [$($argument)*]
            exclusion {
                a_key_that_is_held_is_refused_to_others: ["INSERT-1"] [];
                of_many_who_ask_at_once_one_is_granted: ["INSERT-1"] ["B179"];
                a_session_excludes_its_own_other_attempts: ["INSERT-6"] ["B140"];
                an_attempt_that_is_repeated_finds_its_grant: ["INSERT-3"] [];
                sessions_of_one_owner_exclude_each_other: ["INSERT-1", "INSERT-6"] ["B67", "B139"];
                the_ttl_of_who_asks_does_not_matter: ["INSERT-1"] ["B109"];
                nobody_is_granted_before_the_holders_deadline: ["KEEP-1", "OPEN-2"] ["B122"];
                refusals_leave_nothing_behind: ["INSERT-1"] ["B97"];
                a_key_deleted_by_hand_is_granted_anew: ["INSERT-2", "ALL-5"] ["B68"];
                a_holder_shows_its_owner_and_payload: ["INSERT-1"] [];
            }
            fencing {
                tokens_rise_over_hundreds_of_grants: ["INSERT-2"] ["B146"];
                a_grant_anew_in_the_same_instant_has_another_token: ["INSERT-2", "EXTEND-2"] ["B07"];
                who_comes_back_gets_a_higher_token: ["INSERT-2"] ["B116"];
                tokens_rise_along_a_queue: ["INSERT-2", "INSERT-3"] [];
            }
            floor {
                a_floor_raised_by_hand_is_never_undercut: ["INSERT-2", "ALL-3"] [];
                a_floor_binds_one_key: ["INSERT-2"] [];
                a_reader_is_told_the_floor: ["INSERT-2", "READ-1"] [];
                a_revoke_never_lowers_a_floor: ["REVOKE-5", "INSERT-2"] [];
            }
            revoke {
                a_revoke_ends_the_grant_and_raises_the_floor: ["REVOKE-1", "REVOKE-5", "RECORDS-1"] [];
                a_repeated_revoke_answers_its_first_outcome: ["REVOKE-2", "ALL-5"] [];
                a_revoke_of_what_has_ended_changes_nothing: ["REVOKE-3", "ALL-4", "RECORDS-1"] ["B161"];
                a_revoke_of_a_free_key_raises_the_floor: ["REVOKE-4", "REVOKE-5"] [];
                records_are_told_newest_first_and_in_pages: ["RECORDS-1"] [];
                the_holder_is_told_who_revoked_it_and_why: ["REVOKE-1", "KEEP-2"] [];
                a_revoke_lets_the_next_in_line_through: ["REVOKE-1", "REVOKE-5"] [];
            }
            expiry {
                a_stale_holder_cannot_release_its_successor: ["DELETE-1", "DELETE-2", "ALL-4"] ["B175"];
                an_expired_grant_is_never_extended: ["EXTEND-2", "ALL-5"] ["B02", "B04", "B08"];
                an_expired_session_is_not_revived: ["KEEP-4", "INSERT-8", "ALL-5"] [];
                the_lock_of_a_dead_holder_frees_itself: ["INSERT-1"] ["B155", "B160"];
                what_is_renewed_outlives_its_ttl: ["KEEP-1", "EXTEND-1"] [];
                what_is_said_to_be_left_is_left: ["KEEP-1", "INSERT-3"] ["B122"];
                clearing_up_touches_nothing_that_lives: ["REAP-1"] [];
                a_session_lives_as_long_as_it_was_told: ["OPEN-2"] [];
                a_grant_has_no_more_left_than_its_session: ["KEEP-1"] [];
            }
            extend {
                extends_in_a_row_give_the_grants_own_token: ["EXTEND-1"] [];
                extending_after_the_session_was_killed_is_none: ["EXTEND-2"] [];
                extending_after_the_entry_was_deleted_is_none: ["EXTEND-2", "ALL-5"] ["B02", "B08"];
                extending_what_was_given_up_is_none: ["EXTEND-2", "ALL-5"] [];
                extends_side_by_side_all_succeed: ["EXTEND-3"] [];
                an_extend_never_shortens: ["EXTEND-1"] [];
                a_made_up_token_extends_nothing: ["EXTEND-2", "INSERT-1"] [];
            }
            release {
                a_grant_is_released_once: ["DELETE-1"] ["B167"];
                a_wrong_token_releases_nothing: ["DELETE-2", "ALL-4"] [];
                any_process_can_release_by_the_token: ["DELETE-1"] [];
                of_releases_side_by_side_one_ends_the_grant: ["DELETE-1"] [];
                the_attempt_of_an_ended_grant_is_over: ["INSERT-5", "ALL-5"] [];
                a_repeated_grant_is_released_once: ["INSERT-3", "DELETE-1"] [];
                a_release_beside_an_extend_frees_the_key: ["DELETE-1", "EXTEND-2"] ["B61"];
                a_release_beside_a_renewal_is_told_that_it_ended_the_grant: ["DELETE-1", "KEEP-3"] [];
                releasing_what_expired_is_false: ["DELETE-1"] ["B175"];
            }
            adopt {
                an_adopted_session_keeps_what_it_has: ["ADOPT-1"] [];
                a_session_that_is_gone_is_not_adopted: ["ADOPT-2", "ALL-5"] [];
                adopting_again_is_fine: ["ADOPT-3"] [];
            }
            session {
                a_repeated_open_answers_the_same_session: ["OPEN-1"] [];
                a_ttl_is_never_shortened: ["OPEN-2"] ["B118", "B121"];
                a_ttl_out_of_range_reaches_no_store: ["OPEN-2"] ["B118", "B119"];
                a_closed_session_stays_closed: ["OPEN-3", "CLOSE-2", "ALL-5"] [];
                closing_what_is_not_open_is_fine: ["CLOSE-2"] [];
                a_session_of_another_process_is_refused: ["OPEN-4"] [];
                closing_a_session_ends_all_that_it_has: ["CLOSE-1", "INSERT-8"] [];
                keeping_a_killed_session_is_none: ["KEEP-4", "CLOSE-1"] ["B20"];
                a_renewal_names_exactly_what_is_gone: ["KEEP-2", "ALL-4"] [];
                what_a_renewal_does_not_list_is_ended: ["KEEP-3"] [];
                a_renewal_spares_inserts_under_way: ["KEEP-3"] [];
            }
            idempotency {
                an_insert_whose_reply_was_lost_finds_its_grant: ["INSERT-3", "ALL-1"] ["B58"];
                an_insert_whose_reply_was_lost_finds_its_place: ["INSERT-3", "INSERT-7"] ["B46"];
                a_turn_whose_reply_was_lost_finds_its_grant: ["INSERT-3"] [];
                an_insert_repeated_after_its_grant_ended_is_over: ["INSERT-5"] [];
                an_extend_whose_reply_was_lost_loses_nothing: ["EXTEND-1", "ALL-2"] ["B56"];
                a_release_whose_reply_was_lost_ends_one_grant: ["DELETE-1", "DELETE-2", "ALL-5"] ["B01", "B59"];
                a_release_whose_request_was_lost_is_repeated: ["DELETE-1", "ALL-2"] ["B59"];
                a_revoke_whose_reply_was_lost_happens_once: ["REVOKE-2", "RECORDS-1"] ["B62"];
                an_abandon_whose_reply_was_lost_is_repeated: ["ABANDON-1", "ABANDON-2"] [];
                an_opening_whose_reply_was_lost_is_repeated: ["OPEN-1"] [];
                a_close_whose_reply_was_lost_is_repeated: ["CLOSE-1", "CLOSE-2", "OPEN-3"] [];
                a_renewal_whose_reply_was_lost_loses_nothing: ["KEEP-1", "KEEP-2", "ALL-2"] ["B56"];
            }
            abandon {
                abandoning_ends_a_grant_as_well_as_a_place: ["ABANDON-1", "INSERT-5"] [];
                abandoning_what_is_not_there_is_fine: ["ABANDON-2"] [];
                an_attempt_abandoned_before_its_first_try_is_over: ["ABANDON-1", "INSERT-5"] [];
                abandoning_touches_no_other_attempt: ["ABANDON-1", "ALL-4"] [];
                an_insert_that_arrives_after_its_abandon_does_nothing: ["ABANDON-1", "ALL-5"] [];
                an_abandon_overtakes_its_insert: ["ABANDON-1", "ALL-5"] ["B46"];
                requests_that_arrive_after_a_close_bring_nothing_back: ["ALL-5", "CLOSE-1", "OPEN-3"] [];
            }
            queue {
                waiters_are_served_in_order: ["INSERT-7"] [];
                nobody_barges_past_a_queue: ["INSERT-4"] ["B101"];
                a_place_is_kept_and_taken_once: ["INSERT-3", "INSERT-7"] [];
                who_would_queue_for_a_free_key_is_granted: ["INSERT-7"] [];
                a_waiter_that_gives_up_lets_the_next_through: ["ABANDON-1", "INSERT-7"] ["B47"];
                a_queue_that_emptied_stands_in_nobodys_way: ["INSERT-7", "ABANDON-1"] [];
                a_waiter_whose_session_ended_is_passed_over: ["INSERT-8", "CLOSE-1"] ["B52", "B64", "B65"];
                a_waiter_that_died_holds_nobody_up_for_long: ["INSERT-7"] ["B52"];
                a_first_in_line_that_sleeps_is_passed_over: ["INSERT-7", "INSERT-5"] [];
                one_release_grants_one_waiter: ["INSERT-1", "INSERT-7"] ["B179"];
                queues_of_different_keys_are_independent: ["INSERT-7"] [];
            }
            wait {
                a_release_wakes_the_first_in_line: ["WAIT-1"] [];
                a_release_before_the_wait_is_not_missed: ["WAIT-1"] [];
                a_release_beside_the_wait_is_not_missed: ["WAIT-1"] [];
                an_expiry_wakes_the_first_in_line: ["WAIT-1"] [];
                every_end_before_it_wakes_a_waiter: ["WAIT-1"] [];
                the_end_of_its_own_session_wakes_a_waiter: ["WAIT-1", "INSERT-8"] ["B55", "B65"];
                a_wait_under_a_session_that_is_gone_ends: ["WAIT-1", "INSERT-8"] ["B65"];
                who_has_no_place_is_woken_too: ["WAIT-1"] [];
                waiting_writes_nothing_and_keeps_the_place: ["WAIT-2"] [];
                each_waiter_is_woken_in_turn: ["WAIT-1"] [];
            }
            keys {
                keys_know_nothing_of_each_other: ["INSERT-1", "LIST-1"] ["B127", "B128", "B130", "B134", "B136", "B137"];
                a_listing_shows_exactly_the_keys_with_the_prefix: ["LIST-1"] ["B128", "B136"];
                what_stands_throughout_is_listed_once: ["LIST-2"] [];
                a_listing_tells_who_holds_what: ["LIST-1"] [];
                pages_that_make_no_sense_are_refused: ["LIST-2", "RECORDS-1"] [];
                what_is_no_key_reaches_no_store: ["INSERT-1"] ["B131"];
                every_process_means_the_same_lock_by_a_key: ["INSERT-1"] [];
            }
            read {
                reading_changes_nothing: ["READ-1"] ["B148"];
                a_key_never_held_reads_as_free: ["READ-1"] [];
                a_reader_sees_how_many_wait: ["READ-1"] [];
                payloads_come_back_as_they_were: ["READ-1"] [];
                owners_come_back_as_they_are: ["READ-1"] [];
            }
            errors {
                cut_off_every_operation_is_an_error: ["ALL-1", "ALL-2", "ALL-3"] [];
                cut_off_a_wait_has_no_effect: ["ALL-2", "WAIT-2"] [];
                after_a_partition_everything_goes_on: ["ALL-2", "KEEP-1", "EXTEND-1"] ["B19"];
                an_insert_that_met_a_partition_is_settled_later: ["ALL-3", "INSERT-3"] [];
                a_close_that_met_a_partition_is_repeated: ["ALL-1", "CLOSE-2"] [];
                slow_answers_are_true_or_errors: ["ALL-2", "DELETE-1"] [];
                a_store_slower_than_the_ttl_grants_nothing_stale: ["INSERT-8", "OPEN-2"] ["B118"];
            }
            late {
                renewals_that_arrive_late_revive_nothing: ["EXTEND-2", "KEEP-4", "ALL-5"] ["B02"];
                a_release_that_arrives_late_ends_nothing: ["DELETE-2", "ALL-4", "ALL-5"] [];
                a_revoke_that_arrives_late_spares_the_next_grant: ["REVOKE-3", "ALL-4", "ALL-5"] [];
                cut_off_for_longer_than_its_ttl_a_session_is_gone: ["ALL-2", "KEEP-4", "EXTEND-2"] ["B08"];
                cut_off_for_longer_than_its_ttl_a_waiter_is_gone: ["INSERT-8", "ALL-5"] ["B67"];
                an_insert_caught_under_way_does_nothing_later: ["ABANDON-1", "ALL-5"] ["B37"];
            }
            beside {
                tries_of_one_attempt_have_one_grant: ["INSERT-3", "INSERT-1"] [];
                tries_of_one_attempt_have_one_place: ["INSERT-3", "INSERT-7"] [];
                an_abandon_beside_its_insert_wins: ["ABANDON-1", "INSERT-5"] ["B37"];
                a_close_beside_an_insert_leaves_nothing: ["CLOSE-1", "INSERT-8", "ALL-5"] [];
                openings_of_one_id_are_one_session: ["OPEN-1"] [];
                of_revokes_at_once_one_ends_the_grant: ["REVOKE-1", "REVOKE-2", "RECORDS-1"] [];
                a_renewal_beside_a_release_frees_the_key: ["KEEP-2", "DELETE-1"] ["B61"];
            }
            scale {
                a_session_with_many_grants_is_kept_and_closed: ["KEEP-2", "KEEP-3", "CLOSE-1"] [];
                a_long_queue_keeps_its_order: ["INSERT-7", "ABANDON-1"] ["B98"];
            }
            cancellation {
                a_dropped_insert_leaves_nothing: ["ALL-1", "KEEP-3"] ["B38", "B172"];
                a_dropped_place_stands_in_nobodys_way: ["ALL-1", "KEEP-3", "INSERT-7"] ["B46", "B172"];
                a_dropped_turn_is_found_again_or_given_up: ["ALL-1", "KEEP-3"] ["B50"];
                a_dropped_renewal_loses_nothing: ["ALL-1", "EXTEND-1", "KEEP-2"] ["B172"];
                a_dropped_release_frees_the_key: ["ALL-1", "DELETE-1"] ["B172"];
                a_dropped_abandon_ends_the_attempt: ["ALL-1", "ABANDON-1"] ["B172"];
                a_dropped_revoke_happens_once: ["ALL-1", "REVOKE-2", "RECORDS-1"] ["B172"];
                a_dropped_opening_or_close_is_settled_by_a_close: ["ALL-1", "CLOSE-1", "OPEN-1"] ["B172"];
                dropped_looks_leave_no_trace: ["WAIT-2", "READ-1", "ALL-1"] [];
            }
            admin {
                operators_see_the_open_sessions: ["OPEN-2", "CLOSE-1"] [];
                operators_see_who_waits_in_order: ["INSERT-7"] [];
                migrating_what_is_current_changes_nothing: ["READ-1"] [];
                a_store_that_is_well_has_no_critical_findings: ["ALL-4"] [];
                a_recovery_ends_everything_and_rises_above_it: ["RECOVER-1", "RECOVER-2", "ALL-5"] [];
                a_recovery_rises_above_what_resources_saw: ["RECOVER-1"] [];
                a_repeated_recovery_ends_nothing_new: ["RECOVER-3"] [];
                floors_and_records_outlive_a_recovery: ["RECOVER-1", "REVOKE-5"] [];
            }
        }
    };
}

/// Makes a test of every scenario, played by a [`Fixture`](crate::Fixture): a module `parity`.
///
/// The fixture is named by its bare name, and is in scope where the suite is made.
#[macro_export]
macro_rules! suite {
    ($fixture:ident) => {
        mod parity {
            $crate::for_each_scenario! { [$crate::tests_by] $fixture }

            #[test]
            fn what_does_not_apply_is_told_and_counted() {
                $crate::check_lacks::<super::$fixture>();
            }
        }
    };
}

/// What [`suite!`](crate::suite!) is made of: a module for each chapter, a test for each scenario.
#[macro_export]
macro_rules! tests_by {
    ([$fixture:ident] $($chapter:ident { $($name:ident: $clauses:tt $cases:tt;)* })*) => {
        $($crate::tests_by! { @chapter $fixture $chapter $($name)* })*
    };
    (@chapter $fixture:ident $chapter:ident $($name:ident)*) => {
        mod $chapter {
            $(
                #[test]
                fn $name() {
                    $crate::check::<super::super::$fixture>(stringify!($name));
                }
            )*
        }
    };
}

macro_rules! list {
    ([] $($chapter:ident { $($name:ident: $clauses:tt $cases:tt;)* })*) => {
        &[$($(
            Scenario {
                chapter: stringify!($chapter),
                name: stringify!($name),
                clauses: &$clauses,
                cases: &$cases,
                play: |scene| Box::pin(scenarios::$chapter::$name(scene)),
            },
        )*)*]
    };
}

/// All scenarios.
pub const SCENARIOS: &[Scenario] = for_each_scenario! { [list] };

#[cfg(test)]
mod tests;
