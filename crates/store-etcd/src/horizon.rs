//! How far the cluster has come: a cluster that goes back would hand out tokens again.

use etcd_kv::Header;
use lock_spi::{FencingToken, FloorViolation, Result};

use crate::codec::token;

/// What a store object has seen of its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Horizon {
    seen: Seen,
    violation: Option<FloorViolation>,
}

/// The highest that was seen, as it was when a request was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) cluster_id: u64,
    pub(crate) term: u64,
    pub(crate) revision: i64,
}

impl Seen {
    /// The highest token that can have been handed out by then.
    pub(crate) fn highest_token(self) -> Result<FencingToken> {
        token(self.term, self.revision)
    }

    /// Whether a linearizable answer lies behind.
    pub(crate) fn is_ahead_of(self, header: Header) -> bool {
        header.cluster_id != self.cluster_id || header.revision < self.revision
    }
}

impl Horizon {
    pub(crate) const fn new(term: u64, header: Header) -> Self {
        Self {
            seen: Seen {
                cluster_id: header.cluster_id,
                term,
                revision: header.revision,
            },
            violation: None,
        }
    }

    pub(crate) const fn seen(&self) -> Seen {
        self.seen
    }

    /// Takes in an answer; `false` when it lies behind what was seen before its request was sent.
    /// Requests of an earlier term are not compared: the memory began anew.
    pub(crate) fn observe(&mut self, before: Seen, header: Header) -> bool {
        if before.term != self.seen.term {
            return true;
        }
        if before.is_ahead_of(header) {
            return false;
        }
        self.seen.revision = self.seen.revision.max(header.revision);
        true
    }

    /// The cluster has gone back, for good: nothing is granted until a higher term begins.
    pub(crate) const fn violate(&mut self, violation: FloorViolation) {
        self.violation = Some(violation);
    }

    pub(crate) const fn violation(&self) -> Option<FloorViolation> {
        self.violation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(revision: i64) -> Header {
        Header {
            cluster_id: 1,
            revision,
            ..Header::default()
        }
    }

    #[test]
    fn an_answer_is_compared_with_what_was_seen_before_its_request() {
        let mut horizon = Horizon::new(0, header(10));
        let before = horizon.seen();
        assert!(horizon.observe(before, header(20)));
        // Its request left before 20 was seen: it may well show 15.
        assert!(horizon.observe(before, header(15)));
        let before = horizon.seen();
        assert_eq!(before.revision, 20);
        assert!(!horizon.observe(before, header(19)));
        assert_eq!(horizon.seen().revision, 20);
    }

    #[test]
    fn another_cluster_lies_behind_whatever_its_revision() {
        let mut horizon = Horizon::new(0, header(10));
        let other = Header {
            cluster_id: 2,
            ..header(99)
        };
        assert!(!horizon.observe(horizon.seen(), other));
    }

    #[test]
    fn a_request_of_an_earlier_term_is_not_compared() {
        let before = Horizon::new(0, header(50)).seen();
        let mut horizon = Horizon::new(1, header(3));
        assert!(horizon.observe(before, header(3)));
        assert_eq!(horizon.seen().revision, 3);
    }
}
