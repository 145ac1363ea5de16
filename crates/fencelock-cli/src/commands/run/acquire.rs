use std::error::Error as _;
use std::future::IntoFuture as _;
use std::time::Duration;

use fencelock::{Acquire, Error, ErrorKind, Guard};
use nix::sys::signal::Signal;

use super::signals::Signals;
use crate::exit::Exit;
use crate::failure::Failure;

/// How the waiting came to its end.
#[derive(Debug)]
pub(super) enum Acquired {
    Guard(Guard),
    /// First came a signal.
    AskedToEnd(Signal),
}

/// Waits for the lock, or until somebody asks for an end.
pub(super) async fn acquire(
    wish: Acquire<'_>,
    wait: Option<Duration>,
    signals: &mut Signals,
) -> Result<Acquired, Failure> {
    tokio::select! {
        biased;
        signal = signals.asked_to_end() => Ok(Acquired::AskedToEnd(signal)),
        answer = wish.into_future() => match answer {
            Ok(guard) => Ok(Acquired::Guard(guard)),
            Err(error) => Err(not_granted(&error, wait)),
        },
    }
}

fn not_granted(error: &Error, wait: Option<Duration>) -> Failure {
    let mut failure = Failure::of(error);
    if error.kind() != ErrorKind::TimedOut {
        return failure;
    }
    if error.holder().is_none() && error.source().is_some() {
        // It was the store that stood in the way.
        failure.exit = Exit::Unreachable;
        return failure.hint("`fencelock doctor` tells what can be reached");
    }
    if wait == Some(Duration::ZERO) {
        failure.exit = Exit::Busy;
        return failure.hint("wait for it with --wait; --busy-status 0 makes this no failure");
    }
    failure
}
