//! Who holds what, as far as holders know; asked whenever a grant ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fencelock::{Held, Lost, LostReason};
use lock_spi::FencingToken;

use crate::chronicle::Chronicle;
use crate::record::{Lane, What};

/// All guards that are in use, in all clients.
#[derive(Clone, Debug)]
pub(crate) struct Believers {
    chronicle: Chronicle,
    held: Arc<Mutex<InUse>>,
}

type InUse = BTreeMap<(Arc<str>, FencingToken), (Lane, Held)>;

impl Believers {
    pub(crate) fn new(chronicle: Chronicle) -> Self {
        Self {
            chronicle,
            held: Arc::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, InUse> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client was given a guard.
    pub(crate) fn add(&self, lane: &Lane, key: &Arc<str>, held: Held) {
        let name = (Arc::clone(key), held.token());
        drop(self.held().insert(name, (lane.clone(), held)));
    }

    /// A guard is no longer in use, and nobody asks any more; `false` when it was not.
    pub(crate) fn remove(&self, key: &Arc<str>, token: FencingToken) -> bool {
        self.held().remove(&(Arc::clone(key), token)).is_some()
    }

    /// A process has forgotten everything.
    pub(crate) fn forget(&self, lane: &Lane) {
        self.held().retain(|_, (holder, _)| holder != lane);
    }

    /// Writes a loss down that its holder knows of and did not tell yet.
    pub(crate) fn settle(&self, key: &Arc<str>, token: FencingToken) {
        let name = (Arc::clone(key), token);
        let Some((lane, held)) = self.held().get(&name).cloned() else {
            return;
        };
        if let Err(lost) = held.check() {
            self.lost(&lane, key, &lost);
        }
    }

    /// Asks who holds this grant, and writes down the answer: belief, or a loss that was not told
    /// before.
    pub(crate) fn ask(&self, key: &Arc<str>, token: FencingToken) {
        let name = (Arc::clone(key), token);
        let Some((lane, held)) = self.held().get(&name).cloned() else {
            return;
        };
        match held.check() {
            Ok(token) => {
                let key = Arc::clone(key);
                self.chronicle.note(&lane, What::Believes { key, token });
            }
            Err(lost) => self.lost(&lane, key, &lost),
        }
    }

    /// A holder was told that its grant is over: written down once.
    pub(crate) fn lost(&self, lane: &Lane, key: &Arc<str>, lost: &Lost) {
        if !self.remove(key, lost.token) {
            return;
        }
        if matches!(lost.reason, LostReason::Released | LostReason::HandedOver) {
            return;
        }
        let what = What::Lost {
            key: Arc::clone(key),
            token: lost.token,
            definite: lost.reason.is_definite(),
        };
        self.chronicle.note(lane, what);
    }
}
