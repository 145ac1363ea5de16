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
    /// A leader that was deposed goes on to revoke leases, which the new leader has renewed.
    DeposedLeaderRevokes,
    /// What is written under a lease that has just ended is written all the same, and belongs to no
    /// lease.
    GrantsUnderEndedLeases,
    /// A deletion is not told to those who watch.
    LosesWatchEvents,
    /// A linearizable read at a member that was paused shows the past.
    ReadsThePast,
    /// A keepalive of a lease that was revoked is answered with its ttl.
    RenewsRevokedLeases,
}

/// Requests that lack what makes them safe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerBug {
    /// A lock is written without a comparison that nobody waits.
    BargesPastTheQueue,
    /// A keepalive counts without a second look at what it kept alive.
    BelievesKeepAlives,
    /// A lock is written without a comparison of the session's epoch.
    ComparesNoEpoch,
    /// Nobody notices that the cluster has gone back.
    IgnoresTheHorizon,
    /// A lock is written without a lease.
    LocksWithoutALease,
    /// A lock is written without a comparison that it is free.
    LocksWithoutComparing,
    /// Reads are served by whichever member is asked.
    ReadsSerializably,
    /// A waiter takes the lock without a comparison of its ticket.
    TakesWithoutATicket,
    /// A lock is deleted without a comparison of its revision.
    UnlocksWithoutComparing,
}

/// Mistakes of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoreBug {
    /// The deadline counts from when the answer came, not from when the renewal was sent.
    CountsFromTheAnswer,
    /// What was called off is not undone, and is accounted for all the same.
    ForgetsToAbandon,
    /// A renewal that failed counts as one that succeeded.
    NeverSaysLost,
    /// A release is sent again after a while, by key.
    RepeatsReleases,
    /// A release is called done before it is sent.
    ReleasesInNameOnly,
    /// A waiter watches from now on without a look at what is there now, and looks no more.
    WatchesFromNow,
}
