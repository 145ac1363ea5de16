//! Locks on Postgres.

mod advisory;
mod connections;
mod functions;
mod raw_pair;
mod server;

use clap::ValueEnum;

pub(crate) use self::server::Server;
use crate::backend::{self, Comparison, Goal};

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
    };

    fn name(self) -> &'static str {
        match self {
            Self::RawPair => "raw pair",
            Self::Functions => "functions",
            Self::Store => "store",
            Self::Guards => "guards",
            Self::Advisory => "advisory locks",
        }
    }
}
