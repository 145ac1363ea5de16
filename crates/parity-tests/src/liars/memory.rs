//! What a liar has to remember to lie consistently.

use std::collections::{BTreeMap, BTreeSet};

use lock_spi::{AttemptId, FencingToken, LockKey, Owner, SessionId, Ttl};

/// Shared by all store objects of one deployment, as the store behind them is.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By key and the token that was told: the store's own.
    pub(super) own: BTreeMap<(LockKey, FencingToken), FencingToken>,
    /// By key and the store's own token: the one that was told last.
    pub(super) told: BTreeMap<(LockKey, FencingToken), FencingToken>,
    pub(super) sessions: BTreeMap<SessionId, Opened>,
    /// Sessions that were closed, if only in name.
    pub(super) closed: BTreeSet<SessionId>,
    pub(super) adopted: BTreeSet<SessionId>,
    pub(super) attempts: BTreeMap<SessionId, BTreeSet<AttemptId>>,
    /// Who holds a grant since when, by the store's own token.
    pub(super) granted: BTreeMap<(LockKey, AttemptId), FencingToken>,
    /// Under which session a token of the store's own was granted.
    pub(super) granted_to: BTreeMap<FencingToken, SessionId>,
    pub(super) places: Vec<PlaceTaken>,
    pub(super) abandoned: BTreeSet<AttemptId>,
    pub(super) extending: BTreeSet<FencingToken>,
}

#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) owner: Owner,
    pub(super) ttl: Ttl,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct PlaceTaken {
    pub(super) key: LockKey,
    pub(super) session: SessionId,
    pub(super) attempt: AttemptId,
}
