//! Streams through a network: late, and cut by a partition.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{KeepAliveResponse, KeepAliveStream, KvError, WatchStream};
use futures_util::{Stream, StreamExt, stream};
use lock_spi::Runtime;
use tokio::sync::mpsc;

use crate::faults::Faults;
use crate::faulty::reset;

/// Messages of one stream that travel at the same time.
const IN_FLIGHT: usize = 64;

/// What a watch yields, as it arrives.
pub(crate) fn changes(
    runtime: &Arc<dyn Runtime>,
    faults: Faults,
    stream: WatchStream,
) -> WatchStream {
    let (runtime, on_the_way) = (Arc::clone(runtime), faults.clone());
    let delayed = stream
        .map(move |message| {
            let arrival = runtime.sleep(on_the_way.delay(&*runtime));
            async move {
                arrival.await;
                message
            }
        })
        .buffered(IN_FLIGHT);
    WatchStream::new(cut(faults, Box::pin(delayed)))
}

/// Renews at once and then every period until the stream is dropped or cut, also while nobody reads.
pub(crate) fn renewals<A>(
    runtime: &Arc<dyn Runtime>,
    faults: Faults,
    period: Duration,
    renew: impl Fn() -> A + Send + 'static,
) -> KeepAliveStream
where
    A: Future<Output = Result<KeepAliveResponse, KvError>> + Send + 'static,
{
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let (own, cuts) = (Arc::clone(runtime), faults.cuts());
    let link = faults.clone();
    runtime.spawn(Box::pin(async move {
        loop {
            let (answers, renewal) = (sender.clone(), renew());
            own.spawn(Box::pin(async move {
                tokio::select! {
                    biased;
                    () = answers.closed() => {}
                    answer = renewal => drop(answers.send(answer)),
                }
            }));
            tokio::select! {
                biased;
                () = sender.closed() => return,
                () = link.cut_after(cuts) => return,
                () = own.sleep(period) => {}
            }
        }
    }));
    let answers = stream::poll_fn(move |context| receiver.poll_recv(context));
    KeepAliveStream::new(cut(faults, Box::pin(answers)))
}

/// Passes messages on until the network cuts the stream, which shows once it has healed.
fn cut<T: Send + 'static>(
    faults: Faults,
    messages: impl Stream<Item = Result<T, KvError>> + Send + Unpin + 'static,
) -> impl Stream<Item = Result<T, KvError>> + Send {
    let cuts = faults.cuts();
    stream::unfold(Some(messages), move |standing| {
        let faults = faults.clone();
        async move {
            let mut messages = standing?;
            tokio::select! {
                biased;
                () = faults.cut_after(cuts) => {
                    drop(messages);
                    faults.healed().await;
                    Some((Err(reset()), None))
                }
                message = messages.next() => {
                    let message = message?;
                    let ended = message.is_err();
                    Some((message, (!ended).then_some(messages)))
                }
            }
        }
    })
}
