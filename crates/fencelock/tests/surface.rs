//! What the types and futures of the client are to the compiler.

use std::time::Duration;

use fencelock::{
    Acquire, Admin, Attempt, Client, ClientBuilder, Error, ErrorKind, Guard, Held, Lost,
    LostReason, Release, Revoke, Shutdown,
};

const fn shared<T: Send + Sync + 'static>() {}
const fn sent<T: Send>() {}

const _: () = {
    shared::<Client>();
    shared::<Guard>();
    shared::<Held>();
    shared::<Admin>();
    shared::<Revoke>();
    shared::<Attempt>();
    shared::<Error>();
    shared::<ErrorKind>();
    shared::<Lost>();
    shared::<LostReason>();
    shared::<Release>();
    shared::<Shutdown>();
    sent::<ClientBuilder>();
    sent::<Acquire<'static>>();
};

fn future_is_sent<F: Future + Send>(_: F) {}

/// Compiled, and never run.
#[allow(dead_code, reason = "the compiler is the test")]
fn futures_are_sent(client: Client, guard: Guard, held: Held) {
    future_is_sent(Client::connect("memory:"));
    future_is_sent(client.try_acquire("k"));
    future_is_sent(client.acquire(String::from("k")).into_future());
    future_is_sent(client.with_lock("k", |held| async move { held.token() }));
    future_is_sent(client.admin().read("k"));
    future_is_sent(guard.lost());
    future_is_sent(guard.jeopardy());
    future_is_sent(guard.ensure(Duration::ZERO));
    future_is_sent(guard.run(async {}));
    future_is_sent(held.lost());
    future_is_sent(guard.release());
    future_is_sent(client.shutdown());
}

#[test]
fn results_are_small() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}
