//! Fencing at the resource: refuse the token that is older than one already seen.
//!
//! A lock service alone cannot keep two processes apart. A holder that is paused, by its garbage
//! collector, its hypervisor or its scheduler, does not notice that its lock has expired, and writes
//! after its successor has begun. No check at the holder helps: the pause may fall between the check
//! and the write. The resource can tell the two apart, because a later grant of a key has a higher
//! [fencing token](FencingToken): every write brings its token, and the resource refuses one that is
//! lower than the highest it has seen.
//!
//! [`HighWaterMark`] is that comparison, for one resource inside a process. Where the resource is in a
//! database, the mark is kept beside the data, and the transaction that writes compares: `postgres`
//! and `etcd`, behind features of these names. A table of one's own does the same in the statement
//! that writes:
//!
//! ```sql
//! UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//! ```
//!
//! No row updated means that the token was stale. It does not matter where the lock is: a resource in
//! Postgres can be protected by a lock in etcd.
//!
//! # Examples
//!
//! ```
//! use lock_fence::HighWaterMark;
//! use lock_spi::FencingToken;
//!
//! let (first, second) = (FencingToken::new(41)?, FencingToken::new(42)?);
//! let mark = HighWaterMark::new();
//!
//! mark.admit(first)?;
//! mark.admit(second)?; // the lock has a new holder
//! mark.admit(second)?; // and writes once more
//!
//! let stale = mark.admit(first).unwrap_err(); // the old holder wakes up
//! assert_eq!(stale.highest, second);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "etcd")]
pub mod etcd;
mod mark;
#[cfg(feature = "postgres")]
pub mod postgres;

pub use lock_spi::FencingToken;
pub use mark::{HighWaterMark, Stale};
