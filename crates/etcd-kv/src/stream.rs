use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::error::KvError;

/// What a server goes on telling: it ends after its first error, and dropped, it stops.
pub struct KvStream<T>(Pin<Box<dyn Stream<Item = Result<T, KvError>> + Send>>);

impl<T> KvStream<T> {
    /// Wraps a stream.
    pub fn new(stream: impl Stream<Item = Result<T, KvError>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }
}

impl<T> Stream for KvStream<T> {
    type Item = Result<T, KvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<T> fmt::Debug for KvStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvStream").finish_non_exhaustive()
    }
}
