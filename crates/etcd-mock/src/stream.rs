//! The client's ends of watches and keepalives.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};

use etcd_kv::KvError;
use futures_core::Stream;

use crate::engine::Engine;
use crate::error;
use crate::request::StreamId;
use crate::shared::Shared;

/// Reads one stream of the state machine; dropped, it closes it.
pub(crate) struct Reader<T> {
    // Weak: a stream does not keep a store alive whose last handle is gone.
    store: Weak<Shared>,
    id: StreamId,
    read: Read<T>,
    ended: bool,
}

type Read<T> = fn(&mut Engine, StreamId) -> Poll<Option<Result<T, KvError>>>;

impl<T> Reader<T> {
    pub(crate) const fn new(store: Weak<Shared>, id: StreamId, read: Read<T>) -> Self {
        Self {
            store,
            id,
            read,
            ended: false,
        }
    }
}

impl<T> Stream for Reader<T> {
    type Item = Result<T, KvError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, KvError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let item = match self.store.upgrade() {
            Some(store) => ready!(store.poll(self.id, context, self.read)),
            None => Some(Err(error::stream_broken())),
        };
        self.ended = !matches!(item, Some(Ok(_)));
        Poll::Ready(item)
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        if let Some(store) = self.store.upgrade() {
            store.close(self.id);
        }
    }
}
