//! What the tests of the SQL have in common.

mod caller;
mod server;
pub(crate) mod stress;
mod verdict;

pub(crate) use caller::{Caller, INSTANCE, NAMESPACE, code, id};
pub(crate) use server::Database;
pub(crate) use verdict::{Verdict, block_on, cases, holds, passes};
