//! The lies, the clause that each breaks, and the scenario that catches it.

/// One promise that a [`Lying`](super::Lying) store breaks.
macro_rules! lies {
    ($(#[doc = $what:literal] $name:ident: $clause:literal, $scenario:ident;)*) => {
        /// A promise of the contract that is not kept.
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Lie {
            $(#[doc = $what] $name,)*
        }

        /// Every lie, in the order of the clauses that they break.
        pub const LIES: &[Caught] = &[$(
            Caught {
                lie: Lie::$name,
                what: $what.trim_ascii(),
                clause: $clause,
                scenario: stringify!($scenario),
            },
        )*];
    };
}

/// A lie and what catches it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Caught {
    /// The lie.
    pub lie: Lie,
    /// What such a store does, as a sentence.
    pub what: &'static str,
    /// The clause that it breaks.
    pub clause: &'static str,
    /// The scenario that catches it.
    pub scenario: &'static str,
}

lies! {
    /// A release stops where its caller drops it.
    StopsWhenDropped: "ALL-1", a_dropped_release_frees_the_key;
    /// A store that cannot be reached says that the grant is lost.
    TakesSilenceForLoss: "ALL-2", cut_off_every_operation_is_an_error;
    /// A store that cannot be reached says that the session is gone.
    TakesSilenceForAnEnd: "ALL-2", after_a_partition_everything_goes_on;
    /// A store that cannot be reached says that the key is held.
    TakesSilenceForHeld: "ALL-2", cut_off_every_operation_is_an_error;
    /// A store that cannot be reached says that the grant to release was not held.
    TakesSilenceForNotHeld: "ALL-2", cut_off_every_operation_is_an_error;
    /// Every error claims that nothing can have happened.
    ClaimsNoEffect: "ALL-3", cut_off_every_operation_is_an_error;
    /// A release by a stale token ends whatever stands.
    ReleasesByKey: "ALL-4", a_stale_holder_cannot_release_its_successor;
    /// An insert that had no answer is sent again behind the caller's back, under a new name.
    RevivesLateInserts: "ALL-5", an_insert_that_arrives_after_its_abandon_does_nothing;
    /// A session that is opened again is refused.
    RefusesRepeatedOpenings: "OPEN-1", a_repeated_open_answers_the_same_session;
    /// A session lives for the least ttl, whatever it was told.
    ShortensTtls: "OPEN-2", a_session_lives_as_long_as_it_was_told;
    /// A session that was closed is opened again.
    ReopensClosedSessions: "OPEN-3", a_closed_session_stays_closed;
    /// Any process may open another's session.
    SharesSessions: "OPEN-4", a_session_of_another_process_is_refused;
    /// A session that another process takes over loses what it holds.
    EmptiesAdoptedSessions: "ADOPT-1", an_adopted_session_keeps_what_it_has;
    /// A session that is gone can be taken over.
    AdoptsWhatIsGone: "ADOPT-2", a_session_that_is_gone_is_not_adopted;
    /// A session can be taken over once.
    AdoptsOnce: "ADOPT-3", adopting_again_is_fine;
    /// More is said to be left than the ttl.
    StretchesDeadlines: "KEEP-1", nobody_is_granted_before_the_holders_deadline;
    /// A grant is said to have the whole ttl left, however old its session is.
    GrantsTheWholeTtl: "KEEP-1", a_grant_has_no_more_left_than_its_session;
    /// A renewal does not name what is gone.
    HidesWhatIsGone: "KEEP-2", a_renewal_names_exactly_what_is_gone;
    /// A renewal names as gone what it was to keep.
    NamesWhatStands: "KEEP-2", a_renewal_names_exactly_what_is_gone;
    /// What nobody accounts for is kept.
    KeepsWhatIsNotListed: "KEEP-3", what_a_renewal_does_not_list_is_ended;
    /// A renewal revives a session that is gone.
    RevivesSessions: "KEEP-4", an_expired_session_is_not_revived;
    /// A session is closed, and its grants stand.
    LeavesGrantsBehind: "CLOSE-1", closing_a_session_ends_all_that_it_has;
    /// A session is closed, and its places stand.
    LeavesPlacesBehind: "CLOSE-1", closing_a_session_ends_all_that_it_has;
    /// Closing what is not open is an error.
    ClosesOnce: "CLOSE-2", a_closed_session_stays_closed;
    /// Whoever asks for a key that is held is granted it.
    GrantsWhatIsHeld: "INSERT-1", a_key_that_is_held_is_refused_to_others;
    /// The row of a lock is deleted with its grant, and tokens start anew.
    StartsTokensAnew: "INSERT-2", tokens_rise_over_hundreds_of_grants;
    /// Tokens are handed out at the floor.
    IgnoresFloors: "INSERT-2", a_floor_raised_by_hand_is_never_undercut;
    /// An attempt that is repeated is granted again, under another token.
    GrantsRepeatsAnew: "INSERT-3", an_attempt_that_is_repeated_finds_its_grant;
    /// An attempt that is repeated is told that the key is held.
    RefusesRepeats: "INSERT-3", an_attempt_that_is_repeated_finds_its_grant;
    /// Who takes no place passes those who wait.
    LetsOthersBarge: "INSERT-4", nobody_barges_past_a_queue;
    /// An attempt whose grant has ended is granted again.
    GrantsEndedAttempts: "INSERT-5", the_attempt_of_an_ended_grant_is_over;
    /// A session's other attempt is given the grant of the first.
    SharesWithinASession: "INSERT-6", a_session_excludes_its_own_other_attempts;
    /// Another session of the same owner is given the grant of the first.
    SharesAmongOneOwner: "INSERT-6", sessions_of_one_owner_exclude_each_other;
    /// Whoever in the queue asks first is granted.
    ServesWhoeverAsks: "INSERT-7", waiters_are_served_in_order;
    /// Something is granted under a session that is gone.
    GrantsWithoutASession: "INSERT-8", an_expired_session_is_not_revived;
    /// A release that came before the wait is missed.
    MissesEarlyReleases: "WAIT-1", a_release_before_the_wait_is_not_missed;
    /// Nobody is ever woken.
    NeverWakes: "WAIT-1", a_release_wakes_the_first_in_line;
    /// Waiting leaves something in the store.
    LeavesATraceOfWaiting: "WAIT-2", waiting_writes_nothing_and_keeps_the_place;
    /// A renewal gives the grant another token.
    ChangesTokensWhenExtended: "EXTEND-1", extends_in_a_row_give_the_grants_own_token;
    /// A renewal is an upsert: what is gone is made anew.
    ExtendsByUpsert: "EXTEND-2", extending_after_the_entry_was_deleted_is_none;
    /// A renewal by a stale token renews whatever stands.
    ExtendsWhateverStands: "EXTEND-2", an_expired_grant_is_never_extended;
    /// Of renewals side by side one succeeds.
    ExtendsOneAtATime: "EXTEND-3", extends_side_by_side_all_succeed;
    /// A release that is repeated says that it ended the grant.
    SaysReleasedTwice: "DELETE-1", a_grant_is_released_once;
    /// A release by any token ends what the caller's neighbour holds.
    ReleasesForAnybody: "DELETE-2", a_wrong_token_releases_nothing;
    /// The grant of an attempt that is given up stands.
    AbandonsPlacesOnly: "ABANDON-1", abandoning_ends_a_grant_as_well_as_a_place;
    /// An attempt that was given up may try again.
    ForgetsWhatWasAbandoned: "ABANDON-1", an_attempt_abandoned_before_its_first_try_is_over;
    /// Giving up again is an error.
    AbandonsOnce: "ABANDON-2", abandoning_what_is_not_there_is_fine;
    /// Reading leaves something in the store.
    LeavesATraceOfReading: "READ-1", reading_changes_nothing;
    /// Payloads are not kept.
    LosesPayloads: "READ-1", payloads_come_back_as_they_were;
    /// Keys that differ in case are one lock.
    FoldsCase: "LIST-1", keys_know_nothing_of_each_other;
    /// A prefix ends where a path segment does.
    ListsByPathSegment: "LIST-1", a_listing_shows_exactly_the_keys_with_the_prefix;
    /// What a later page begins with is left out.
    SkipsBetweenPages: "LIST-2", what_stands_throughout_is_listed_once;
    /// What a page ends with begins the next one too.
    ListsTwice: "LIST-2", what_stands_throughout_is_listed_once;
    /// A revoke says that it ended the grant, and did nothing.
    RevokesInNameOnly: "REVOKE-1", a_revoke_ends_the_grant_and_raises_the_floor;
    /// A revoke that is repeated revokes again.
    RevokesAgain: "REVOKE-2", a_repeated_revoke_answers_its_first_outcome;
    /// A revoke of a grant that has ended takes the next one.
    RevokesWhoeverHolds: "REVOKE-3", a_revoke_of_what_has_ended_changes_nothing;
    /// A revoke of a free key raises no floor.
    LeavesFreeKeysAlone: "REVOKE-4", a_revoke_of_a_free_key_raises_the_floor;
    /// The grant after a revoke is at the new floor.
    GrantsAtNewFloors: "REVOKE-5", a_revoke_lets_the_next_in_line_through;
    /// Revokes leave no record.
    KeepsNoRecords: "RECORDS-1", a_revoke_ends_the_grant_and_raises_the_floor;
    /// Records are told oldest first.
    TellsOldestRecordsFirst: "RECORDS-1", records_are_told_newest_first_and_in_pages;
    /// Clearing up ends what lives.
    ReapsTheLiving: "REAP-1", clearing_up_touches_nothing_that_lives;
    /// The term is left out of tokens.
    IgnoresTerms: "RECOVER-1", a_recovery_rises_above_what_resources_saw;
    /// A namespace is open while it is said to be closed.
    OpensWhileClosed: "RECOVER-2", a_recovery_ends_everything_and_rises_above_it;
    /// A recovery that is repeated recovers again.
    RecoversAgain: "RECOVER-3", a_repeated_recovery_ends_nothing_new;
}

impl Lie {
    /// What catches it.
    #[must_use]
    pub fn caught(self) -> Option<&'static Caught> {
        LIES.iter().find(|caught| caught.lie == self)
    }
}
