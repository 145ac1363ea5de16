//! A cheap cluster: one store that is what the majority has committed, and members before it that
//! may lead, lag, be cut off or be down. There is no raft in it.

mod conditions;
mod election;
mod endpoints;
mod member;
mod members;
mod names;
mod streams;
mod witness;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_kv::MetadataStore;
use etcd_mock::{Expiry, MockStore, Options, Retention, Snapshot};
use lock_spi::Runtime;
use tokio::sync::watch;

pub(crate) use conditions::Conditions;
pub(crate) use endpoints::Endpoints;
pub(crate) use member::Member;
pub(crate) use names::{NAMESPACE, lock_name};
pub(crate) use witness::Witness;

use crate::bugs::ClusterBug;
use crate::chronicle::Chronicle;
use crate::record::{Lane, What};
use members::Members;

/// How many members there are.
pub(crate) const MEMBERS: usize = 3;

/// Revisions that can be read and watched.
const RETENTION: u32 = 4_000;

/// A handle to the cluster of a run.
#[derive(Clone, Debug)]
pub(crate) struct Cluster(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runtime: Arc<dyn Runtime>,
    chronicle: Chronicle,
    store: MockStore,
    witness: Witness,
    bug: Option<ClusterBug>,
    members: Mutex<Members>,
    conditions: Mutex<Conditions>,
    backup: Mutex<Option<Snapshot>>,
    /// Moves whenever something about members does.
    changes: watch::Sender<u64>,
}

impl Cluster {
    /// A cluster of members that are all well.
    pub(crate) fn new(
        runtime: Arc<dyn Runtime>,
        chronicle: Chronicle,
        witness: Witness,
        bug: Option<ClusterBug>,
    ) -> Self {
        let options = Options::default()
            .with_expiry(Expiry::Scanned)
            .with_retention(Retention::Last(RETENTION));
        let store = MockStore::in_step_with_options(Arc::clone(&runtime), options);
        let observer = witness.clone();
        store.observe(move |fact| observer.observe(fact));
        Self(Arc::new(Inner {
            runtime,
            chronicle,
            store,
            witness,
            bug,
            members: Mutex::new(Members::new(MEMBERS)),
            conditions: Mutex::default(),
            backup: Mutex::default(),
            changes: watch::Sender::default(),
        }))
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        lock(&self.0.members)
    }

    fn conditions(&self) -> MutexGuard<'_, Conditions> {
        lock(&self.0.conditions)
    }

    pub(crate) fn witness(&self) -> &Witness {
        &self.0.witness
    }

    /// The store itself, for whoever stands beside it.
    pub(crate) fn store(&self) -> &MockStore {
        &self.0.store
    }

    fn now(&self) -> Duration {
        self.0.runtime.now().since_origin()
    }

    fn changed(&self) {
        self.0.changes.send_modify(|changes| *changes += 1);
    }

    /// What goes wrong with requests and answers from now on.
    pub(crate) fn set_conditions(&self, change: impl FnOnce(&mut Conditions)) {
        change(&mut self.conditions());
    }

    /// A member loses touch with the others, or finds it again; whoever leads without a majority is
    /// replaced.
    pub(crate) fn cut_off(&self, member: usize, answers_for: Duration) {
        let frozen = self.freeze(answers_for);
        self.members().cut_off(member, frozen);
        self.reconsider();
    }

    /// A member is in touch with the others again, or its process runs again.
    pub(crate) fn reconnect(&self, member: usize) {
        let stale_until = self.now() + STALE;
        let deposed = self.members().reconnect(member, stale_until);
        if self.0.bug == Some(ClusterBug::DeposedLeaderRevokes) {
            self.revoke_what_it_takes_for_over(deposed);
        }
        self.reconsider();
    }

    /// A member's process ends; streams at it break.
    pub(crate) fn stop(&self, member: usize) {
        self.members().stop(member);
        self.reconsider();
    }

    /// Every member is in touch with all others again, and every process runs.
    pub(crate) fn reconnect_all(&self) {
        for member in 0..MEMBERS {
            self.reconnect(member);
        }
    }

    /// All processes end at once and start again.
    pub(crate) fn restart_all(&self) {
        self.members().restart_all();
        self.0.store.restart();
        self.reconsider();
    }

    /// Keeps what a backup made now would hold.
    pub(crate) fn back_up(&self) {
        *lock(&self.0.backup) = Some(self.0.store.snapshot());
    }

    /// Starts again from the backup that was made last; `false` when there is none.
    pub(crate) fn restore(&self) -> bool {
        let Some(backup) = lock(&self.0.backup).take() else {
            return false;
        };
        self.members().restart_all();
        self.0.store.restore(&backup);
        let (entries, leases) = (self.0.store.entries(), self.0.store.leases());
        self.0.witness.restored(&entries, &leases);
        self.reconsider();
        true
    }

    /// Forgets the past, so that whoever lags behind can no longer be told of it.
    pub(crate) async fn compact(&self) {
        // What was compacted before cannot be again.
        drop(self.0.store.compact(self.0.store.revision()).await);
    }

    /// The leader of the moment.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.members().leader()
    }

    fn say(&self, lane: &Lane, words: impl Into<String>) {
        self.0.chronicle.note(lane, What::Note(words.into()));
    }
}

/// How long a member that has been out of touch may take its past for the present, with the bug that
/// does so.
const STALE: Duration = Duration::from_secs(3);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
