use std::time::Duration;

use crate::text::Namespace;
use crate::ttl::Ttl;

/// What a store is and what it can do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Descriptor {
    /// The store's name in metrics and events: `etcd`, `postgres`.
    pub name: &'static str,
    /// The namespace that this object keeps.
    pub namespace: Namespace,
    /// Where the two backends may differ.
    pub capabilities: Capabilities,
}

/// Where stores may differ; everything else is the same in all of them.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Capabilities {
    /// What mints the tokens.
    pub token_source: TokenSource,
    /// Who ends what is not renewed.
    pub expiry: Expiry,
    /// The least ttl.
    pub min_ttl: Ttl,
    /// Ttls are rounded up to a multiple of this.
    pub ttl_granularity: Duration,
    /// How a waiter learns that it is its turn.
    pub wake_up: WakeUp,
    /// Whether `remaining` of other sessions' grants is known.
    pub knows_remaining_of_others: bool,
    /// The most grants that one session should hold, if there is a limit.
    pub max_grants_per_session: Option<u32>,
    /// The bound of INV-08: how long, after faults heal, a waiter may wait for a key that nobody
    /// keeps, beyond the ttl of the session that had it.
    pub hand_over_bound: Duration,
}

impl Capabilities {
    /// The capabilities of a store of this kind, the rest at their plainest: any ttl in
    /// milliseconds, `remaining` of others unknown, no limit of grants.
    #[must_use]
    pub const fn new(
        token_source: TokenSource,
        expiry: Expiry,
        wake_up: WakeUp,
        hand_over_bound: Duration,
    ) -> Self {
        Self {
            token_source,
            expiry,
            min_ttl: Ttl::MIN,
            ttl_granularity: Duration::from_millis(1),
            wake_up,
            knows_remaining_of_others: false,
            max_grants_per_session: None,
            hand_over_bound,
        }
    }
}

/// What mints the tokens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TokenSource {
    /// The revision of the granting transaction: one counter for the cluster, moved by every write.
    ClusterRevision,
    /// A sequence of the schema's own, moved by grants and revokes.
    Sequence,
}

/// Who ends what is not renewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Expiry {
    /// The store's clock at the moment someone looks; what is dead is cleared by `reap_expired`.
    /// A grant has an end of its own, no later than its session's.
    WhenLookedAt,
    /// The store ends a session by itself, and everything under it in the same moment; a grant
    /// ends no earlier. `reap_expired` has nothing to do.
    ByItself,
}

/// How a waiter learns that it is its turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum WakeUp {
    /// The store tells of releases, not of expiry; a timer stands in for the latter.
    Notify,
    /// The store tells of every end, expiry included.
    Watch,
}
