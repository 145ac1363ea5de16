use std::sync::Mutex;

use lock_fence::{FencingToken, HighWaterMark, Stale};

/// What a lock protects: it refuses stale tokens, and keeps what it accepted.
#[derive(Debug, Default)]
pub(crate) struct Resource {
    mark: HighWaterMark,
    accepted: Mutex<Vec<FencingToken>>,
}

impl Resource {
    pub(crate) fn write(&self, token: FencingToken) -> Result<(), Stale> {
        self.mark.admit(token)?;
        self.accepted.lock().unwrap().push(token);
        Ok(())
    }

    /// The tokens of all accepted writes, in their order.
    pub(crate) fn accepted(&self) -> Vec<FencingToken> {
        self.accepted.lock().unwrap().clone()
    }
}
