//! What the walkers were told and what they did, by the revisions of the server.

use std::collections::{BTreeMap, BTreeSet};

use lock_spi::{AttemptId, FencingToken, Instant, SessionId};

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// They were granted.
    pub(crate) granted: BTreeMap<FencingToken, AttemptId>,
    /// Their walker may have ended them, but not before this revision.
    pub(crate) let_go: BTreeMap<AttemptId, i64>,
    /// At this revision it was certain that nothing of them stands or ever will.
    pub(crate) over: BTreeMap<AttemptId, i64>,
    /// It was said, no sooner than at this revision, that the grant stands.
    pub(crate) stood: Vec<(FencingToken, i64)>,
    /// It was said, no later than at this revision, that the grant has ended.
    pub(crate) gone: Vec<(FencingToken, i64)>,
    /// Revisions in which a lock was deleted by hand.
    pub(crate) by_hand: BTreeSet<i64>,
    /// Sessions that somebody may have ended before their time.
    pub(crate) ended: BTreeSet<SessionId>,
    /// Until when their walkers believe in their sessions, which is never too long.
    pub(crate) believed: BTreeMap<SessionId, Instant>,
    /// What the walkers themselves found wrong.
    pub(crate) complaints: Vec<String>,
}

impl Told {
    pub(crate) fn believe(&mut self, session: SessionId, until: Instant) {
        let belief = self.believed.entry(session).or_insert(until);
        *belief = until.max(*belief);
    }
}
