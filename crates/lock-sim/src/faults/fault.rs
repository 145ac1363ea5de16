use std::fmt;

use lock_spi::BoxFuture;
use sim_runtime::Weather;

use super::{Dose, Stage, answers, clocks, data, links, members, operators, processes, watches};
use crate::cluster::Conditions;
use crate::record::FaultName;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A fault that a run can meet.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// What it is called in records and tables.
            #[must_use]
            pub const fn name(self) -> FaultName {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

faults! {
    /// A call is not sent, and its caller is told so.
    Refused = "connection refused",
    /// A request does not arrive.
    RequestLost = "request lost",
    /// A request is done, and its reply does not arrive.
    ReplyLost = "reply lost",
    /// A request or a reply is overtaken by what was sent seconds later.
    Straggler = "straggler",
    /// A request arrives once more, seconds later.
    Duplicate = "request copied",
    /// Nothing passes between a client and some members, or all of them.
    Partition = "partition",
    /// Requests of a client arrive and replies do not, or the other way round.
    OneWayPartition = "one-way partition",
    /// Ways to members are cut one after the other, and healed in another order.
    Swizzle = "swizzle",
    /// All streams of a client break at once.
    StreamsBroken = "streams broken",
    /// A request is done, and answered with an error.
    ErrorAfterCommit = "error after commit",
    /// A keepalive is answered with a ttl of zero though the lease stands.
    ZeroTtl = "keepalive answered with ttl 0",
    /// A keepalive reaches its lease late: just before its end, or just after.
    LateRenewal = "keepalive delayed",
    /// The id that was chosen for a lease is said to be taken.
    LeaseIdTaken = "lease id taken",
    /// The store takes deletions only.
    StoreFull = "store full",
    /// Every request takes up to as long as a lease lives.
    SlowStore = "slow store",
    /// A watch keeps events for itself.
    WatchDropsEvents = "watch drops events",
    /// A watch tells old events again.
    WatchRepeatsEvents = "watch repeats events",
    /// A watch ends because what it has to tell was compacted.
    WatchCompacted = "watch compacted",
    /// The history is forgotten.
    Compaction = "compaction",
    /// A member that is out of touch never tells its watchers so.
    WatchStranded = "watch stranded",
    /// A member stops and starts again.
    MemberRestarts = "member restarts",
    /// The whole cluster stops and starts again.
    ClusterRestarts = "cluster restarts",
    /// Another member leads, and every lease lasts its full ttl again.
    LeaderChanges = "leader changes",
    /// A member loses touch with the others, and shows the past.
    MemberCutOff = "member cut off",
    /// A leader that has lost its majority goes on answering keepalives.
    DeposedLeaderRenews = "deposed leader renews",
    /// Members pass keepalives on to a leader that is no more.
    RenewalToADeadLeader = "keepalive to a dead leader",
    /// Nobody has a majority.
    MajorityLost = "majority lost",
    /// A backup is restored, then the namespace is recovered.
    BackupRestored = "backup restored",
    /// A client stands still.
    ClientPaused = "client paused",
    /// A client ends where it stands, and starts again with nothing in its memory.
    ClientCrashed = "client crashed",
    /// A client's clock goes a little wrong, as clocks do.
    ClockDrifts = "clock drifts",
    /// A client's clock goes far too fast.
    ClockFast = "clock fast",
    /// A client's clock goes far too slow.
    ClockSlow = "clock slow",
    /// A client's clock skips some time.
    ClockJumps = "clock jumps",
    /// A client's clock stands still for some time.
    ClockStalls = "clock stalls",
    /// Somebody sets the wall clock of a client.
    WallClockStepped = "wall clock stepped",
    /// An operator revokes a grant.
    Revoked = "grant revoked",
    /// Somebody deletes a lock behind everybody's back.
    LockDeleted = "lock deleted by hand",
}

impl Fault {
    /// What it does to the network, all the time.
    pub(crate) fn flavour(self, dose: &Dose, weather: &mut Weather) {
        match self {
            Self::Refused => weather.refusals = dose.per_mille(30),
            Self::RequestLost => weather.lost_requests = dose.per_mille(100),
            Self::ReplyLost => weather.lost_replies = dose.per_mille(100),
            Self::Straggler => weather.stragglers = dose.per_mille(30),
            Self::Duplicate => weather.duplicates = dose.per_mille(50),
            _ => return,
        }
        weather.resets = 500;
    }

    /// What it does to members and their answers, all the time.
    pub(crate) fn season(self, dose: &Dose, conditions: &mut Conditions) {
        match self {
            Self::ErrorAfterCommit => conditions.errors_after_commit = dose.per_mille(50),
            Self::ZeroTtl => conditions.zero_ttls = dose.per_mille(100),
            Self::LateRenewal => {
                conditions.late_renewals = dose.per_mille(100);
                conditions.longest_lateness = dose.ttl.mul_f64(1.5);
            }
            Self::LeaseIdTaken => conditions.taken_leases = dose.per_mille(200),
            Self::WatchDropsEvents => conditions.dropped_events = dose.per_mille(300),
            Self::WatchRepeatsEvents => conditions.repeated_events = dose.per_mille(200),
            Self::WatchCompacted => conditions.compacted_watches = dose.per_mille(100),
            Self::WatchStranded => conditions.silent_watches = true,
            _ => {}
        }
    }

    /// What it does now and then; `None` for what is there all the time.
    pub(crate) fn drive(self, stage: Stage, dose: Dose) -> Option<BoxFuture<()>> {
        Some(match self {
            Self::Partition => Box::pin(links::partition(stage, dose)),
            Self::OneWayPartition => Box::pin(links::one_way(stage, dose)),
            Self::Swizzle => Box::pin(links::swizzle(stage, dose)),
            Self::StreamsBroken => Box::pin(links::streams(stage, dose)),
            Self::StoreFull => Box::pin(answers::full(stage, dose)),
            Self::SlowStore => Box::pin(answers::slow(stage, dose)),
            Self::Compaction => Box::pin(watches::compaction(stage, dose)),
            Self::WatchStranded => Box::pin(watches::stranded(stage, dose)),
            Self::MemberRestarts => Box::pin(members::restart(stage, dose)),
            Self::ClusterRestarts => Box::pin(members::restart_all(stage, dose)),
            Self::LeaderChanges => Box::pin(members::leader_changes(stage, dose)),
            Self::MemberCutOff => Box::pin(members::cut_off(stage, dose)),
            Self::DeposedLeaderRenews => Box::pin(members::deposed(stage, dose)),
            Self::RenewalToADeadLeader => Box::pin(members::misled(stage, dose)),
            Self::MajorityLost => Box::pin(members::majority_lost(stage, dose)),
            Self::BackupRestored => Box::pin(data::restored(stage, dose)),
            Self::ClientPaused => Box::pin(processes::paused(stage, dose)),
            Self::ClientCrashed => Box::pin(processes::crashed(stage, dose)),
            Self::ClockDrifts => Box::pin(clocks::drift(stage, dose)),
            Self::ClockFast => Box::pin(clocks::fast(stage, dose)),
            Self::ClockSlow => Box::pin(clocks::slow(stage, dose)),
            Self::ClockJumps => Box::pin(clocks::jump(stage, dose)),
            Self::ClockStalls => Box::pin(clocks::stall(stage, dose)),
            Self::WallClockStepped => Box::pin(clocks::wall(stage, dose)),
            Self::Revoked => Box::pin(operators::revoke(stage, dose)),
            Self::LockDeleted => Box::pin(operators::delete(stage, dose)),
            Self::Refused
            | Self::RequestLost
            | Self::ReplyLost
            | Self::Straggler
            | Self::Duplicate
            | Self::ErrorAfterCommit
            | Self::ZeroTtl
            | Self::LateRenewal
            | Self::LeaseIdTaken
            | Self::WatchDropsEvents
            | Self::WatchRepeatsEvents
            | Self::WatchCompacted => return None,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
