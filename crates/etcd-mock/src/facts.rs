//! What has become true, for those who judge what clients are told.

use etcd_kv::{LeaseId, WatchEvent};

/// Something that has become true in a store. Times are in ticks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Fact {
    /// One revision, with everything that it changed and what was there before.
    Changed(Vec<WatchEvent>),
    /// A lease is over. What was bound to it is over in the revision that follows.
    LeaseEnded {
        /// Which.
        id: LeaseId,
        /// Because its time was, and not because somebody revoked it.
        expired: bool,
    },
    /// A lease begins.
    LeaseGranted {
        /// Which.
        id: LeaseId,
        /// Its ttl in seconds.
        ttl: i64,
        /// When it ends unless it is renewed.
        until: u64,
    },
    /// A lease was renewed, by a keepalive or because another server leads.
    LeaseRenewed {
        /// Which.
        id: LeaseId,
        /// When it ends now unless it is renewed again.
        until: u64,
    },
}

/// The facts that nobody has been told of yet; none, unless somebody wants to know.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    wanted: bool,
    untold: Vec<Fact>,
}

impl Facts {
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    pub(crate) fn note(&mut self, fact: impl FnOnce() -> Fact) {
        if self.wanted {
            self.untold.push(fact());
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.untold)
    }
}
