use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_spi::FencingToken;

use super::Invariant;
use crate::record::Lane;

/// An invariant that was broken, and who had a part in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// When it showed.
    pub at: Duration,
    /// What is wrong, for people.
    pub sentence: String,
    /// The lock, when it is about one.
    pub key: Option<Arc<str>>,
    /// Who had a part in it.
    pub lanes: Vec<Lane>,
    /// The grants that it is about.
    pub tokens: Vec<FencingToken>,
}

impl Violation {
    /// About nothing in particular yet.
    #[must_use]
    pub fn new(invariant: Invariant, at: Duration, sentence: impl Into<String>) -> Self {
        Self {
            invariant,
            at,
            sentence: sentence.into(),
            key: None,
            lanes: Vec::new(),
            tokens: Vec::new(),
        }
    }

    /// It is about this lock.
    #[must_use]
    pub fn of_key(mut self, key: &Arc<str>) -> Self {
        self.key = Some(Arc::clone(key));
        self
    }

    /// This lane had a part in it.
    #[must_use]
    pub fn of_lane(mut self, lane: &Lane) -> Self {
        if !self.lanes.contains(lane) {
            self.lanes.push(lane.clone());
        }
        self
    }

    /// It is about this grant.
    #[must_use]
    pub fn of_token(mut self, token: FencingToken) -> Self {
        if !self.tokens.contains(&token) {
            self.tokens.push(token);
        }
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs_f64();
        write!(f, "{} at {seconds:.3} s: {}", self.invariant, self.sentence)
    }
}
