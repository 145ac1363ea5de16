//! Locks on Postgres.

mod advisory;
mod connections;
mod functions;
mod hand_over;
mod raw_pair;
mod server;

use clap::ValueEnum;

pub(crate) use self::server::Server;
use crate::arms::Keys;
use crate::backend::{self, Comparison, Goal, HandOver};

/// What is measured on Postgres.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Kind {
    /// The least statements that make a lock.
    RawPair,
    /// The functions of the store, with nothing around them.
    Functions,
    /// The store.
    Store,
    /// The client: guards.
    Guards,
    /// Guards, each task with a client of its own.
    Clients,
    /// The statements of a hand-over, one after another.
    HandOver,
    /// Postgres's own locks of a session.
    Advisory,
}

impl backend::Kind for Kind {
    const COMPARISON: Comparison<Self> = Comparison {
        file: "postgres",
        server: "Postgres",
        driver: "sqlx",
        limit: Self::RawPair,
        needed: Self::Functions,
        ratios: "a lock taken and given back is one raw pair",
        caption: "Locks taken and given back for each raw pair",
        // At most 15 % over.
        goal: Goal {
            of: Self::RawPair,
            who: Self::Guards,
            ratio: 0.87,
            most_tasks: 16,
        },
        // With one waiter a hand-over takes at most half as long again as its statements.
        hand_overs: &[HandOver {
            keys: Keys::Held,
            of: Self::HandOver,
            who: Self::Clients,
            tasks: 2,
            ratio: 0.67,
        }],
    };

    fn is_alone(self) -> bool {
        matches!(self, Self::RawPair | Self::HandOver)
    }

    fn name(self) -> &'static str {
        match self {
            Self::RawPair => "raw pair",
            Self::Functions => "functions",
            Self::Store => "store",
            Self::Guards => "guards",
            Self::Clients => "guards, a client each",
            Self::HandOver => "release, notify, grant",
            Self::Advisory => "advisory locks",
        }
    }
}
