//! A small linearizability checker, to cross-check the judgement by commit order.

mod bits;
mod check;
mod history;
mod lock;

pub use check::{Limits, Linear, Model, check};
pub use history::{Call, History};
pub use lock::{LockCall, LockModel, judge, of_key};
