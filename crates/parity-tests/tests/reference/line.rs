//! The way between a reference store and its state, and what can befall a request on it.

use std::sync::{Arc, Mutex, MutexGuard};

use parity_tests::FaultPort;
use tokio::sync::watch;

#[derive(Clone, Debug)]
pub(crate) struct Line {
    losses: Arc<Mutex<Losses>>,
    link: watch::Sender<Link>,
}

#[derive(Debug, Default)]
struct Losses {
    requests: u32,
    replies: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    partitioned: bool,
    holding: bool,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self {
            losses: Arc::default(),
            link: watch::Sender::default(),
        }
    }

    /// Resolves when requests arrive.
    pub(crate) async fn arrival(&self) {
        let mut link = self.link.subscribe();
        link.wait_for(|link| !link.holding).await.unwrap();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.link.borrow().partitioned
    }

    pub(crate) fn loses_request(&self) -> bool {
        take_one(&mut self.losses().requests)
    }

    pub(crate) fn loses_reply(&self) -> bool {
        take_one(&mut self.losses().replies)
    }

    fn losses(&self) -> MutexGuard<'_, Losses> {
        self.losses.lock().unwrap()
    }
}

fn take_one(left: &mut u32) -> bool {
    let any = *left > 0;
    *left = left.saturating_sub(1);
    any
}

impl FaultPort for Line {
    fn lose_next_replies(&self, count: u32) {
        self.losses().replies = count;
    }

    fn lose_next_requests(&self, count: u32) {
        self.losses().requests = count;
    }

    fn hold_requests(&self) {
        self.link.send_modify(|link| link.holding = true);
    }

    fn release_requests(&self) {
        self.link.send_modify(|link| link.holding = false);
    }

    fn partition(&self) {
        self.link.send_modify(|link| link.partitioned = true);
    }

    fn heal(&self) {
        *self.losses() = Losses::default();
        self.link.send_replace(Link::default());
    }
}
