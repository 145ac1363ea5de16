//! The names of all metrics, tags, events and fields, in one place.
//!
//! They are part of the public interface: dashboards and alerts are built on them. Store operations
//! are observed by [`Observed`](crate::Observed), what a holder believes by the client.
//!
//! An operation has two metrics: a counter under its plain name, and a histogram of its duration in
//! seconds under the name with `.duration` behind it, because exporters refuse two kinds of metric
//! under one name. Keys are never tags: there may be any number of them. They stand in events.

/// Metrics.
pub mod metric {
    use metrics::Unit;

    /// Every metric.
    pub const ALL: [&str; 16] = [
        ACQUIRE,
        ACQUIRE_DURATION,
        RENEW,
        RENEW_DURATION,
        RELEASE,
        RELEASE_DURATION,
        REVOKE,
        REVOKE_DURATION,
        WAIT,
        WAIT_DURATION,
        FLOOR_VIOLATION,
        HELD,
        WAITERS,
        SESSIONS,
        LOST,
        RENEW_SLACK,
    ];

    /// Counter: tries to take a lock; tags `store`, `namespace`, `outcome`.
    pub const ACQUIRE: &str = "lock.acquire";
    /// Histogram, seconds: how long a try took; tags `store`, `namespace`, `outcome`.
    pub const ACQUIRE_DURATION: &str = "lock.acquire.duration";
    /// Counter: renewals of sessions and of single grants; tags `store`, `namespace`, `outcome`.
    pub const RENEW: &str = "lock.renew";
    /// Histogram, seconds: how long a renewal took; tags `store`, `namespace`, `outcome`.
    pub const RENEW_DURATION: &str = "lock.renew.duration";
    /// Counter: releases; tags `store`, `namespace`, `outcome`.
    pub const RELEASE: &str = "lock.release";
    /// Histogram, seconds: how long a release took; tags `store`, `namespace`, `outcome`.
    pub const RELEASE_DURATION: &str = "lock.release.duration";
    /// Counter: revokes; tags `store`, `namespace`, `outcome`.
    pub const REVOKE: &str = "lock.revoke";
    /// Histogram, seconds: how long a revoke took; tags `store`, `namespace`, `outcome`.
    pub const REVOKE_DURATION: &str = "lock.revoke.duration";
    /// Counter: waits for a reason to try again; tags `store`, `namespace`, `outcome`.
    pub const WAIT: &str = "lock.wait";
    /// Histogram, seconds: how long such a wait took; tags `store`, `namespace`, `outcome`.
    pub const WAIT_DURATION: &str = "lock.wait.duration";
    /// Counter: grants that would have been at or below a token floor; tags `store`, `namespace`.
    pub const FLOOR_VIOLATION: &str = "lock.floor_violation";

    /// Gauge, by the client: guards that are held; tags `store`, `namespace`.
    pub const HELD: &str = "lock.held";
    /// Gauge, by the client: callers that wait for a lock; tags `store`, `namespace`.
    pub const WAITERS: &str = "lock.waiters";
    /// Gauge, by the client: sessions that are kept alive; tags `store`, `namespace`.
    pub const SESSIONS: &str = "lock.sessions";
    /// Counter, by the client: guards that were lost; tags `store`, `namespace`, `reason`.
    pub const LOST: &str = "lock.lost";
    /// Histogram, seconds, by the client: what was left of a session when its renewal was
    /// confirmed; tags `store`, `namespace`.
    pub const RENEW_SLACK: &str = "lock.renew.slack";

    /// Tells the installed recorder what each metric means and in which unit it counts.
    pub fn describe() {
        for (name, what) in [
            (ACQUIRE, "Tries to take a lock"),
            (RENEW, "Renewals of sessions and of single grants"),
            (RELEASE, "Releases"),
            (REVOKE, "Revokes"),
            (WAIT, "Waits for a reason to try again"),
            (FLOOR_VIOLATION, "Grants refused at or below a token floor"),
            (LOST, "Guards that were lost"),
        ] {
            metrics::describe_counter!(name, Unit::Count, what);
        }
        for (name, what) in [
            (ACQUIRE_DURATION, "How long a try to take a lock took"),
            (RENEW_DURATION, "How long a renewal took"),
            (RELEASE_DURATION, "How long a release took"),
            (REVOKE_DURATION, "How long a revoke took"),
            (WAIT_DURATION, "How long a wait took"),
            (RENEW_SLACK, "What was left of a session when renewed"),
        ] {
            metrics::describe_histogram!(name, Unit::Seconds, what);
        }
        for (name, what) in [
            (HELD, "Guards that are held"),
            (WAITERS, "Callers that wait for a lock"),
            (SESSIONS, "Sessions that are kept alive"),
        ] {
            metrics::describe_gauge!(name, Unit::Count, what);
        }
    }
}

/// Tags of metrics.
pub mod tag {
    /// The store's name, from its [`Descriptor`](crate::Descriptor).
    pub const STORE: &str = "store";
    /// The namespace.
    pub const NAMESPACE: &str = "namespace";
    /// What became of an operation; see [`outcome`](super::outcome).
    pub const OUTCOME: &str = "outcome";
    /// Why a guard was lost.
    pub const REASON: &str = "reason";
}

/// Values of the tag `outcome`. An error shows as its kind, see [`of_error`](outcome::of_error).
pub mod outcome {
    use crate::error::ErrorKind;

    /// Acquire: the caller holds the lock.
    pub const GRANTED: &str = "granted";
    /// Acquire: the caller has a place in the queue.
    pub const QUEUED: &str = "queued";
    /// Acquire: someone else holds the lock, or waits for it.
    pub const HELD: &str = "held";
    /// Acquire: the attempt is over for good.
    pub const ENDED: &str = "ended";
    /// Renew: everything asked for stands.
    pub const KEPT: &str = "kept";
    /// Renew: the session stands, some of its grants do not.
    pub const REDUCED: &str = "reduced";
    /// Renew: the session or the grant is gone.
    pub const GONE: &str = "gone";
    /// Release: this call ended the grant.
    pub const RELEASED: &str = "released";
    /// Release: the grant did not stand any more.
    pub const NOT_HELD: &str = "not_held";
    /// Revoke: a grant was ended.
    pub const REVOKED: &str = "revoked";
    /// Revoke: nobody held the key; its floor was raised.
    pub const FLOOR_RAISED: &str = "floor_raised";
    /// Revoke: the grant meant did not stand any more; nothing changed.
    pub const UNCHANGED: &str = "unchanged";
    /// Wait: there is a reason to try again.
    pub const WOKEN: &str = "woken";
    /// Any: the caller dropped the call before its answer.
    pub const DROPPED: &str = "dropped";

    /// Every value of the tag.
    pub const ALL: [&str; 23] = [
        GRANTED,
        QUEUED,
        HELD,
        ENDED,
        KEPT,
        REDUCED,
        GONE,
        RELEASED,
        NOT_HELD,
        REVOKED,
        FLOOR_RAISED,
        UNCHANGED,
        WOKEN,
        DROPPED,
        of_error(ErrorKind::Denied),
        of_error(ErrorKind::Exhausted),
        of_error(ErrorKind::FloorViolated),
        of_error(ErrorKind::Incompatible),
        of_error(ErrorKind::InvalidRequest),
        of_error(ErrorKind::NotLeader),
        of_error(ErrorKind::Protocol),
        of_error(ErrorKind::SessionGone),
        of_error(ErrorKind::Unavailable),
    ];

    /// How an error shows: its kind in snake case.
    #[must_use]
    pub const fn of_error(kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::Denied => "denied",
            ErrorKind::Exhausted => "exhausted",
            ErrorKind::FloorViolated => "floor_violated",
            ErrorKind::Incompatible => "incompatible",
            ErrorKind::InvalidRequest => "invalid_request",
            ErrorKind::NotLeader => "not_leader",
            ErrorKind::Protocol => "protocol",
            ErrorKind::SessionGone => "session_gone",
            ErrorKind::Unavailable => "unavailable",
        }
    }
}

/// Events; the name is the event's name and its message.
pub mod event {
    /// The target of events, for filters.
    pub const TARGET: &str = "fencelock";
    /// Info: a lock was granted.
    pub const LOCK_GRANTED: &str = "lock_granted";
    /// Debug: an attempt has a place in a queue.
    pub const LOCK_QUEUED: &str = "lock_queued";
    /// Debug: a session, or one grant, was renewed.
    pub const LOCK_RENEWED: &str = "lock_renewed";
    /// Info: a grant was released.
    pub const LOCK_RELEASED: &str = "lock_released";
    /// Warn: a grant was ended from outside, or a floor raised.
    pub const LOCK_REVOKED: &str = "lock_revoked";
    /// Warn, by the client: a guard was lost.
    pub const LOCK_LOST: &str = "lock_lost";
    /// Error, target [`INCIDENT_TARGET`]: the store would have handed out a token at or below the
    /// floor. A person must look.
    pub const TOKEN_FLOOR_VIOLATED: &str = "token_floor_violated";
    /// The target of events that a person must look at.
    pub const INCIDENT_TARGET: &str = "fencelock::incident";
}

/// Fields of events.
pub mod field {
    /// The store's name.
    pub const STORE: &str = "store";
    /// The namespace.
    pub const NAMESPACE: &str = "namespace";
    /// The lock's key.
    pub const KEY: &str = "key";
    /// The fencing token.
    pub const TOKEN: &str = "token";
    /// The label of the session's owner; of a revoked lock, the one who lost it.
    pub const OWNER: &str = "owner";
    /// The session.
    pub const SESSION: &str = "session";
    /// Why: of a loss or a revoke; of a violated floor, the error.
    pub const REASON: &str = "reason";
    /// Who revoked.
    pub const BY: &str = "by";
    /// The token floor.
    pub const FLOOR: &str = "floor";
}
