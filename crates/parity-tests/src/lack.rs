use std::fmt;

/// What a store, or its deployment, may do without.
///
/// The scenarios that need it do not apply then. They are known by name, so that no more and no
/// fewer are left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Lack {
    /// Faults on the way between a store object and its server: a [`FaultPort`](crate::FaultPort).
    Faults,
    /// Means for operators: [`LockStore::admin`](lock_spi::LockStore::admin).
    Operators,
}

impl Lack {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Faults, Self::Operators];

    /// The scenarios that need it, by name.
    #[must_use]
    pub const fn scenarios(self) -> &'static [&'static str] {
        match self {
            Self::Faults => NEED_FAULTS,
            Self::Operators => NEED_OPERATORS,
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faults => "faults on the way to its server",
            Self::Operators => "means for operators",
        })
    }
}

const NEED_FAULTS: &[&str] = &[
    "what_is_said_to_be_left_is_left",
    "an_insert_whose_reply_was_lost_finds_its_grant",
    "an_insert_whose_reply_was_lost_finds_its_place",
    "a_turn_whose_reply_was_lost_finds_its_grant",
    "an_insert_repeated_after_its_grant_ended_is_over",
    "an_extend_whose_reply_was_lost_loses_nothing",
    "a_release_whose_reply_was_lost_ends_one_grant",
    "a_release_whose_request_was_lost_is_repeated",
    "a_revoke_whose_reply_was_lost_happens_once",
    "an_abandon_whose_reply_was_lost_is_repeated",
    "an_opening_whose_reply_was_lost_is_repeated",
    "a_close_whose_reply_was_lost_is_repeated",
    "a_renewal_whose_reply_was_lost_loses_nothing",
    "an_insert_that_arrives_after_its_abandon_does_nothing",
    "an_abandon_overtakes_its_insert",
    "requests_that_arrive_after_a_close_bring_nothing_back",
    "cut_off_every_operation_is_an_error",
    "cut_off_a_wait_has_no_effect",
    "after_a_partition_everything_goes_on",
    "an_insert_that_met_a_partition_is_settled_later",
    "a_close_that_met_a_partition_is_repeated",
    "slow_answers_are_true_or_errors",
    "a_store_slower_than_the_ttl_grants_nothing_stale",
    "renewals_that_arrive_late_revive_nothing",
    "a_release_that_arrives_late_ends_nothing",
    "a_revoke_that_arrives_late_spares_the_next_grant",
    "cut_off_for_longer_than_its_ttl_a_session_is_gone",
    "cut_off_for_longer_than_its_ttl_a_waiter_is_gone",
    "an_insert_caught_under_way_does_nothing_later",
];

const NEED_OPERATORS: &[&str] = &[
    "operators_see_the_open_sessions",
    "operators_see_who_waits_in_order",
    "migrating_what_is_current_changes_nothing",
    "a_store_that_is_well_has_no_critical_findings",
    "a_recovery_ends_everything_and_rises_above_it",
    "a_recovery_rises_above_what_resources_saw",
    "a_repeated_recovery_ends_nothing_new",
    "floors_and_records_outlive_a_recovery",
];
