//! Fencing of what is kept in etcd: the highest token stands beside the data, and each transaction
//! that writes them compares.
//!
//! The mark of a resource is a key below a prefix that belongs to it, and the token is the key's last
//! part. A resource that has not been written yet needs no preparation. The lock itself may be in
//! this etcd, in another one, or elsewhere.
//!
//! # Examples
//!
//! ```no_run
//! use etcd_client::{Client, Txn, TxnOp};
//! use lock_fence::{FencingToken, etcd};
//!
//! # async fn publish(client: &mut Client, token: FencingToken) -> Result<(), etcd_client::Error> {
//! let mark = "/reports/fence";
//! let mut writes = vec![TxnOp::put("/reports/latest", "42 pages", None)];
//! writes.extend(etcd::remember(mark, token));
//! let written = client
//!     .txn(Txn::new().when([etcd::compare(mark, token)]).and_then(writes))
//!     .await?
//!     .succeeded();
//! if !written {
//!     // The lock has had another holder since; nothing was written.
//! }
//! # Ok(())
//! # }
//! ```

use etcd_client::{Compare, CompareOp, DeleteOptions, TxnOp};
use lock_spi::FencingToken;

/// Holds as long as no token above this one was [remembered](remember) under the mark; an equal one
/// does no harm.
///
/// The keys that begin with `mark`, a slash and a zero are the mark's own.
#[must_use = "it compares nothing until a transaction has it"]
pub fn compare(mark: &str, token: FencingToken) -> Compare {
    // A comparison with a range holds if it does for each key in it, or, where there is none, for
    // one that does not exist. No key that does exist was created in revision 0.
    Compare::create_revision(key(mark, token.as_u64() + 1), CompareOp::Equal, 0)
        .with_range(end(mark))
}

/// What a transaction that [compares](compare) also does if it may: it remembers the token, in the
/// place of all lower ones.
#[must_use = "it remembers nothing until a transaction has it"]
pub fn remember(mark: &str, token: FencingToken) -> [TxnOp; 2] {
    let own = key(mark, token.as_u64());
    let lower = DeleteOptions::new().with_range(own.clone());
    [
        TxnOp::delete(key(mark, 0), Some(lower)),
        TxnOp::put(own, Vec::new(), None),
    ]
}

/// In the order of the tokens; the first digit of each is a zero.
fn key(mark: &str, token: u64) -> String {
    format!("{mark}/{token:020}")
}

/// Behind all keys of the mark.
fn end(mark: &str) -> String {
    format!("{mark}/1")
}
