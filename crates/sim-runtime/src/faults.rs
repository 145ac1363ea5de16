use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use lock_spi::Runtime;
use tokio::sync::watch;

use crate::weather::{Weather, happens};

/// Steers a [`Faulty`](crate::Faulty) while it is in use.
///
/// What is scripted comes before the weather. *Changing* calls are those that write or renew: put,
/// delete, transactions, leases granted, renewed and revoked, compaction.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    script: Mutex<Script>,
    link: watch::Sender<Link>,
    observer: OnceLock<Observer>,
}

type Observer = Box<dyn Fn(Mishap) + Send + Sync>;

/// What a network does to a single call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mishap {
    /// It was not sent.
    Refused,
    /// The request does not arrive.
    RequestLost,
    /// The reply does not arrive.
    ReplyLost,
    /// The request or the reply takes far longer than others.
    Straggles,
    /// The request arrives once more.
    Copied,
}

struct Script {
    weather: Weather,
    refusals: u32,
    lost_requests: u32,
    lost_replies: u32,
    calls: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    requests_cut: bool,
    replies_cut: bool,
    holding: bool,
    /// How often streams were cut.
    cuts: u64,
}

/// A kind of call.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) changes: bool,
}

/// What will befall one call.
pub(crate) struct Fate {
    pub(crate) there: Duration,
    pub(crate) back: Duration,
    pub(crate) ending: Ending,
    /// When a copy of the request arrives, if one does.
    pub(crate) copy: Option<Duration>,
}

#[derive(Clone, Copy)]
pub(crate) enum Ending {
    /// It is answered.
    Answered,
    /// It never leaves, and the caller is told so.
    Refused,
    RequestLost {
        shown: bool,
    },
    ReplyLost {
        shown: bool,
    },
}

impl Faults {
    /// What steers a network in this weather; for networks that are steered together:
    /// [`Faulty::steered_by`](crate::Faulty::steered_by).
    #[must_use]
    pub fn new(weather: Weather) -> Self {
        let script = Script {
            weather,
            refusals: 0,
            lost_requests: 0,
            lost_replies: 0,
            calls: BTreeMap::new(),
        };
        Self(Arc::new(Inner {
            script: Mutex::new(script),
            link: watch::Sender::default(),
            observer: OnceLock::new(),
        }))
    }

    /// Tells `observer` of every mishap of a single call, when it is sent. There is one observer;
    /// later ones are told nothing.
    pub fn observe(&self, observer: impl Fn(Mishap) + Send + Sync + 'static) {
        drop(self.0.observer.set(Box::new(observer)));
    }

    fn tell(&self, mishap: Mishap) {
        if let Some(observer) = self.0.observer.get() {
            observer(mishap);
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the weather for the calls that are sent from now on.
    pub fn set_weather(&self, weather: Weather) {
        self.script().weather = weather;
    }

    /// The next `n` changing calls are applied and their replies lost; the caller sees a reset
    /// connection.
    pub fn lose_next_replies(&self, n: u32) {
        self.script().lost_replies = n;
    }

    /// The next `n` changing calls do not arrive; the caller sees a reset connection.
    pub fn lose_next_requests(&self, n: u32) {
        self.script().lost_requests = n;
    }

    /// The next `n` calls of any kind are not sent; the caller sees a refused connection.
    pub fn fail_next(&self, n: u32) {
        self.script().refusals = n;
    }

    /// Nothing gets through either way, what is travelling included, and nobody is told. Streams
    /// fall silent.
    pub fn partition(&self) {
        self.cut(true, true);
    }

    /// Requests do not get through, what is travelling included, while replies do. Streams fall
    /// silent.
    pub fn cut_requests(&self) {
        self.cut(true, false);
    }

    /// Replies do not get through, what is travelling included, while requests do. Streams fall
    /// silent.
    pub fn cut_replies(&self) {
        self.cut(false, true);
    }

    fn cut(&self, requests: bool, replies: bool) {
        self.0.link.send_modify(|link| {
            link.requests_cut |= requests;
            link.replies_cut |= replies;
            link.cuts += 1;
        });
    }

    /// Ends every partition. Streams that it cut end with an error.
    pub fn heal(&self) {
        self.0.link.send_modify(|link| {
            link.requests_cut = false;
            link.replies_cut = false;
        });
    }

    /// Ends every stream that stands, with an error.
    pub fn reset_streams(&self) {
        self.0.link.send_modify(|link| link.cuts += 1);
    }

    /// Requests travel until they are released, however long that takes; their callers may have
    /// gone by then.
    pub fn hold_requests(&self) {
        self.0.link.send_modify(|link| link.holding = true);
    }

    /// Every request that was held arrives, and later ones are not held.
    pub fn release_requests(&self) {
        self.0.link.send_modify(|link| link.holding = false);
    }

    /// How often each method was called so far.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.script().calls.clone()
    }

    pub(crate) fn decide(&self, kind: Kind, runtime: &dyn Runtime) -> Fate {
        let mut script = self.script();
        *script.calls.entry(kind.name).or_default() += 1;
        let ending = script.ending(kind, runtime);
        let weather = &script.weather;
        let copied = matches!(ending, Ending::Answered | Ending::ReplyLost { .. })
            && kind.changes
            && happens(weather.duplicates, runtime);
        let (there, straggles) = weather.journey(runtime);
        let (back, returns_late) = weather.journey(runtime);
        let copy = copied.then(|| Weather::straggling(runtime));
        drop(script);
        for (befell, mishap) in [
            (matches!(ending, Ending::Refused), Mishap::Refused),
            (
                matches!(ending, Ending::RequestLost { .. }),
                Mishap::RequestLost,
            ),
            (
                matches!(ending, Ending::ReplyLost { .. }),
                Mishap::ReplyLost,
            ),
            (straggles || returns_late, Mishap::Straggles),
            (copied, Mishap::Copied),
        ] {
            if befell {
                self.tell(mishap);
            }
        }
        Fate {
            there,
            back,
            ending,
            copy,
        }
    }

    /// Draws how late the next message of a stream is.
    pub(crate) fn delay(&self, runtime: &dyn Runtime) -> Duration {
        self.script().weather.delay(runtime)
    }

    pub(crate) fn requests_cut(&self) -> bool {
        self.0.link.borrow().requests_cut
    }

    pub(crate) fn replies_cut(&self) -> bool {
        self.0.link.borrow().replies_cut
    }

    /// Resolves when requests are not held.
    pub(crate) async fn released(&self) {
        self.until(|link| !link.holding).await;
    }

    /// Resolves when nothing is partitioned.
    pub(crate) async fn healed(&self) {
        self.until(|link| !link.requests_cut && !link.replies_cut)
            .await;
    }

    /// How often streams were cut so far.
    pub(crate) fn cuts(&self) -> u64 {
        self.0.link.borrow().cuts
    }

    /// Resolves when streams were cut more often than `before`.
    pub(crate) async fn cut_after(&self, before: u64) {
        self.until(|link| link.cuts > before).await;
    }

    async fn until(&self, holds: impl Fn(&Link) -> bool) {
        // Nearly always it does, and a subscription costs more than a look.
        if holds(&self.0.link.borrow()) {
            return;
        }
        // The sender is in `self`, so the wait cannot fail.
        drop(self.0.link.subscribe().wait_for(holds).await);
    }
}

impl Script {
    fn ending(&mut self, kind: Kind, runtime: &dyn Runtime) -> Ending {
        if take(&mut self.refusals) {
            return Ending::Refused;
        }
        if kind.changes && take(&mut self.lost_requests) {
            return Ending::RequestLost { shown: true };
        }
        if kind.changes && take(&mut self.lost_replies) {
            return Ending::ReplyLost { shown: true };
        }
        let weather = &self.weather;
        if happens(weather.refusals, runtime) {
            return Ending::Refused;
        }
        if happens(weather.lost_requests, runtime) {
            let shown = happens(weather.resets, runtime);
            return Ending::RequestLost { shown };
        }
        if happens(weather.lost_replies, runtime) {
            let shown = happens(weather.resets, runtime);
            return Ending::ReplyLost { shown };
        }
        Ending::Answered
    }
}

fn take(left: &mut u32) -> bool {
    let some = *left > 0;
    *left = left.saturating_sub(1);
    some
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("link", &*self.0.link.borrow())
            .finish_non_exhaustive()
    }
}
