//! What a way to a server is told, shared with all of its connections.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;

use crate::proxy::faults::{Faults, Way};
use crate::proxy::pattern::Window;
use crate::proxy::{Cut, Direction, Trap};

/// A way to one server, with its faults.
#[derive(Debug)]
pub(crate) struct Control {
    server: SocketAddr,
    faults: Faults,
    orders: watch::Sender<Order>,
}

/// What the open connections are told; each says it is followed by those that then exist.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Nothing has been ordered yet.
    GoOn,
    /// Connections that have lost bytes are reset.
    Heal,
    /// What servers say disappears from now on.
    Mute,
    /// All connections are reset.
    Reset,
    /// All connections are reset, and there will be no more.
    Stop,
}

impl Control {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self {
            server,
            faults: Faults::default(),
            orders: watch::Sender::new(Order::GoOn),
        }
    }

    pub(crate) fn delay(&self, direction: Direction, delay: Duration) {
        self.faults.delay(direction, delay);
    }

    pub(crate) fn swallow(&self, direction: Direction) {
        self.faults.swallow(direction);
    }

    pub(crate) fn arm(&self, pattern: Vec<u8>, cut: Cut) -> Trap {
        self.faults.arm(pattern, cut)
    }

    pub(crate) fn mute(&self) {
        self.orders.send_replace(Order::Mute);
    }

    pub(crate) fn reset(&self) {
        self.orders.send_replace(Order::Reset);
    }

    pub(crate) fn heal(&self) {
        self.faults.clear();
        self.orders.send_replace(Order::Heal);
    }

    pub(crate) fn stop(&self) {
        self.orders.send_replace(Order::Stop);
    }

    pub(super) const fn server(&self) -> SocketAddr {
        self.server
    }

    pub(super) fn orders(&self) -> watch::Receiver<Order> {
        self.orders.subscribe()
    }

    pub(super) fn way(&self, direction: Direction) -> Way {
        self.faults.way(direction)
    }

    pub(super) fn spring(&self, window: &Window) -> Option<Cut> {
        self.faults.spring(window)
    }
}
