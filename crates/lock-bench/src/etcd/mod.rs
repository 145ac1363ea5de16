//! Locks on etcd.

mod bare;
mod raw_pair;
mod raw_put;
mod server;
mod server_lock;

use clap::ValueEnum;

pub(crate) use self::server::Server;
use crate::arms::Keys;
use crate::backend::{self, Comparison, Goal, HandOver};

/// What is measured on etcd.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// One put.
    RawPut,
    /// The least transactions that make a lock.
    RawPair,
    /// The transactions of the store, with nothing around them.
    Bare,
    /// The store.
    Store,
    /// The client: guards.
    Guards,
    /// Guards, each task with a client of its own.
    Clients,
    /// etcd's own lock service.
    ServerLock,
}

impl backend::Kind for Kind {
    const COMPARISON: Comparison<Self> = Comparison {
        file: "etcd",
        server: "etcd",
        driver: "etcd-client",
        limit: Self::RawPut,
        needed: Self::Bare,
        ratios: "a lock taken and given back counts as two writes",
        caption: "Writes of locks for each raw put; a lock is two",
        goal: Goal {
            of: Self::Bare,
            who: Self::Guards,
            ratio: 0.90,
            most_tasks: u32::MAX,
        },
        hand_overs: &[
            // With one waiter a hand-over takes at most as long as three puts; a lock is two writes.
            hand_over(Keys::Held, Self::RawPut, 2, 0.67),
            hand_over(Keys::Hot, Self::ServerLock, 2, 20.0),
            hand_over(Keys::Hot, Self::ServerLock, 16, 4.0),
            hand_over(Keys::Hot, Self::ServerLock, 64, 1.4),
        ],
    };

    fn name(self) -> &'static str {
        match self {
            Self::RawPut => "raw put",
            Self::RawPair => "raw pair",
            Self::Bare => "GRANT + DELETE",
            Self::Store => "store",
            Self::Guards => "guards",
            Self::Clients => "guards, a client each",
            Self::ServerLock => "etcd's Lock + Unlock",
        }
    }

    fn writes(self) -> f64 {
        match self {
            Self::RawPut => 1.0,
            _ => 2.0,
        }
    }
}

const fn hand_over(keys: Keys, of: Kind, tasks: u32, ratio: f64) -> HandOver<Kind> {
    HandOver {
        keys,
        of,
        who: Kind::Clients,
        tasks,
        ratio,
    }
}
