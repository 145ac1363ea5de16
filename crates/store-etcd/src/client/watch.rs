use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbWatchResponse;
use etcd_client::{Error, WatchClient};
use etcd_kv::{
    Applied, KvError, KvErrorKind, WatchEvent, WatchRequest, WatchResponse, WatchStream,
};
use futures_util::stream;
use lock_spi::Runtime;
use tokio::sync::mpsc;

use super::{errors, requests, responses};

/// A watch that the server has begun, and what it said to that.
pub(super) struct Begun {
    stream: etcd_client::WatchStream,
    first: PbWatchResponse,
}

/// Begins a watch.
pub(super) async fn begin(mut client: WatchClient, request: WatchRequest) -> Result<Begun, Error> {
    let (key, options) = requests::watch(request);
    let mut stream = client.watch(key, Some(options)).await?;
    let first = stream.message().await?;
    let first = first.ok_or_else(|| Error::WatchError("it ended before it began".into()))?;
    Ok(Begun {
        stream,
        first: first.0,
    })
}

impl Begun {
    /// The events, drained by a task of their own: whoever reads them slowly holds up no other
    /// stream of the connection. A watch that is silent for so long is asked for a sign of life, and
    /// given up when it gives none for as long again.
    pub(super) fn into_stream(
        self,
        runtime: Arc<dyn Runtime>,
        silence: Duration,
    ) -> Result<WatchStream, KvError> {
        let mut parts = Parts::default();
        // Nothing comes with the beginning but the refusal.
        parts.take_in(self.first)?;
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let drain = Drain {
            runtime: Arc::clone(&runtime),
            silence,
            stream: self.stream,
            parts,
            events: sender,
        };
        runtime.spawn(Box::pin(drain.run()));
        let events = stream::poll_fn(move |context| receiver.poll_recv(context));
        Ok(WatchStream::new(events))
    }
}

struct Drain {
    runtime: Arc<dyn Runtime>,
    silence: Duration,
    stream: etcd_client::WatchStream,
    parts: Parts,
    events: mpsc::UnboundedSender<Result<WatchResponse, KvError>>,
}

impl Drain {
    /// Until the watch ends or nobody reads it any more; dropping the stream removes the watch.
    async fn run(mut self) {
        if let Err(error) = self.forward().await {
            // Nobody reads it any more.
            drop(self.events.send(Err(error)));
        }
    }

    async fn forward(&mut self) -> Result<(), KvError> {
        let mut asked = false;
        loop {
            let silence = self.runtime.sleep(self.silence);
            tokio::select! {
                biased;
                () = self.events.closed() => return Ok(()),
                message = self.stream.message() => {
                    let message = message.map_err(errors::from_client)?;
                    let message = message.ok_or_else(|| ended("the server ended the watch"))?;
                    asked = false;
                    if let Some(response) = self.parts.take_in(message.0)?
                        && self.events.send(Ok(response)).is_err()
                    {
                        return Ok(());
                    }
                }
                () = silence => {
                    if asked {
                        return Err(ended("the watch gives no sign of life"));
                    }
                    self.stream.request_progress().await.map_err(errors::from_client)?;
                    asked = true;
                }
            }
        }
    }
}

/// Puts together what comes in fragments.
#[derive(Default)]
struct Parts {
    events: Vec<WatchEvent>,
}

impl Parts {
    /// Takes one message; answers with the events of all that belong together.
    fn take_in(&mut self, message: PbWatchResponse) -> Result<Option<WatchResponse>, KvError> {
        if message.canceled || message.compact_revision != 0 {
            return Err(match message.compact_revision {
                0 => errors::from_reason(&message.cancel_reason),
                compact_revision => {
                    let kind = KvErrorKind::Compacted { compact_revision };
                    KvError::new(kind, Applied::No, "the watch fell behind the compaction")
                }
            });
        }
        for event in message.events {
            self.events.push(responses::event(event)?);
        }
        if message.fragment || self.events.is_empty() {
            return Ok(None);
        }
        let header = responses::header(message.header)?;
        let events = std::mem::take(&mut self.events);
        Ok(Some(WatchResponse { header, events }))
    }
}

fn ended(message: &'static str) -> KvError {
    KvError::new(KvErrorKind::Unavailable, Applied::No, message)
}

#[cfg(test)]
mod tests {
    use etcd_client::proto::{PbEvent, PbKeyValue, PbResponseHeader};

    use super::*;

    fn message(keys: &[&str], fragment: bool) -> PbWatchResponse {
        let event = |key: &&str| PbEvent {
            r#type: 1,
            kv: Some(PbKeyValue {
                key: key.as_bytes().into(),
                ..PbKeyValue::default()
            }),
            prev_kv: None,
        };
        PbWatchResponse {
            header: Some(PbResponseHeader::default()),
            fragment,
            events: keys.iter().map(event).collect(),
            ..PbWatchResponse::default()
        }
    }

    #[test]
    fn fragments_come_out_as_one() {
        let mut parts = Parts::default();
        assert_eq!(parts.take_in(message(&["a", "b"], true)).unwrap(), None);
        assert_eq!(parts.take_in(message(&["c"], true)).unwrap(), None);
        let whole = parts.take_in(message(&["d"], false)).unwrap().unwrap();
        let keys: Vec<_> = whole.events.iter().map(|event| &*event.kv.key).collect();
        assert_eq!(keys, [b"a", b"b", b"c", b"d"]);
        let next = parts.take_in(message(&["e"], false)).unwrap().unwrap();
        assert_eq!(next.events.len(), 1);
    }

    #[test]
    fn signs_of_life_are_no_events() {
        let mut parts = Parts::default();
        assert_eq!(parts.take_in(message(&[], false)).unwrap(), None);
    }

    #[test]
    fn a_watch_that_was_ended_says_why() {
        let mut parts = Parts::default();
        let compacted = PbWatchResponse {
            canceled: true,
            compact_revision: 7,
            ..message(&[], false)
        };
        let error = parts.take_in(compacted).unwrap_err();
        let expected = KvErrorKind::Compacted {
            compact_revision: 7,
        };
        assert_eq!(error.kind(), expected);
        let refused = PbWatchResponse {
            created: true,
            canceled: true,
            cancel_reason: "etcdserver: permission denied".into(),
            ..message(&[], false)
        };
        let error = parts.take_in(refused).unwrap_err();
        assert_eq!(error.kind(), KvErrorKind::Denied);
    }
}
