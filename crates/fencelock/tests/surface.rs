//! What the types and futures of the client are to the compiler.

use std::time::Duration;

use fencelock::spi::Payload;
use fencelock::{
    Acquire, AcquireAll, Admin, Attempt, Client, ClientBuilder, Election, Error, ErrorKind, Guard,
    Guards, Health, Held, Leader, Leadership, Lost, LostReason, Release, Revoke, SessionHealth,
    SessionPhase, Shutdown,
};
use futures_util::Stream;

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
    shared::<Election>();
    shared::<Leader>();
    shared::<Leadership>();
    shared::<Guards>();
    shared::<Health>();
    shared::<SessionHealth>();
    shared::<SessionPhase>();
    sent::<ClientBuilder>();
    sent::<Acquire<'static>>();
    sent::<AcquireAll<'static>>();
};

fn future_is_sent<F: Future + Send>(_: F) {}
fn stream_is_sent<S: Stream + Send + Unpin + 'static>(_: S) {}

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

/// Compiled, and never run.
#[allow(dead_code, reason = "the compiler is the test")]
fn those_of_elections_and_of_several_locks_are_sent(
    client: Client,
    election: Election,
    leadership: Leadership,
    guards: Guards,
    payload: Payload,
) {
    future_is_sent(client.acquire_all(["k"]).into_future());
    future_is_sent(election.campaign(payload));
    future_is_sent(election.leader());
    stream_is_sent(election.observe());
    future_is_sent(leadership.lost());
    future_is_sent(leadership.run(async {}));
    future_is_sent(leadership.resign());
    future_is_sent(guards.lost());
    future_is_sent(guards.run(async {}));
    future_is_sent(guards.release());
}

#[test]
fn results_are_small() {
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}
