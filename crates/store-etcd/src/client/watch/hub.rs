use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::proto::PbWatchResponse;
use etcd_client::{Error, WatchClient, WatchRequestSender, WatchResponseStream};
use etcd_kv::{KvError, WatchRequest};
use lock_spi::{BoxFuture, Instant, Runtime};
use tokio::sync::mpsc;

use super::pulse::{Act, Pulse};
use super::table::{Next, Refused, Table, Watcher, same, unavailable};
use crate::client::endpoints::{Call, Endpoints};
use crate::client::{errors, requests};

#[derive(Debug)]
pub(super) enum Command {
    Watch(Watcher),
    /// Nobody reads the watch of this number any more.
    Forget(u64),
}

/// The owner of the stream, a task of its own: it takes in whatever comes at once, so that nobody
/// who reads slowly holds up the connection or the other watches.
pub(super) struct Hub {
    endpoints: Arc<Endpoints>,
    runtime: Arc<dyn Runtime>,
    limit: Duration,
    silence: Duration,
    commands: mpsc::UnboundedReceiver<Command>,
}

/// A stream that has begun with the answer to its first watch.
struct Begun {
    requests: WatchRequestSender,
    responses: WatchResponseStream,
    first: PbWatchResponse,
}

async fn begin(mut client: WatchClient, request: WatchRequest) -> Result<Begun, Error> {
    let (key, options) = requests::watch(request);
    let stream = client.watch(key, Some(options)).await?;
    let (requests, mut responses) = stream.split();
    let first = responses.message().await?;
    let first = first.ok_or_else(|| Error::WatchError("it ended before it began".into()))?;
    if errors::is_about_the_token(first.cancel_reason()) {
        return Err(Error::WatchError(first.cancel_reason().to_owned()));
    }
    Ok(Begun {
        requests,
        responses,
        first: first.0,
    })
}

impl Hub {
    pub(super) fn new(
        endpoints: Arc<Endpoints>,
        runtime: Arc<dyn Runtime>,
        (limit, silence): (Duration, Duration),
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            endpoints,
            runtime,
            limit,
            silence,
            commands,
        }
    }

    /// Until the client is gone, and everybody who watches.
    pub(super) async fn run(mut self) {
        while let Some(watcher) = self.next_watcher().await {
            let request = &watcher.request;
            let begun = self.endpoints.call(Call::Read, |member| {
                let (client, request) = (member.watch(), request.clone());
                async move { begin(client, request).await }
            });
            match begun.await {
                Ok(begun) => self.serve(begun, watcher).await,
                Err(error) => self.refuse(watcher, error),
            }
        }
    }

    async fn next_watcher(&mut self) -> Option<Watcher> {
        loop {
            match self.commands.recv().await? {
                Command::Watch(watcher) if !watcher.is_gone() => return Some(watcher),
                Command::Watch(_) | Command::Forget(_) => {}
            }
        }
    }

    /// Nobody can be reached: those who asked meanwhile need not find that out one by one.
    fn refuse(&mut self, watcher: Watcher, error: KvError) {
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Watch(watcher) = command {
                watcher.refuse(Refused::ForGood(same(&error)));
            }
        }
        watcher.refuse(Refused::ForGood(error));
    }

    /// Until the stream ends, or nobody watches any more.
    async fn serve(&mut self, begun: Begun, watcher: Watcher) {
        let mut table = Table::default();
        table.ask(self.runtime.now(), watcher);
        if let Err(error) = self.forward(&mut table, begun).await {
            tracing::debug!(%error, "the stream of the watches ended");
            table.end(&error);
        }
    }

    async fn forward(&mut self, table: &mut Table, begun: Begun) -> Result<(), KvError> {
        let Begun {
            mut requests,
            mut responses,
            first,
        } = begun;
        let mut outbox = VecDeque::new();
        let mut pulse = Pulse::new(self.runtime.now(), self.limit, self.silence);
        let mut alarm = Alarm::new(&*self.runtime);
        outbox.extend(answer_to(table.take_in(first)?));
        loop {
            pulse.note(self.runtime.now(), table.is_empty());
            let unanswered = table.unanswered_since();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    None => return Ok(()),
                    Some(Command::Watch(watcher)) if watcher.is_gone() => {}
                    Some(Command::Watch(watcher)) => {
                        outbox.push_back(Outgoing::Watch(watcher.request.clone()));
                        table.ask(self.runtime.now(), watcher);
                    }
                    Some(Command::Forget(number)) => {
                        outbox.extend(table.forget(number).map(Outgoing::Cancel));
                    }
                },
                // What the server does not take yet holds up nothing that it sends.
                sent = send(&mut requests, outbox.front()), if !outbox.is_empty() => {
                    sent.map_err(errors::from_client)?;
                    outbox.pop_front();
                }
                message = responses.message() => {
                    let message = message.map_err(errors::from_client)?;
                    let message = message.ok_or_else(|| unavailable("the server hung up"))?;
                    pulse.heard(self.runtime.now());
                    outbox.extend(answer_to(table.take_in(message.0)?));
                }
                () = alarm.by(pulse.due(unanswered)) => {
                    match pulse.act(self.runtime.now(), unanswered) {
                        Act::Wait => {}
                        Act::AskForLife => outbox.push_back(Outgoing::Progress),
                        Act::Close => return Ok(()),
                        Act::GiveUp => return Err(unavailable("the watches give no sign of life")),
                    }
                }
            }
        }
    }
}

/// What is to be sent.
#[derive(Debug)]
enum Outgoing {
    Watch(WatchRequest),
    Cancel(i64),
    Progress,
}

fn answer_to(next: Next) -> Option<Outgoing> {
    match next {
        Next::GoOn => None,
        Next::Cancel(id) => Some(Outgoing::Cancel(id)),
    }
}

/// Dropped, it has sent nothing.
async fn send(requests: &mut WatchRequestSender, outgoing: Option<&Outgoing>) -> Result<(), Error> {
    match outgoing {
        Some(Outgoing::Watch(request)) => {
            let (key, options) = requests::watch(request.clone());
            requests.watch(key, Some(options)).await
        }
        Some(&Outgoing::Cancel(id)) => requests.cancel(id).await,
        Some(Outgoing::Progress) => requests.request_progress().await,
        None => Ok(()),
    }
}

/// A timer that is only set anew when it is wanted sooner.
struct Alarm<'a> {
    runtime: &'a dyn Runtime,
    set: Option<(Instant, BoxFuture<()>)>,
}

impl<'a> Alarm<'a> {
    const fn new(runtime: &'a dyn Runtime) -> Self {
        Self { runtime, set: None }
    }

    /// Resolves when it is due, or sooner. What is set stays so when this is dropped.
    async fn by(&mut self, due: Instant) {
        let set = self.set.take().filter(|(at, _)| *at <= due);
        let (_, timer) = self
            .set
            .insert(set.unwrap_or_else(|| (due, self.runtime.sleep_until(due))));
        timer.await;
        self.set = None;
    }
}
