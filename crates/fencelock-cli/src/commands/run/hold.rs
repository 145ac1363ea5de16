use std::ffi::OsString;
use std::io;
use std::time::Duration;

use fencelock::Guard;
use fencelock::spi::{Runtime, TokioRuntime};
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::{Pid, getpid, getsid};
use tokio::signal::unix::{SignalKind, signal};

use super::group::{Group, Leader, ended_by};
use super::limits::Limits;
use super::signals::Signals;
use super::supervisor::Supervisor;
use super::terminal::Terminal;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::helpers::clock;
use crate::output::Output;

/// How often a group that is ending is looked at: only the end of children is told by a signal.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command while the guard holds; when it returns, nobody of the command's group is left.
pub(super) async fn hold(
    command: &[OsString],
    guard: &Guard,
    limits: Limits,
    signals: &mut Signals,
    output: &Output,
) -> Result<Exit, Failure> {
    // Before the first child: a change that comes later is not missed.
    let mut changes = signal(SignalKind::child())?;
    let mut supervisor = Supervisor::start().await?;
    let environment = environment(guard);
    let mut group = Group::prepare(command, &environment)?;
    while group.leader() == Leader::Runs {
        changes.recv().await;
        group.look();
    }
    supervisor
        .watch(group.id(), last_moment(guard, limits))
        .await?;
    let mut holding = Holding {
        guard,
        limits,
        group,
        supervisor,
        terminal: Terminal::of_this_process(),
        output,
        phase: Phase::Running,
        suspending: false,
        unsupervised: false,
    };
    // From here to the command's first instruction nothing is awaited.
    match signals.ending() {
        Some(signal) => holding.kill(Why::Signal(signal)),
        None if guard.check().is_err() => holding.kill(Why::Lost),
        None => holding.begin(),
    }
    let why = loop {
        if let Some(why) = holding.look() {
            break why;
        }
        let runtime: &dyn Runtime = &TokioRuntime::current();
        tokio::select! {
            biased;
            signal = signals.recv() => holding.pass_on(signal),
            _ = changes.recv() => {}
            _ = guard.lost(), if holding.phase == Phase::Running => {}
            () = runtime.sleep(holding.nap()) => {}
        }
    };
    holding.report(why)
}

/// What the command finds in its environment, whatever this process was given.
fn environment(guard: &Guard) -> [(&'static str, String); 3] {
    let runtime: &dyn Runtime = &TokioRuntime::current();
    let deadline = runtime.wall_clock() + guard.remaining();
    [
        ("FENCELOCK_TOKEN", guard.token().to_string()),
        ("FENCELOCK_KEY", guard.key().to_string()),
        (
            "FENCELOCK_DEADLINE",
            format!("{:.3}", deadline.as_secs_f64()),
        ),
    ]
}

/// When the group has to be killed unless a renewal comes, on the shared clock.
fn last_moment(guard: &Guard, limits: Limits) -> Duration {
    let now = clock::now();
    (now + guard.remaining()).saturating_sub(limits.reserve)
}

/// The life of the command.
#[derive(Debug)]
struct Holding<'h> {
    guard: &'h Guard,
    limits: Limits,
    group: Group,
    supervisor: Supervisor,
    terminal: Option<Terminal>,
    output: &'h Output,
    phase: Phase,
    /// The own job was told to stop, and has not stopped yet.
    suspending: bool,
    unsupervised: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Running,
    /// Asked to end, and killed at this moment.
    Ending {
        why: Why,
        kill_at: Duration,
    },
    Killed {
        why: Why,
    },
}

/// Why it ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Why {
    /// By itself, or by whoever signalled it.
    Itself(u8),
    /// The lock is lost.
    Lost,
    /// A renewal was overdue too long.
    Overdue,
    /// This signal came before the command began.
    Signal(Signal),
    /// The supervisor has ended.
    Unsupervised,
}

impl Holding<'_> {
    fn begin(&mut self) {
        if let Some(terminal) = &self.terminal
            && terminal.is_ours()
        {
            terminal.give_to(self.group.id());
        }
        self.group.go_on();
    }

    /// Takes in what has happened, and does what follows; the reason once everything is over.
    fn look(&mut self) -> Option<Why> {
        for process in self.group.look() {
            self.unsupervised |= self.supervisor.is(process);
        }
        let ended = match self.group.leader() {
            Leader::Ended(status) => Some(status),
            Leader::Stopped(signal) => {
                self.stopped(signal);
                None
            }
            Leader::Runs => None,
        };
        if self.phase == Phase::Running {
            if let Some(status) = ended {
                let killed = self.supervisor.has_killed() || !self.guard.is_held();
                let why = if killed {
                    Why::Lost
                } else {
                    Why::Itself(status)
                };
                if self.group.is_gone() {
                    return Some(why);
                }
                self.end(why);
            } else {
                self.watch();
            }
        }
        match self.phase {
            Phase::Ending { why, .. } | Phase::Killed { why } if self.group.is_gone() => {
                return Some(why);
            }
            Phase::Ending { why, kill_at } if kill_at <= clock::now() => self.kill(why),
            _ => {}
        }
        // What is lost for good has no deadline: then the last that was told counts.
        if self.guard.is_held() {
            self.supervisor.beat(last_moment(self.guard, self.limits));
        }
        None
    }

    /// Looks whether the command may go on.
    fn watch(&mut self) {
        if let Err(lost) = self.guard.check() {
            self.output.note(&format!("{lost}: the command is stopped"));
            if lost.reason.is_definite() {
                self.end(Why::Lost);
            } else {
                self.kill(Why::Lost);
            }
        } else if self.guard.remaining() <= self.limits.notice() {
            self.output
                .note("no renewal was confirmed, and the deadline is near: the command is stopped");
            self.end(Why::Overdue);
        } else if self.unsupervised {
            self.output
                .note("the supervisor has ended: the command is stopped");
            self.end(Why::Unsupervised);
        }
    }

    /// Asks the group to end.
    fn end(&mut self, why: Why) {
        self.group.send(Signal::SIGTERM);
        let last = self.supervisor.told();
        let kill_at = (clock::now() + self.limits.grace).min(last);
        self.phase = Phase::Ending { why, kill_at };
    }

    fn kill(&mut self, why: Why) {
        self.group.send(Signal::SIGKILL);
        self.phase = Phase::Killed { why };
    }

    fn nap(&self) -> Duration {
        match self.phase {
            Phase::Running => {
                let left = self.guard.remaining();
                left.saturating_sub(self.limits.notice())
                    .min(self.limits.beat)
            }
            Phase::Ending { .. } | Phase::Killed { .. } => LOOK,
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        match signal {
            Signal::SIGTSTP => {
                self.group.send(signal);
                self.suspend();
            }
            Signal::SIGCONT => self.begin(),
            _ => self.group.send(signal),
        }
    }

    /// The command was stopped. Where its terminal did that, the own job stops too, so that the shell
    /// gets its terminal back; it would otherwise wait for ever.
    fn stopped(&mut self, by: Signal) {
        let Some(terminal) = &self.terminal else {
            return;
        };
        let in_front = terminal.is_of(self.group.id());
        let wants_terminal = matches!(by, Signal::SIGTTIN | Signal::SIGTTOU);
        if self.suspending || !(in_front || wants_terminal) {
            return;
        }
        if wants_terminal && terminal.is_ours() {
            return self.begin();
        }
        terminal.take_back_from(self.group.id());
        self.suspending = true;
        // All of the job, as the terminal would; it comes back to this process as a signal.
        kill(Pid::from_raw(0), Signal::SIGTSTP).ok();
    }

    /// Stops this process until somebody has it go on. The supervisor minds the deadline meanwhile.
    fn suspend(&mut self) {
        self.suspending = false;
        if let Some(terminal) = &self.terminal {
            terminal.take_back_from(self.group.id());
        }
        // Nobody could ever have the leader of a session go on.
        if getsid(None) != Ok(getpid()) {
            raise(Signal::SIGSTOP).ok();
        }
        self.begin();
    }

    /// Says what has happened, now that nobody of the group is left.
    fn report(self, why: Why) -> Result<Exit, Failure> {
        if let Some(terminal) = &self.terminal {
            terminal.take_back_from(self.group.id());
        }
        self.supervisor.done();
        match why {
            Why::Itself(status) => Ok(Exit::Command(status)),
            Why::Signal(signal) => {
                self.output.note("asked to end before the command began");
                Ok(Exit::Command(ended_by(signal)))
            }
            Why::Lost | Why::Overdue => {
                let key = self.guard.key();
                let what = match self.guard.check() {
                    Err(lost) => format!("{lost}; the command was stopped"),
                    Ok(token) => format!(
                        "lock {key} with token {token} was not renewed in time; the command was \
                         stopped {} before the deadline",
                        humantime::format_duration(whole_millis(self.guard.remaining())),
                    ),
                };
                Err(Failure::new(Exit::Lost, what).hint(
                    "the store may have been out of reach (`fencelock doctor`), the lock revoked \
                     (`fencelock revocations`), or this process stopped",
                ))
            }
            Why::Unsupervised => Err(Failure::from(io::Error::other(
                "the supervisor was killed, so the command was stopped",
            ))),
        }
    }
}

fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
