//! A network between a store object and its server that knows where one request ends and the next
//! one begins, so that it can lose or hold whole ones.

mod connection;
mod messages;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lock_spi::Runtime;
use tokio::net::TcpListener;
use tokio::sync::watch;

use self::connection::carry;

/// One network; clones are handles to it. It lives as long as its runtime.
#[derive(Clone)]
pub(crate) struct Wire {
    shared: Arc<Shared>,
    address: SocketAddr,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Told whenever something changes.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    lose_replies: u32,
    lose_requests: u32,
    holds: bool,
    partitioned: bool,
    /// Counts the times when everything was mended.
    mended: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    Through,
    /// It arrives, and its answer does not.
    ReplyLost,
    Lost,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    pub(crate) async fn to(server: SocketAddr, runtime: Arc<dyn Runtime>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("the address of it");
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changes: watch::Sender::new(()),
        });
        let network = Arc::clone(&shared);
        let spawner = Arc::clone(&runtime);
        runtime.spawn(Box::pin(async move {
            while let Ok((client, _)) = listener.accept().await {
                spawner.spawn(Box::pin(carry(client, server, Arc::clone(&network))));
            }
        }));
        Self { shared, address }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.state());
        self.shared.changes.send_replace(());
    }
}

impl parity_tests::FaultPort for Wire {
    fn lose_next_replies(&self, count: u32) {
        self.change(|state| state.lose_replies = count);
    }

    fn lose_next_requests(&self, count: u32) {
        self.change(|state| state.lose_requests = count);
    }

    fn hold_requests(&self) {
        self.change(|state| state.holds = true);
    }

    fn release_requests(&self) {
        self.change(|state| state.holds = false);
    }

    fn partition(&self) {
        self.change(|state| state.partitioned = true);
    }

    fn heal(&self) {
        self.change(|state| {
            let mended = state.mended + 1;
            *state = State {
                mended,
                ..State::default()
            };
        });
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides about a request that comes along now.
    fn way_of(&self, writes: bool) -> Way {
        let mut state = self.state();
        let State {
            lose_replies,
            lose_requests,
            partitioned,
            ..
        } = &mut *state;
        if *partitioned {
            return Way::Lost;
        }
        for (count, way) in [(lose_requests, Way::Lost), (lose_replies, Way::ReplyLost)] {
            if writes && *count > 0 {
                *count -= 1;
                return way;
            }
        }
        Way::Through
    }

    fn is_partitioned(&self) -> bool {
        self.state().partitioned
    }

    /// Returns once nothing is held.
    async fn released(&self) {
        let mut changes = self.changes.subscribe();
        while self.state().holds {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn mended(&self) -> u64 {
        self.state().mended
    }

    /// Returns once everything was mended since then.
    async fn mended_since(&self, earlier: u64) {
        let mut changes = self.changes.subscribe();
        while self.mended() == earlier {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
