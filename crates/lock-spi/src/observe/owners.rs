use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::id::SessionId;
use crate::text::Owner;

/// Owners remembered at once. A client has one session per ttl; this is plenty for a store that
/// many clients share.
const REMEMBERED: usize = 1024;

/// The owners of the sessions that were opened through one store object.
#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<BTreeMap<SessionId, Owner>>);

impl Owners {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Owner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn remember(&self, session: SessionId, owner: Owner) {
        let mut owners = self.lock();
        owners.insert(session, owner);
        if owners.len() > REMEMBERED {
            // Ids are random, so any one is as good as another.
            owners.pop_first();
        }
    }

    pub(super) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    pub(super) fn of(&self, session: SessionId) -> Option<Owner> {
        self.lock().get(&session).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_remembered_than_the_limit() {
        let owners = Owners::default();
        let owner = Owner::new("worker-3").unwrap();
        for id in 1..=2000 {
            owners.remember(SessionId::new(id).unwrap(), owner.clone());
        }
        assert_eq!(owners.lock().len(), REMEMBERED);
        assert_eq!(owners.of(SessionId::new(2000).unwrap()), Some(owner));
    }
}
