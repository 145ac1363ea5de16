use parity_tests::liars::Lie;

/// A known bug.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bug {
    /// Of the cluster, which has a switch for it.
    Cluster(ClusterBug),
    /// Of a store that breaks one clause of its contract.
    Lie(Lie),
    /// Between a store and the cluster: requests that lack what makes them safe.
    Server(ServerBug),
    /// Between a client and its store: mistakes of clients.
    Store(StoreBug),
}

/// Historical bugs of etcd.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClusterBug {
    /// A leader that was deposed goes on to revoke leases, which the new leader has renewed: etcd
    /// issue 15247.
    DeposedLeaderRevokes,
    /// What is written under a lease that has just ended is written all the same, and belongs to no
    /// lease: the lock that was granted without a second look at the lease, etcd issue 11456.
    GrantsUnderEndedLeases,
    /// A keepalive of a lease that was revoked is answered with its ttl: etcd issue 14758.
    RenewsRevokedLeases,
    /// A deletion is not told to those who watch when the history is compacted meanwhile: etcd
    /// issues 18089 and 19179.
    LosesWatchEvents,
    /// A linearizable read at a member that was paused shows the past: etcd issue 20418.
    ReadsThePast,
    /// A lease ends, and the keys that were bound to it stand.
    ForgetsKeysOfLeases,
}

/// Requests that lack what makes them safe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerBug {
    /// A lock is deleted without a comparison of its revision.
    UnlocksWithoutComparing,
    /// A lock is written without a comparison that it is free.
    LocksWithoutComparing,
    /// A lock is written without a comparison that nobody waits.
    BargesPastTheQueue,
    /// A lock is written without a comparison of the session's epoch.
    ComparesNoEpoch,
    /// A lock is written without a lease.
    LocksWithoutALease,
    /// A revoke raises no floor.
    RevokesWithoutAFloor,
    /// A waiter takes the lock without a comparison of its ticket.
    TakesWithoutATicket,
    /// A keepalive counts without a second look at what it kept alive.
    BelievesKeepAlives,
    /// Reads are served by whichever member is asked.
    ReadsSerializably,
}

/// Mistakes of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreBug {
    /// The deadline counts from when the answer came, not from when the renewal was sent.
    CountsFromTheAnswer,
    /// A renewal that failed counts as one that succeeded.
    NeverSaysLost,
    /// A grant that is gone counts as lost only when its time is up.
    IgnoresDefiniteAnswers,
    /// What was called off is not undone.
    ForgetsToAbandon,
    /// A release that failed is not repeated, and its session is kept alive.
    ForgetsToRelease,
    /// Whoever is next in line goes on waiting.
    MissesItsTurn,
}
