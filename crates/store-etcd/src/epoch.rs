//! Which creating requests of a session may still arrive, and what keeps them from it.

use std::collections::BTreeMap;

use lock_spi::AttemptId;

/// A session's epoch and its creating requests without an answer.
///
/// A request compares the epoch. One that got no definite answer may take effect at any later
/// time, until the epoch has risen; then it is settled.
#[derive(Debug)]
pub(crate) struct Epoch {
    /// `None` when the key was deleted and must be put anew.
    current: Option<i64>,
    sent: u64,
    unanswered: BTreeMap<u64, Request>,
}

#[derive(Debug)]
struct Request {
    attempt: AttemptId,
    /// Nobody waits for its answer any more.
    lost: bool,
}

impl Epoch {
    pub(crate) const fn new(epoch: Option<i64>) -> Self {
        Self {
            current: epoch,
            sent: 0,
            unanswered: BTreeMap::new(),
        }
    }

    /// What a creating request has to compare; `None` when a bump must come first.
    pub(crate) fn current(&self) -> Option<i64> {
        let settled = !self.unanswered.values().any(|request| request.lost);
        self.current.filter(|_| settled)
    }

    /// Notes that a request leaves; answers with its number.
    pub(crate) fn send(&mut self, attempt: AttemptId) -> u64 {
        self.sent += 1;
        let lost = false;
        self.unanswered.insert(self.sent, Request { attempt, lost });
        self.sent
    }

    /// The request had a definite answer.
    pub(crate) fn answered(&mut self, request: u64) {
        self.unanswered.remove(&request);
    }

    /// The request will have no answer.
    pub(crate) fn lost(&mut self, request: u64) {
        if let Some(request) = self.unanswered.get_mut(&request) {
            request.lost = true;
        }
    }

    /// Whether something of this attempt may still arrive.
    pub(crate) fn may_arrive(&self, attempt: AttemptId) -> bool {
        self.unanswered
            .values()
            .any(|request| request.attempt == attempt)
    }

    /// The number of the last request that left.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Another epoch was seen; it only rises.
    pub(crate) fn adopt(&mut self, epoch: i64) {
        self.current = self.current.max((epoch > 0).then_some(epoch));
    }

    /// The key was seen to be missing: a bump will tell why.
    pub(crate) const fn vanished(&mut self) {
        self.current = None;
    }

    /// A bump that left when `sent` requests had left was confirmed: they are settled.
    pub(crate) fn raised(&mut self, sent: u64, epoch: i64) {
        self.adopt(epoch);
        self.unanswered = self.unanswered.split_off(&(sent + 1));
    }

    /// The key was deleted when `sent` requests had left: they are settled, and the next insert
    /// has to put it anew.
    pub(crate) fn removed(&mut self, sent: u64) {
        self.vanished();
        self.unanswered = self.unanswered.split_off(&(sent + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: AttemptId = AttemptId::from_u128(1);
    const B: AttemptId = AttemptId::from_u128(2);

    #[test]
    fn a_lost_request_stops_the_next_until_a_bump() {
        let mut epoch = Epoch::new(Some(5));
        let first = epoch.send(A);
        assert_eq!(epoch.current(), Some(5), "others in flight stop nobody");
        epoch.lost(first);
        assert_eq!(epoch.current(), None);
        assert!(epoch.may_arrive(A) && !epoch.may_arrive(B));
        epoch.raised(epoch.sent(), 9);
        assert_eq!(epoch.current(), Some(9));
        assert!(!epoch.may_arrive(A));
    }

    #[test]
    fn a_bump_settles_what_left_before_it_and_nothing_else() {
        let mut epoch = Epoch::new(Some(5));
        let early = epoch.send(A);
        let sent = epoch.sent();
        let late = epoch.send(B);
        epoch.lost(early);
        epoch.lost(late);
        epoch.raised(sent, 9);
        assert!(!epoch.may_arrive(A) && epoch.may_arrive(B));
        assert_eq!(epoch.current(), None);
    }

    #[test]
    fn the_epoch_only_rises() {
        let mut epoch = Epoch::new(Some(9));
        epoch.adopt(7);
        epoch.adopt(0);
        assert_eq!(epoch.current(), Some(9));
        epoch.adopt(11);
        assert_eq!(epoch.current(), Some(11));
    }

    #[test]
    fn a_removed_epoch_must_be_put_anew() {
        let mut epoch = Epoch::new(Some(9));
        let request = epoch.send(A);
        epoch.lost(request);
        epoch.removed(epoch.sent());
        assert_eq!(epoch.current(), None);
        assert!(!epoch.may_arrive(A));
        epoch.raised(epoch.sent(), 12);
        assert_eq!(epoch.current(), Some(12));
    }
}
