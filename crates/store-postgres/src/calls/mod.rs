//! Every function of the schema as a statement: its arguments, and how its answer is read.

mod abandon;
mod close;
mod extend;
mod insert;
mod keep;
mod list;
mod look;
mod notify;
mod open;
mod operators;
mod read;
mod reap;
mod recover;
mod release;
mod revocations;
mod revoke;
mod row;

pub(crate) use abandon::Abandon;
pub(crate) use close::Close;
pub(crate) use extend::Extend;
pub(crate) use insert::{Insert, Inserted};
pub(crate) use keep::{Keep, Kept};
pub(crate) use list::List;
pub(crate) use look::{Look, Sight};
pub(crate) use notify::{Channel, Notify};
pub(crate) use open::{Open, Opened};
pub(crate) use operators::{Diagnose, Diagnosis, Format, ListSessions, ListWaiters};
pub(crate) use read::Read;
pub(crate) use reap::Reap;
pub(crate) use recover::Recover;
pub(crate) use release::Release;
pub(crate) use revocations::Revocations;
pub(crate) use revoke::{Revoke, Revoked};
pub(crate) use row::Wake;
