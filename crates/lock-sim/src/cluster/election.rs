//! How a leader is lost and another one found.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;

use super::Cluster;
use super::members::Frozen;
use crate::record::Lane;

/// Between losing a leader and looking for another.
const ELECTION: Duration = Duration::from_millis(1000);
/// And up to so much more.
const ELECTION_SPREAD: Duration = Duration::from_millis(600);
/// What a new leader adds to every ttl.
const GRACE: Duration = Duration::from_secs(1);
/// When a member without a leader says so: three elections and a while.
const NOTICED: Duration = Duration::from_secs(4);

impl Cluster {
    /// What a member knows that falls out of touch now.
    pub(super) fn freeze(&self, answers_for: Duration) -> Frozen {
        let store = &self.0.store;
        let now = self.now();
        let leases = store.leases().into_iter().map(|(id, ttl, until)| {
            let until = etcd_mock::TICK.saturating_mul(u32::try_from(until).unwrap_or(u32::MAX));
            (id, (ttl, until))
        });
        Frozen {
            header: store.header(),
            leases: leases.collect(),
            notices_at: now + NOTICED,
            answers_until: now + answers_for,
            led: false,
        }
    }

    /// Sees to it that somebody leads who can, and nobody else.
    pub(super) fn reconsider(&self) {
        let mut members = self.members();
        let deposed = members.depose();
        let search = members.begin_search();
        drop(members);
        if deposed {
            self.0.store.step_down();
            self.say(&Lane::Server, "nobody leads");
        }
        self.changed();
        let Some(search) = search else { return };
        let cluster = self.clone();
        let runtime = Arc::clone(&self.0.runtime);
        self.0.runtime.spawn(Box::pin(async move {
            runtime
                .sleep(ELECTION + runtime.jitter(ELECTION_SPREAD))
                .await;
            let choice = usize::try_from(runtime.random_below(2)).unwrap_or(0);
            let elected = cluster.members().end_search(search, choice);
            if let Some(leader) = elected {
                cluster.0.store.elect(GRACE);
                cluster.say(&Lane::Server, format!("member {leader} leads"));
                cluster.changed();
            }
        }));
    }

    /// Everybody but the leader goes on sending renewals to one that is no more, for a while.
    pub(crate) fn mislead(&self, lasts: Duration) {
        let until = self.now() + lasts;
        self.members().mislead(until);
    }

    /// A known bug: a leader that was deposed ends the leases that have ended as far as it knows.
    pub(super) fn revoke_what_it_takes_for_over(&self, deposed: Option<Frozen>) {
        let Some(deposed) = deposed else { return };
        let now = self.now();
        let over = deposed
            .leases
            .into_iter()
            .filter(|(_, (_, until))| *until <= now);
        let over: Vec<_> = over.map(|(id, _)| id).collect();
        let store = self.0.store.clone();
        let (chronicle, lane) = (self.0.chronicle.clone(), Lane::Server);
        self.0.runtime.spawn(Box::pin(async move {
            for id in over {
                drop(chronicle.on_behalf(&lane, store.lease_revoke(id)).await);
            }
        }));
    }
}
