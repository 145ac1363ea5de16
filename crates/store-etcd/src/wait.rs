//! Waiting for a reason to try again: `await_release`. It writes nothing and spawns nothing.

use std::time::Duration;

use bytes::Bytes;
use etcd_kv::{EventKind, KeyRange, MetadataStore, WatchRequest, WatchStream};
use futures_util::{StreamExt, stream};
use lock_spi::{Effect, FencingToken, Result, WaitRequest};

use crate::core::Core;
use crate::ops::{Look, Queued};

/// What a wait looks at, as it was read.
#[derive(Debug, Eq, PartialEq)]
enum Reason {
    /// There is a reason to try again already.
    Already,
    /// There will be one when this key goes.
    WhenGone(Bytes),
}

pub(crate) async fn await_release<M: MetadataStore>(
    core: &Core<M>,
    request: &WaitRequest,
) -> Result<()> {
    let own = core.sessions.get(request.session);
    let limit = own
        .as_ref()
        .map_or(core.config.request_timeout(), |own| own.limit);
    let facts = own.map(|own| own.facts(request.attempt));
    let refused_by = facts.and_then(|facts| facts.refused_by);
    let wait = Wait {
        core,
        request,
        refused_by,
        limit,
    };
    let waited = wait.run().await;
    waited.map_err(|error| error.with_effect(Effect::None))
}

struct Wait<'a, M> {
    core: &'a Core<M>,
    request: &'a WaitRequest,
    refused_by: Option<FencingToken>,
    limit: Duration,
}

impl<M: MetadataStore> Wait<'_, M> {
    async fn run(&self) -> Result<()> {
        let (core, session) = (self.core, self.request.session);
        if core.sessions.was_closed(session) {
            return Ok(());
        }
        let Reason::WhenGone(key) = self.reason().await? else {
            return Ok(());
        };
        // The watches stand before the second look: what happens after it is an event.
        let session_ends = self.watch(core.keys.session(session)).await?;
        let key_goes = self.watch(key.clone()).await?;
        if self.reason().await? != Reason::WhenGone(key) {
            return Ok(());
        }
        let mut events = stream::select(session_ends, key_goes);
        loop {
            match events.next().await {
                Some(Ok(response)) => {
                    let gone = |kind| matches!(kind, EventKind::Delete);
                    if response.events.iter().any(|event| gone(event.kind)) {
                        return Ok(());
                    }
                }
                // A watch that fails wakes up too: it cannot tell any more.
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }

    async fn watch(&self, key: Bytes) -> Result<WatchStream> {
        let watch = self.core.kv.watch(WatchRequest::new(KeyRange::Key(key)));
        self.core.call(self.limit, watch).await
    }

    async fn reason(&self) -> Result<Reason> {
        let WaitRequest {
            key,
            session,
            attempt,
            place,
        } = self.request;
        let look = Look {
            wish: self.core.wish(key, *session, *attempt),
            limit: None,
        };
        let seen = self.core.perform(self.limit, &look).await?;
        let lock = self.core.keys.lock(key);
        Ok(match place {
            _ if !seen.session_stands => Reason::Already,
            Some(_) => behind(seen, lock),
            None => refused(seen, lock, self.refused_by),
        })
    }
}

/// Of an attempt with a place: whoever is before it, and for the first in line the holder.
fn behind(seen: Queued, lock: Bytes) -> Reason {
    let Some(ahead) = seen.ahead else {
        return Reason::Already;
    };
    match ahead.into_iter().next_back() {
        Some(predecessor) => Reason::WhenGone(predecessor.stored),
        None if seen.sight.lock.is_some() => Reason::WhenGone(lock),
        None => Reason::Already,
    }
}

/// Of an attempt without one: the holder that refused it, or whoever is first in line.
fn refused(seen: Queued, lock: Bytes, by: Option<FencingToken>) -> Reason {
    match (seen.sight.lock, seen.first) {
        (Some(entry), _) if by.is_some_and(|by| by != entry.token) => Reason::Already,
        (Some(_), _) => Reason::WhenGone(lock),
        (None, Some(first)) if by.is_none() => Reason::WhenGone(first),
        (None, _) => Reason::Already,
    }
}
