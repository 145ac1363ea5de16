//! What a store answers. Exhaustive on purpose: a caller handles every outcome.

use std::time::Duration;

use crate::id::{AttemptId, RevocationId, SessionId};
use crate::request::PageToken;
use crate::text::{LockKey, Owner, Payload, Reason};
use crate::token::FencingToken;
use crate::ttl::Ttl;

/// An open session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionLease {
    /// Its id.
    pub session: SessionId,
    /// The ttl that it got: never shorter than asked.
    pub ttl: Ttl,
    /// How much of it was left when the store answered, by a deadline that counts from when the
    /// confirmed request was sent. Whoever adds it to the moment before the call errs on the safe
    /// side.
    pub remaining: Duration,
}

/// A renewed session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeptAlive {
    /// How much was left of the session when the store answered, by a deadline that counts from
    /// when the confirmed renewal was sent.
    pub remaining: Duration,
    /// Grants that no longer stand.
    pub gone: Vec<Gone>,
    /// Grants that stand and were not renewed this time, with what is left of them; to be followed
    /// up by `extend`.
    pub late: Vec<(GrantRef, Duration)>,
}

/// A grant that no longer stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gone {
    /// Its key.
    pub key: LockKey,
    /// Its token.
    pub token: FencingToken,
    /// How it ended.
    pub why: GoneReason,
}

/// How a grant ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GoneReason {
    /// It is gone; the store knows no more.
    Ended,
    /// Someone revoked it.
    Revoked {
        /// Who.
        by: Owner,
        /// Why.
        reason: Reason,
    },
}

/// Names a grant.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct GrantRef {
    /// Its key.
    pub key: LockKey,
    /// Its token.
    pub token: FencingToken,
}

/// One session holding one key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Grant {
    /// The key.
    pub key: LockKey,
    /// The token that names this grant for all time.
    pub token: FencingToken,
    /// The session that holds it.
    pub session: SessionId,
    /// How long it lives unless renewed, as of the store's answer, by a deadline that counts from
    /// when the last confirmed renewal of its session was sent; `None` where the store does not
    /// know.
    pub remaining: Option<Duration>,
}

/// What became of an insert.
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use = "a grant may be in it"]
pub enum InsertOutcome {
    /// This attempt is over for good; make a new one.
    Ended,
    /// The caller holds the lock.
    Granted(Grant),
    /// Someone else holds it, or others are in the queue; who, if the store looked.
    Held(Option<Holder>),
    /// The attempt has a place in the queue.
    Queued(Place),
}

/// A session's position in a key's queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Rises in the order in which places were taken; it never changes while the place stands.
    pub position: u64,
    /// How many places stand before it, if the store looked.
    pub ahead: Option<u32>,
}

/// Who holds a lock, as last seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holder {
    /// The grant's token.
    pub token: FencingToken,
    /// The label of the session's owner.
    pub owner: Owner,
    /// The session.
    pub session: SessionId,
    /// What the holder shows.
    pub payload: Payload,
    /// When it was granted by the granting machine's clock, since the Unix epoch; for people.
    pub granted_at: Duration,
    /// How long it lives unless renewed, where the store knows.
    pub remaining: Option<Duration>,
}

/// What is known of a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LockInfo {
    /// The key.
    pub key: LockKey,
    /// Its token floor, if one was ever set: no grant is handed out at or below it.
    pub floor: Option<FencingToken>,
    /// How many wait; `None` where the store did not look.
    pub waiter_count: Option<u32>,
    /// Who holds it.
    pub holder: Option<Holder>,
}

/// What became of a revoke.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LockOutcome {
    /// Whether a grant was ended.
    pub revoked: bool,
    /// The token of the grant that was ended.
    pub previous_token: Option<FencingToken>,
    /// The owner of the grant that was ended.
    pub previous_owner: Option<Owner>,
    /// The key's floor now; `None` when nothing changed and none was ever set.
    pub new_token_floor: Option<FencingToken>,
}

/// The record of a revoke.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Revocation {
    /// Names the wish.
    pub id: RevocationId,
    /// The key.
    pub key: LockKey,
    /// Who revoked.
    pub by: Owner,
    /// Why.
    pub reason: Reason,
    /// When, by the revoking machine's clock, since the Unix epoch; for people.
    pub at: Duration,
    /// What it did.
    pub outcome: LockOutcome,
}

/// Part of a listing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T> {
    /// The entries, in the store's own stable order.
    pub entries: Vec<T>,
    /// Where the next page starts; `None` on the last.
    pub next: Option<PageToken>,
}

/// A session as the store knows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionInfo {
    /// Its id.
    pub session: SessionId,
    /// The label of its owner.
    pub owner: Owner,
    /// Its ttl.
    pub ttl: Ttl,
    /// When it was opened by its machine's clock, since the Unix epoch; for people.
    pub opened_at: Duration,
    /// How long it lives unless renewed, where the store knows.
    pub remaining: Option<Duration>,
}

/// A place in a queue as the store knows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WaiterInfo {
    /// The attempt that waits.
    pub attempt: AttemptId,
    /// The session that waits.
    pub session: SessionId,
    /// The label of its owner.
    pub owner: Owner,
    /// Its place.
    pub place: Place,
    /// When it was taken by its machine's clock, since the Unix epoch; for people.
    pub queued_at: Duration,
}

/// Something that an operator should know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Names the check, for filters and documents.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub what_to_do: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Good to know.
    Note,
    /// Will hurt.
    Warning,
    /// Guarantees do not hold.
    Critical,
}

/// The stored format against the one that this build speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Migration {
    /// The format in the store; `None` where nothing is stored yet.
    pub found: Option<u32>,
    /// The format of this build.
    pub wanted: u32,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recovery {
    /// The term from now on.
    pub term: u64,
    /// How long the namespace stays closed; zero once it is open.
    pub closed_for: Duration,
}
