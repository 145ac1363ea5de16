//! What a history is made of. `Debug` writes calls as one writes them in Rust.

use std::fmt;

use lock_spi::Queue;

/// How many processes there are; a session belongs to one of them.
pub(super) const NODES: u8 = 2;

/// One attempt of a session for a key.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct Wish {
    /// Whose it is. Sessions of odd numbers are brief: they live for the store's least ttl.
    pub session: u8,
    /// What it is for.
    pub key: u8,
    /// Tells it from the session's other attempts for this key.
    pub number: u8,
}

/// An attempt, by session, key and number.
#[must_use]
pub const fn wish(session: u8, key: u8, number: u8) -> Wish {
    Wish {
        session,
        key,
        number,
    }
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wish({}, {}, {})", self.session, self.key, self.number)
    }
}

/// What a renewal accounts for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lists {
    /// Every attempt of the session, and every grant that it was told of.
    Everything,
    /// The grants; places are given up.
    Grants,
    /// The attempts; grants are not renewed where they have an end of their own.
    Attempts,
    /// Nothing: everything is given up.
    Nothing,
}

/// What a revoke is to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// The grant of this attempt.
    Grant(Wish),
    /// Whatever stands.
    Whoever,
}

/// One call of a client, or something that happens. What speaks of a grant that nobody was told of
/// is passed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// Opens a session, or opens it again.
    Open(u8),
    /// Opens another process's session, if it is open.
    OpenElsewhere(u8),
    /// Renews a session.
    Keep(u8, Lists),
    /// Closes a session.
    Close(u8),
    /// An operator ends a session, if it is open.
    Kill(u8),
    /// Tries an attempt.
    Insert(Wish, Queue),
    /// Waits for a reason to try again, where there is one.
    Wait(Wish),
    /// Renews a grant.
    Extend(Wish),
    /// Releases a grant, by its session's process or by another.
    Release(Wish, u8),
    /// Gives an attempt up.
    Abandon(Wish),
    /// Revokes; the same number for the same key is the same wish.
    Revoke(u8, u8, Target),
    /// Reads a key, by some process.
    Read(u8, u8),
    /// Lists all locks in pages of this many, by some process.
    List(u32, u8),
    /// Lists the records of a key, by some process.
    Records(u8, u8),
    /// Clears what is dead.
    Reap(u8),
    /// So many milliseconds pass.
    Pass(u32),
}

impl Wish {
    /// The process of its session.
    pub(super) const fn node(self) -> u8 {
        node_of(self.session)
    }
}

/// The process that a session belongs to.
pub(super) const fn node_of(session: u8) -> u8 {
    session % NODES
}

/// The process that is not a session's own.
pub(super) const fn elsewhere(session: u8) -> u8 {
    (session + 1) % NODES
}

/// Whether a session lives for the least ttl only.
pub(super) const fn is_brief(session: u8) -> bool {
    session % 2 == 1
}
