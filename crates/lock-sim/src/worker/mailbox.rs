use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use fencelock::Grant;

/// Grants on their way from one process to another.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<VecDeque<Grant>>);

impl Mailbox {
    pub(super) fn put(&self, grant: Grant) {
        let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        grants.push_back(grant);
    }

    pub(super) fn take(&self) -> Option<Grant> {
        let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        grants.pop_front()
    }
}
