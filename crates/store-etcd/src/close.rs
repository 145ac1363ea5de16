//! Ending a session.

use std::time::Duration;

use etcd_kv::MetadataStore;
use lock_spi::{Effect, ErrorKind, Result, SessionId};

use crate::core::Core;
use crate::ops::{Close, lease};

impl<M: MetadataStore> Core<M> {
    /// Ends a session and everything under it; when it returns, the session is gone for good.
    pub(crate) async fn close(&self, session: SessionId, limit: Duration) -> Result<()> {
        if let Some(own) = self.sessions.get(session) {
            own.begin_closing();
        }
        let close = Close {
            keys: &self.keys,
            session,
        };
        // Removed first so that nothing is inserted while the cascade runs; the lease alone would do.
        let removed = self.execute(limit, &close).await;
        match self.call(limit, self.kv.lease_revoke(lease(session))).await {
            Ok(()) => {}
            // What is not found is done: a lease that is gone has taken its keys along.
            Err(error) if error.kind() == ErrorKind::SessionGone => {}
            Err(error) => {
                let cause = removed.err().unwrap_or(error);
                return Err(cause.with_effect(Effect::Unknown));
            }
        }
        self.sessions.closed(session);
        Ok(())
    }
}
