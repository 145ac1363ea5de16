//! Those whose locks the operators look at.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use fencelock::spi::Payload;
use fencelock::{Attempt, Client, Guard, Lost};
use tokio::runtime::Runtime;

/// Renews while the commands run.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.build().expect("a runtime")
});

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// In the background.
pub(crate) fn spawn<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    RUNTIME.spawn(future)
}

/// A client called `owner`.
pub(crate) fn client(url: &str, owner: &str) -> Client {
    let separator = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{separator}owner={owner}");
    block_on(Client::connect(&url)).expect("the store answers")
}

/// Takes a lock that is free.
pub(crate) fn hold(client: &Client, key: &str) -> Guard {
    match block_on(client.try_acquire(key)).expect("the store answers") {
        Attempt::Acquired(guard) => guard,
        Attempt::Held(holder) => panic!("{key} is held by {holder:?}"),
    }
}

/// Takes a lock that is free, and shows something.
pub(crate) fn hold_and_show(client: &Client, key: &str, text: &str) -> Guard {
    let payload = Payload::new(text.to_owned()).expect("short");
    let acquire = client.acquire(key).payload(payload);
    block_on(async { acquire.await }).expect("it is free")
}

/// Waits until a guard knows that it is lost.
pub(crate) fn lost(guard: &Guard) -> Lost {
    let limit = Duration::from_secs(30);
    block_on(async { tokio::time::timeout(limit, guard.lost()).await }).expect("it is lost")
}
