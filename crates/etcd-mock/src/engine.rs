use std::collections::BTreeMap;
use std::task::Poll;

use etcd_kv::{Header, KeepAliveResponse, KeyValue, KvError, LeaseId, WatchResponse};

use crate::database::Database;
use crate::error;
use crate::facts::Fact;
use crate::options::Options;
use crate::request::{Request, Response, StreamId};
use crate::server::Server;

/// etcd as a state machine: events in, effects out; no clock, no tasks, no chance.
///
/// A call passes four phases, each an event of its own, so that whoever schedules the events
/// decides what the network does. What is not scheduled is delayed; a [`Lose`](Event::Lose) before
/// [`Apply`](Event::Apply) is a lost request, after it a lost answer; a second `Apply` is a
/// request that arrived twice. An event that does not fit the call's phase changes nothing.
///
/// # Examples
///
/// ```
/// use etcd_kv::PutRequest;
/// use etcd_mock::{CallId, Effect, Engine, Event, Options, Request};
///
/// let mut engine = Engine::new(Options::default());
/// let call = CallId(1);
/// let request = Request::Put(PutRequest::new("a", "1"));
/// engine.step(Event::Send { call, request });
/// engine.step(Event::Apply(call));
/// // The answer is lost: the client knows nothing, and the key is written.
/// let effects = engine.step(Event::Lose(call));
/// assert!(matches!(&effects[..], [Effect::Delivered { answer: Err(_), .. }]));
/// assert_eq!(engine.entries().len(), 1);
/// ```
#[derive(Debug)]
pub struct Engine {
    server: Server,
    calls: BTreeMap<CallId, Call>,
}

/// Names a call; whoever sends it chooses the name.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId(pub u64);

/// What happens to the state machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Time passes, and what falls due in it happens.
    Advance {
        /// How much.
        ticks: u64,
    },
    /// The request arrives and is applied; the answer waits at the server. A
    /// [`LeaseKeepAliveOnce`](Request::LeaseKeepAliveOnce) of a lease that stands though its time is
    /// over cannot be applied before the lease has ended.
    Apply(CallId),
    /// The client closes a watch or a keepalive.
    Close(StreamId),
    /// The answer arrives; the call is over.
    Deliver(CallId),
    /// Whatever of the call is on its way gets lost; for the client the call is over.
    Lose(CallId),
    /// The server sends the answer, that of the last `Apply`.
    Reply(CallId),
    /// A client sends a request.
    Send {
        /// The call's name; one that is taken is not sent.
        call: CallId,
        /// The request.
        request: Request,
    },
}

/// What the state machine does to others.
#[derive(Debug)]
pub enum Effect {
    /// A client hears how its call ended.
    Delivered {
        /// The call.
        call: CallId,
        /// How it ended.
        answer: Result<Response, KvError>,
    },
    /// There is more to read on this stream.
    Readable(StreamId),
}

#[derive(Debug)]
struct Call {
    request: Request,
    applied: Option<Answer>,
    replied: Option<Answer>,
}

type Answer = Result<Response, KvError>;

/// All that a backup holds: keys, their history, and leases.
#[derive(Clone, Debug)]
pub struct Snapshot(Database);

impl Engine {
    /// An empty store at revision 1.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self::serving(Server::new(options, Database::new(), 0))
    }

    /// Lets one event happen.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let delivered = match event {
            Event::Advance { ticks } => {
                self.server.advance(ticks);
                None
            }
            Event::Apply(call) => {
                self.apply(call);
                None
            }
            Event::Close(stream) => {
                self.server.close(stream);
                None
            }
            Event::Deliver(call) => self.deliver(call),
            Event::Lose(call) => self.lose(call),
            Event::Reply(call) => {
                self.reply(call);
                None
            }
            Event::Send { call, request } => {
                self.calls.entry(call).or_insert(Call {
                    request,
                    applied: None,
                    replied: None,
                });
                None
            }
        };
        let readable = self.server.take_readable();
        let readable = readable.into_iter().map(Effect::Readable);
        readable.chain(delivered).collect()
    }

    /// What a watch shows next. It ends after its first error, and when it is not open.
    pub fn poll_watch(&mut self, stream: StreamId) -> Poll<Option<Result<WatchResponse, KvError>>> {
        self.server.poll_watch(stream)
    }

    /// The next answer of a keepalive. It ends after its first error, and when it is not open.
    ///
    /// At most 16 answers wait to be read; the oldest gives way to a newer one.
    pub fn poll_keep_alive(
        &mut self,
        stream: StreamId,
    ) -> Poll<Option<Result<KeepAliveResponse, KvError>>> {
        self.server.poll_keep_alive(stream)
    }

    /// How many ticks have passed.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.server.now()
    }

    /// The tick at which something happens next by itself: a lease ends, a keepalive is due.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        self.server.next_due()
    }

    /// The store's revision.
    #[must_use]
    pub const fn revision(&self) -> i64 {
        self.server.database().keyspace.revision()
    }

    /// What an answer given now would carry.
    #[must_use]
    pub fn header(&self) -> Header {
        self.server.header()
    }

    /// Every key as it is now, in byte order.
    #[must_use]
    pub fn entries(&self) -> Vec<KeyValue> {
        self.server.database().keyspace.entries()
    }

    /// How many watches and keepalives are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.server.open_streams()
    }

    /// Whether it is later than the present tick by a part of one: a lease that begins now must not
    /// end before its time.
    pub(crate) const fn set_between_ticks(&mut self, between: bool) {
        self.server.set_between_ticks(between);
    }

    /// The raft term of later headers.
    pub const fn set_raft_term(&mut self, raft_term: u64) {
        self.server.set_raft_term(raft_term);
    }

    /// What a backup made now would hold.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.server.database().clone())
    }

    /// Starts again from a backup. Revisions go back to where they were; leases last their full
    /// ttl again; open streams are broken off. Headers go on naming the same cluster and term.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Vec<Effect> {
        self.server.restore(snapshot.0.clone());
        let readable = self.server.take_readable();
        readable.into_iter().map(Effect::Readable).collect()
    }

    /// Starts again with the same data, as a cluster does that was killed as a whole: the term rises,
    /// leases last their full ttl again, open streams are broken off.
    pub fn restart(&mut self) -> Vec<Effect> {
        self.server.restart();
        let readable = self.server.take_readable();
        readable.into_iter().map(Effect::Readable).collect()
    }

    /// The leader is gone and no other is chosen: no lease ends until [`elect`](Self::elect).
    pub const fn step_down(&mut self) {
        self.server.step_down();
    }

    /// Another server leads: the term rises, and leases last their full ttl again and so many ticks
    /// more. Streams stand.
    pub fn elect(&mut self, more: u64) {
        self.server.elect(more);
    }

    /// The leases that stand: each with its ttl in seconds, and the tick at which it ends.
    #[must_use]
    pub fn leases(&self) -> Vec<(LeaseId, i64, u64)> {
        self.server.database().leases.iter().collect()
    }

    /// Collects from now on what becomes true.
    pub const fn collect_facts(&mut self) {
        self.server.facts().want();
    }

    /// What has become true since this was last asked, in its order.
    pub fn take_facts(&mut self) -> Vec<Fact> {
        self.server.facts().take()
    }

    /// The same data at the same moment in a state machine of its own, without streams and calls.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::serving(self.server.fork())
    }

    const fn serving(server: Server) -> Self {
        Self {
            server,
            calls: BTreeMap::new(),
        }
    }

    fn apply(&mut self, call: CallId) {
        if let Some(Call {
            request, applied, ..
        }) = self.calls.get_mut(&call)
            && !self.server.holds_up(request)
        {
            let overwritten = applied.replace(self.server.apply(request));
            self.abandon(overwritten);
        }
    }

    fn reply(&mut self, call: CallId) {
        if let Some(Call {
            applied, replied, ..
        }) = self.calls.get_mut(&call)
            && applied.is_some()
        {
            let overwritten = std::mem::replace(replied, applied.take());
            self.abandon(overwritten);
        }
    }

    fn deliver(&mut self, call: CallId) -> Option<Effect> {
        let answer = self.calls.get_mut(&call)?.replied.take()?;
        self.forget(call);
        Some(Effect::Delivered { call, answer })
    }

    fn lose(&mut self, call: CallId) -> Option<Effect> {
        let answer = Err(error::lost());
        self.forget(call)
            .then_some(Effect::Delivered { call, answer })
    }

    /// Ends a call, and what it opened that nobody will hear of.
    fn forget(&mut self, call: CallId) -> bool {
        let Some(Call {
            applied, replied, ..
        }) = self.calls.remove(&call)
        else {
            return false;
        };
        self.abandon(applied);
        self.abandon(replied);
        true
    }

    fn abandon(&mut self, answer: Option<Answer>) {
        if let Some(Ok(Response::Watch(stream) | Response::LeaseKeepAlive(stream))) = answer {
            self.server.close(stream);
        }
    }
}
