use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lock_spi::{AttemptId, GrantRef, Instant};

use crate::holding::Holding;
use crate::line::Occupied;
use crate::telemetry::Counted;

/// What a session has: attempts that wait, grants that are held, grants on their way back.
#[derive(Default)]
pub(super) struct Book {
    attempts: BTreeSet<AttemptId>,
    /// Grants that come with the session, by the attempts that are to take them over.
    expected: BTreeMap<AttemptId, GrantRef>,
    held: BTreeMap<AttemptId, Entry>,
    /// The caps of `held`, earliest first.
    caps: BTreeSet<(Instant, AttemptId)>,
    returned: BTreeMap<AttemptId, Returned>,
}

struct Entry {
    holding: Arc<Holding>,
    /// Believed in no longer than this, whatever the session's deadline.
    cap: Option<Instant>,
    /// Until the store has it no more.
    occupied: Occupied,
    _counted: Counted,
}

struct Returned {
    grant: GrantRef,
    occupied: Option<Occupied>,
}

impl Book {
    /// How many attempts and grants the session is kept for.
    pub(super) fn users(&self) -> usize {
        self.attempts.len() + self.held.len()
    }

    pub(super) fn is_deserted(&self) -> bool {
        self.users() == 0
    }

    pub(super) fn add_attempt(&mut self, attempt: AttemptId) {
        self.attempts.insert(attempt);
    }

    /// The attempt is to take over this grant, which the store has already.
    pub(super) fn expect(&mut self, attempt: AttemptId, grant: GrantRef) {
        self.expected.insert(attempt, grant);
    }

    pub(super) fn remove_attempt(&mut self, attempt: AttemptId) {
        self.attempts.remove(&attempt);
        self.expected.remove(&attempt);
    }

    /// The attempt was granted.
    pub(super) fn hold(
        &mut self,
        holding: Arc<Holding>,
        cap: Option<Instant>,
        occupied: Occupied,
        counted: Counted,
    ) {
        let attempt = holding.attempt;
        self.remove_attempt(attempt);
        let entry = Entry {
            holding,
            cap: None,
            occupied,
            _counted: counted,
        };
        self.held.insert(attempt, entry);
        self.set_cap(attempt, cap);
    }

    pub(super) fn set_cap(&mut self, attempt: AttemptId, cap: Option<Instant>) {
        let Some(entry) = self.held.get_mut(&attempt) else {
            return;
        };
        if let Some(old) = std::mem::replace(&mut entry.cap, cap) {
            self.caps.remove(&(old, attempt));
        }
        self.caps.extend(cap.map(|cap| (cap, attempt)));
    }

    /// The cap of a grant that is held.
    pub(super) fn cap_of(&self, attempt: AttemptId) -> Option<Option<Instant>> {
        self.held.get(&attempt).map(|entry| entry.cap)
    }

    pub(super) fn first_cap(&self) -> Option<Instant> {
        self.caps.first().map(|(cap, _)| *cap)
    }

    /// The grant whose cap is the first, if that is not after `now`.
    pub(super) fn first_capped(&self, now: Instant) -> Option<AttemptId> {
        let (cap, attempt) = self.caps.first()?;
        (*cap <= now).then_some(*attempt)
    }

    /// A grant is held no more.
    pub(super) fn drop_held(&mut self, attempt: AttemptId) -> Option<Arc<Holding>> {
        self.take_held(attempt).map(|entry| entry.holding)
    }

    fn take_held(&mut self, attempt: AttemptId) -> Option<Entry> {
        self.set_cap(attempt, None);
        self.held.remove(&attempt)
    }

    /// A grant is held no more, and the store may still have it.
    pub(super) fn return_held(&mut self, attempt: AttemptId) -> Option<Arc<Holding>> {
        let Entry {
            holding, occupied, ..
        } = self.take_held(attempt)?;
        let returned = Returned {
            grant: holding.grant.clone(),
            occupied: Some(occupied),
        };
        self.returned.insert(attempt, returned);
        Some(holding)
    }

    /// Nothing is held any more, and the store may still have it.
    pub(super) fn return_all(&mut self) -> Vec<Arc<Holding>> {
        let attempts: Vec<_> = self.held.keys().copied().collect();
        let returned = attempts
            .into_iter()
            .map(|attempt| self.return_held(attempt));
        returned.flatten().collect()
    }

    /// The store has this grant no more.
    pub(super) fn settle(&mut self, attempt: AttemptId) {
        self.returned.remove(&attempt);
    }

    /// The store has nothing of it any more.
    pub(super) fn settle_all(&mut self) {
        self.returned.clear();
    }

    /// Nothing is done any more about what is on its way back: others may ask the store for it.
    pub(super) fn give_up_returned(&mut self) {
        for returned in self.returned.values_mut() {
            returned.occupied = None;
        }
    }

    pub(super) fn returned(&self) -> impl Iterator<Item = &GrantRef> {
        self.returned.values().map(|returned| &returned.grant)
    }

    /// Every grant that a renewal is to keep: those that are held, and those that will be.
    pub(super) fn kept(&self) -> impl Iterator<Item = &GrantRef> {
        let held = self.held().map(|holding| &holding.grant);
        held.chain(self.expected.values())
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Arc<Holding>> {
        self.held.values().map(|entry| &entry.holding)
    }

    /// Every attempt that somebody accounts for: those that wait, that hold, and those whose grants
    /// are on their way back, which a renewal is to leave to their release.
    pub(super) fn attempts(&self) -> impl Iterator<Item = AttemptId> {
        let held = self.held.keys().chain(self.returned.keys());
        self.attempts.iter().chain(held).copied()
    }
}
