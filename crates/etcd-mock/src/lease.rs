//! Leases: how long they last, and which keys hang on them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use etcd_kv::LeaseId;

use crate::time::{seconds_in_ticks, whole_seconds};

/// The leases that stand, and the order in which they end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    expiries: BTreeSet<(u64, LeaseId)>,
}

#[derive(Clone, Debug)]
struct Lease {
    ttl: i64,
    expires_at: u64,
    keys: BTreeSet<Bytes>,
}

/// What is known of a lease that stands.
pub(crate) struct Outlook {
    /// Whole seconds left.
    pub(crate) remaining: i64,
    /// The ttl that it was granted with, in seconds.
    pub(crate) ttl: i64,
    /// What hangs on it, in byte order.
    pub(crate) keys: Vec<Bytes>,
}

impl Leases {
    pub(crate) fn contains(&self, id: LeaseId) -> bool {
        self.leases.contains_key(&id)
    }

    /// Whether the lease stands though its time is over.
    pub(crate) fn is_overdue(&self, id: LeaseId, now: u64) -> bool {
        let lease = self.leases.get(&id);
        lease.is_some_and(|lease| lease.expires_at <= now)
    }

    /// Adds a lease whose id is free; answers with when it ends.
    pub(crate) fn grant(&mut self, id: LeaseId, ttl: i64, now: u64) -> u64 {
        let expires_at = now.saturating_add(seconds_in_ticks(ttl));
        let lease = Lease {
            ttl,
            expires_at,
            keys: BTreeSet::new(),
        };
        drop(self.leases.insert(id, lease));
        self.expiries.insert((expires_at, id));
        expires_at
    }

    /// The leases that stand, with their ttl and when they end.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeaseId, i64, u64)> + '_ {
        let leases = self.leases.iter();
        leases.map(|(id, lease)| (*id, lease.ttl, lease.expires_at))
    }

    /// Starts the ttl anew and answers with it, and with when it ends; `None` for an unknown lease.
    pub(crate) fn renew(&mut self, id: LeaseId, now: u64) -> Option<(i64, u64)> {
        let lease = self.leases.get_mut(&id)?;
        self.expiries.remove(&(lease.expires_at, id));
        lease.expires_at = now.saturating_add(seconds_in_ticks(lease.ttl));
        self.expiries.insert((lease.expires_at, id));
        Some((lease.ttl, lease.expires_at))
    }

    /// Starts every ttl anew, as a restarted server does.
    pub(crate) fn renew_all(&mut self, now: u64) {
        let ids: Vec<LeaseId> = self.leases.keys().copied().collect();
        for id in ids {
            self.renew(id, now);
        }
    }

    /// Ends a lease and answers with the keys to delete, in byte order.
    pub(crate) fn remove(&mut self, id: LeaseId) -> Option<BTreeSet<Bytes>> {
        let lease = self.leases.remove(&id)?;
        self.expiries.remove(&(lease.expires_at, id));
        Some(lease.keys)
    }

    pub(crate) fn outlook(&self, id: LeaseId, now: u64) -> Option<Outlook> {
        let lease = self.leases.get(&id)?;
        Some(Outlook {
            remaining: whole_seconds(lease.expires_at.saturating_sub(now)),
            ttl: lease.ttl,
            keys: lease.keys.iter().cloned().collect(),
        })
    }

    /// Moves a key from the lease that it hung on to the one that it hangs on now.
    pub(crate) fn rebind(&mut self, key: &Bytes, from: Option<LeaseId>, to: Option<LeaseId>) {
        if from == to {
            return;
        }
        if let Some(lease) = from.and_then(|id| self.leases.get_mut(&id)) {
            lease.keys.remove(key);
        }
        if let Some(lease) = to.and_then(|id| self.leases.get_mut(&id)) {
            lease.keys.insert(key.clone());
        }
    }

    /// When the next lease ends, and which.
    pub(crate) fn next_expiry(&self) -> Option<(u64, LeaseId)> {
        self.expiries.first().copied()
    }
}
