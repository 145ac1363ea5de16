//! What a store answered, as far as the model judges it.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_spi::{Effect, ErrorKind, FencingToken, Holder, LockOutcome, SessionId};

use super::call::Wish;

/// One answer. Nothing but what is compared is in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Answer {
    /// A session stands, with so much of it left.
    Open {
        ttl: Duration,
        remaining: Duration,
    },
    /// A session was renewed; each grant that is gone, and whether it was revoked.
    Kept {
        remaining: Duration,
        gone: BTreeMap<Wish, bool>,
        late: Vec<Wish>,
    },
    /// The session or the grant is gone.
    Gone,
    /// It is done.
    Done,
    Granted {
        token: FencingToken,
        remaining: Option<Duration>,
    },
    Queued {
        position: u64,
        ahead: Option<u32>,
    },
    Held(Option<Held>),
    Ended,
    Released(bool),
    Revoked(LockOutcome),
    Info {
        floor: Option<FencingToken>,
        waiting: Option<u32>,
        holder: Option<Held>,
    },
    Listed(Vec<(u8, Option<Held>)>),
    /// The numbers of the revokes, newest first, with what they did.
    Records(Vec<(u8, LockOutcome)>),
    Reaped(u32),
    /// An error.
    Refused(ErrorKind, Effect),
}

/// Who holds a key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Held {
    pub(super) token: FencingToken,
    pub(super) session: SessionId,
    pub(super) owner: String,
}

impl From<Holder> for Held {
    fn from(holder: Holder) -> Self {
        Self {
            token: holder.token,
            session: holder.session,
            owner: holder.owner.as_str().to_owned(),
        }
    }
}
