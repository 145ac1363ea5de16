use parity_tests::liars::Lie;

use super::bug::{Bug, ClusterBug, ServerBug, StoreBug};

/// A known bug, and what is known about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Known {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What to plant.
    pub bug: Bug,
    /// What it does, as a sentence.
    pub what: &'static str,
    /// Where it was seen.
    pub seen: &'static str,
    /// What becomes of it here.
    pub fate: Fate,
}

/// What becomes of a bug.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It breaks an invariant, and the simulator shows it.
    Caught,
    /// It breaks none, because clients and stores do not rely on what it breaks.
    Withstood,
}

impl Known {
    /// The bug of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }
}

impl Bug {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = KNOWN.iter().find(|known| known.bug == self);
        known.map_or("a bug without a name", |known| known.name)
    }
}

const fn known(name: &'static str, bug: Bug, what: &'static str, seen: &'static str) -> Known {
    Known {
        name,
        bug,
        what,
        seen,
        fate: Fate::Caught,
    }
}

const fn withstood(name: &'static str, bug: Bug, what: &'static str, seen: &'static str) -> Known {
    Known {
        fate: Fate::Withstood,
        ..known(name, bug, what, seen)
    }
}

/// All bugs that can be planted.
pub const KNOWN: &[Known] = &[
    // Of etcd.
    known(
        "deposed-leader-revokes",
        Bug::Cluster(ClusterBug::DeposedLeaderRevokes),
        "a deposed leader goes on to revoke leases, which the new leader has renewed",
        "etcd 15247",
    ),
    known(
        "grants-under-ended-leases",
        Bug::Cluster(ClusterBug::GrantsUnderEndedLeases),
        "a lock is granted without a second look at its lease, and belongs to none",
        "etcd 11456, found by Jepsen",
    ),
    withstood(
        "renews-revoked-leases",
        Bug::Cluster(ClusterBug::RenewsRevokedLeases),
        "a keepalive of a lease that was revoked is answered with its ttl",
        "etcd 14758",
    ),
    withstood(
        "loses-watch-events",
        Bug::Cluster(ClusterBug::LosesWatchEvents),
        "a deletion is not told to those who watch",
        "etcd 18089, 19179",
    ),
    withstood(
        "reads-the-past",
        Bug::Cluster(ClusterBug::ReadsThePast),
        "a linearizable read at a member that was paused shows the past",
        "etcd 20418",
    ),
    // Requests that lack what makes them safe.
    known(
        "unlocks-without-comparing",
        Bug::Server(ServerBug::UnlocksWithoutComparing),
        "a lock is deleted by its key, whoever holds it",
        "lock recipes that delete by key",
    ),
    known(
        "locks-without-comparing",
        Bug::Server(ServerBug::LocksWithoutComparing),
        "a lock is written without a comparison that it is free",
        "read, then write",
    ),
    known(
        "locks-without-a-lease",
        Bug::Server(ServerBug::LocksWithoutALease),
        "a lock is written without a lease, and stands for ever",
        "a put that forgets the lease once",
    ),
    known(
        "barges-past-the-queue",
        Bug::Server(ServerBug::BargesPastTheQueue),
        "a lock that was freed goes to whoever comes by, past those who wait",
        "locks that promise an order",
    ),
    known(
        "compares-no-epoch",
        Bug::Server(ServerBug::ComparesNoEpoch),
        "a request that was given up for lost is granted when it arrives after all",
        "retries of what is not idempotent",
    ),
    known(
        "takes-without-a-ticket",
        Bug::Server(ServerBug::TakesWithoutATicket),
        "a waiter whose place is gone takes the lock all the same",
        "queues by ephemeral keys",
    ),
    known(
        "believes-keep-alives",
        Bug::Server(ServerBug::BelievesKeepAlives),
        "a keepalive counts without a second look, also one of a deposed leader",
        "etcd's concurrency package",
    ),
    known(
        "ignores-the-horizon",
        Bug::Server(ServerBug::IgnoresTheHorizon),
        "nobody notices that the cluster was restored and its revision went back",
        "tokens taken from a revision",
    ),
    known(
        "reads-serializably",
        Bug::Server(ServerBug::ReadsSerializably),
        "reads are served by whichever member is asked, also one that is cut off",
        "serializable reads in recipes",
    ),
    // Mistakes of clients.
    known(
        "counts-from-the-answer",
        Bug::Store(StoreBug::CountsFromTheAnswer),
        "the deadline counts from when the answer came, not from when the renewal was sent",
        "most clients of leases",
    ),
    known(
        "never-says-lost",
        Bug::Store(StoreBug::NeverSaysLost),
        "a renewal that failed counts as one that succeeded",
        "keepalive loops that log and go on",
    ),
    known(
        "forgets-to-abandon",
        Bug::Store(StoreBug::ForgetsToAbandon),
        "what was called off is not undone, and its session is kept alive",
        "cancelled acquires that leak",
    ),
    known(
        "repeats-releases",
        Bug::Store(StoreBug::RepeatsReleases),
        "a release is sent again after a while, and ends whatever stands then",
        "retries of a delete by key",
    ),
    known(
        "releases-in-name-only",
        Bug::Store(StoreBug::ReleasesInNameOnly),
        "a release is called done before it is sent",
        "fire-and-forget unlocks",
    ),
    known(
        "watches-from-now",
        Bug::Store(StoreBug::WatchesFromNow),
        "a waiter watches from now on, misses the release before, and looks no more",
        "lost wake-ups of watch-based locks",
    ),
    // Stores that break a clause of their contract.
    known(
        "takes-silence-for-an-end",
        Bug::Lie(Lie::TakesSilenceForAnEnd),
        "a store that cannot be reached says that the session is gone",
        "transport errors as loss",
    ),
    known(
        "takes-silence-for-not-held",
        Bug::Lie(Lie::TakesSilenceForNotHeld),
        "a store that cannot be reached says that the grant to release was not held",
        "transport errors as answers",
    ),
    known(
        "releases-by-key",
        Bug::Lie(Lie::ReleasesByKey),
        "a release by a stale token ends whatever stands",
        "unlock without comparing the token",
    ),
    known(
        "revives-late-inserts",
        Bug::Lie(Lie::RevivesLateInserts),
        "an insert without an answer is sent again behind the caller's back, under a new name",
        "retrying middleware",
    ),
    known(
        "stretches-deadlines",
        Bug::Lie(Lie::StretchesDeadlines),
        "more is said to be left than there is",
        "clients that guess the ttl",
    ),
    known(
        "hides-what-is-gone",
        Bug::Lie(Lie::HidesWhatIsGone),
        "a renewal keeps the session and does not say which grants are gone",
        "keepalive that looks at the lease alone",
    ),
    known(
        "names-what-stands",
        Bug::Lie(Lie::NamesWhatStands),
        "a renewal calls gone what it was to keep",
        "comparing with the wrong revision",
    ),
    known(
        "grants-what-is-held",
        Bug::Lie(Lie::GrantsWhatIsHeld),
        "whoever asks for a lock that is held is granted it",
        "a refused transaction taken for a success",
    ),
    known(
        "starts-tokens-anew",
        Bug::Lie(Lie::StartsTokensAnew),
        "tokens come from a counter that is deleted with the lock",
        "the version of a key as its token",
    ),
    known(
        "lets-others-barge",
        Bug::Lie(Lie::LetsOthersBarge),
        "who takes no place passes those who wait",
        "try-lock beside a queue",
    ),
    known(
        "serves-whoever-asks",
        Bug::Lie(Lie::ServesWhoeverAsks),
        "whoever in the queue asks first is granted",
        "a thundering herd that promises order",
    ),
    known(
        "shares-among-one-owner",
        Bug::Lie(Lie::SharesAmongOneOwner),
        "a process that was started again is given what its predecessor holds",
        "owners by host name",
    ),
    known(
        "shares-within-a-session",
        Bug::Lie(Lie::SharesWithinASession),
        "two callers of one session are given the same grant",
        "session-level advisory locks",
    ),
    withstood(
        "never-wakes",
        Bug::Lie(Lie::NeverWakes),
        "nobody is ever woken",
        "watches that fall silent",
    ),
    withstood(
        "forgets-what-was-abandoned",
        Bug::Lie(Lie::ForgetsWhatWasAbandoned),
        "an attempt that was given up may try again",
        "late requests after a cancel",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_bug_has_one_name_and_is_found_by_it() {
        let names: BTreeSet<_> = KNOWN.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), KNOWN.len());
        for known in KNOWN {
            assert_eq!(Known::named(known.name), Some(known));
            assert_eq!(known.bug.name(), known.name);
        }
        assert_eq!(Known::named("no such bug"), None);
    }

    #[test]
    fn there_are_enough_to_trust_what_catches_them() {
        let caught = KNOWN.iter().filter(|known| known.fate == Fate::Caught);
        assert!(caught.count() >= 20);
    }
}
