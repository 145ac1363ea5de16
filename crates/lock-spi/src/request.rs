//! What is asked of a store. Exhaustive on purpose: a store takes every field apart, so that a new
//! one is a compile error in each of them.

use std::time::Duration;

use crate::id::{AttemptId, RecoveryId, RevocationId, SessionId};
use crate::outcome::{GrantRef, Place};
use crate::text::{LockKey, Owner, Payload, Reason};
use crate::token::FencingToken;
use crate::ttl::Ttl;

/// Opens a session; see [`LockStore::open_session`](crate::LockStore::open_session).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OpenSessionRequest {
    /// The new session's id, drawn at random.
    pub session: SessionId,
    /// The label that readers of its locks see.
    pub owner: Owner,
    /// How long it lives after its last confirmed renewal.
    pub ttl: Ttl,
}

/// Renews a session and all its grants; see
/// [`LockStore::keep_alive`](crate::LockStore::keep_alive).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeepAliveRequest {
    /// The session to renew.
    pub session: SessionId,
    /// Every grant that the caller believes it holds under it.
    pub grants: Vec<GrantRef>,
    /// Every attempt of the session that the caller has not given up: those that wait, and those
    /// that were granted and are held. What the store finds beyond these, it ends.
    pub attempts: Vec<AttemptId>,
}

/// Tries to take a lock; see [`LockStore::try_insert`](crate::LockStore::try_insert).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InsertRequest {
    /// What to lock.
    pub key: LockKey,
    /// The session that is to hold it.
    pub session: SessionId,
    /// The wish that this call belongs to; repeated calls bear the same one.
    pub attempt: AttemptId,
    /// What readers of the lock see.
    pub payload: Payload,
    /// Whether to take a place in the key's queue when the key is not free.
    pub queue: Queue,
}

/// Whether an insert that is refused takes a place in the key's queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Queue {
    /// Take a place, or keep the one that the attempt has.
    Join,
    /// Take none.
    Never,
}

/// Waits for a reason to try again; see
/// [`LockStore::await_release`](crate::LockStore::await_release).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WaitRequest {
    /// The key waited for.
    pub key: LockKey,
    /// The session that waits.
    pub session: SessionId,
    /// The attempt that waits.
    pub attempt: AttemptId,
    /// Its place, when it has one.
    pub place: Option<Place>,
}

/// Ends a grant and raises the key's floor; see [`LockStore::revoke`](crate::LockStore::revoke).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RevokeRequest {
    /// The key.
    pub key: LockKey,
    /// Which grant is to end.
    pub target: RevokeTarget,
    /// Names this wish; repeated calls bear the same one.
    pub id: RevocationId,
    /// Who revokes, for the record.
    pub by: Owner,
    /// Why, for the record and for the holder.
    pub reason: Reason,
}

/// Which grant a revoke is to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RevokeTarget {
    /// This one; when it no longer stands, nothing changes.
    Grant(FencingToken),
    /// Whichever stands; on a free key the floor rises all the same.
    Whoever,
}

/// Ends everything in a namespace and raises its term; see
/// [`StoreAdmin::recover`](crate::StoreAdmin::recover).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecoverRequest {
    /// Names this wish; repeated calls bear the same one.
    pub id: RecoveryId,
    /// The highest token that anyone knows of, resources included.
    pub above: Option<FencingToken>,
    /// How long the namespace stays closed: no shorter than the longest ttl in use, because holders
    /// of the lost history believe until their deadlines.
    pub hold_off: Duration,
}

/// Which page of a listing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageRequest {
    /// Where the last page ended; `None` for the first.
    pub after: Option<PageToken>,
    /// At most this many entries, at least one; stores may return fewer.
    pub limit: u32,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            after: None,
            limit: 100,
        }
    }
}

/// Where a page ended, in a form that only its store understands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageToken(pub String);
