use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Those that ask for an end.
const ENDING: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];
/// Those that the command may want to know of.
const OTHERS: [Signal; 5] = [
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// The signals that are sent to `fencelock`, to be passed on.
#[derive(Debug)]
pub(super) struct Signals {
    streams: Vec<(Signal, tokio::signal::unix::Signal)>,
    /// The last that asked for an end, as its handler left it; 0 for none.
    ending: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on none of them ends this process. One that was ignored when the process began, as
    /// under `nohup`, goes on being ignored, here and by the command.
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = ignored();
        let mut signals = Self {
            streams: Vec::new(),
            ending: Arc::default(),
        };
        for caught in ENDING.into_iter().chain(OTHERS) {
            let number = caught as i32;
            if ignored & (1 << (number - 1)) != 0 {
                continue;
            }
            if ENDING.contains(&caught) {
                let ending = Arc::clone(&signals.ending);
                let value = usize::try_from(number).unwrap_or_default();
                signal_hook::flag::register_usize(number, ending, value)?;
            }
            let stream = signal(SignalKind::from_raw(number))?;
            signals.streams.push((caught, stream));
        }
        Ok(signals)
    }

    /// Whether an end was asked for, also where [`recv`](Self::recv) has not told so yet.
    pub(super) fn ending(&self) -> Option<Signal> {
        let number = self.ending.load(Ordering::SeqCst);
        let number = i32::try_from(number).ok().filter(|number| *number != 0);
        number.and_then(|number| Signal::try_from(number).ok())
    }

    /// The next signal. Cancel safe.
    pub(super) async fn recv(&mut self) -> Signal {
        poll_fn(|cx| {
            for (caught, stream) in &mut self.streams {
                if let Poll::Ready(Some(())) = stream.poll_recv(cx) {
                    return Poll::Ready(*caught);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The next signal that asks for an end. Cancel safe.
    pub(super) async fn asked_to_end(&mut self) -> Signal {
        loop {
            let signal = self.recv().await;
            if is_ending(signal) {
                return signal;
            }
        }
    }
}

pub(super) fn is_ending(signal: Signal) -> bool {
    ENDING.contains(&signal)
}

/// The signals that this process ignores, as bits; where the system does not tell, none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
