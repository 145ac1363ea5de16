//! The migrations, in order. What was released is never changed: the database remembers it.

/// What leads from one format to the next.
pub(super) struct Step {
    /// The format that it makes.
    pub(super) version: u32,
    /// In the order in which they are applied.
    pub(super) parts: &'static [&'static str],
}

/// The table that remembers the migrations; applied with each of them.
pub(super) const HISTORY: &str = include_str!("../../migrations/history.sql");

pub(super) const MIGRATIONS: [Step; 1] = [Step {
    version: 1,
    parts: &[
        include_str!("../../migrations/0001/tables.sql"),
        include_str!("../../migrations/0001/rules.sql"),
        include_str!("../../migrations/0001/tokens.sql"),
        include_str!("../../migrations/0001/sessions.sql"),
        include_str!("../../migrations/0001/queue.sql"),
        include_str!("../../migrations/0001/locks.sql"),
        include_str!("../../migrations/0001/batches.sql"),
        include_str!("../../migrations/0001/revocations.sql"),
        include_str!("../../migrations/0001/reads.sql"),
        include_str!("../../migrations/0001/upkeep.sql"),
        include_str!("../../migrations/0001/diagnosis.sql"),
        // The last one: it takes from everybody what came before.
        include_str!("../../migrations/0001/rights.sql"),
    ],
}];
