//! The one place where stored names and values are written and read.

mod forms;
mod keys;
mod percent;
mod values;

pub(crate) use keys::{KeySpace, Name, range_after};
pub(crate) use values::{
    FORMAT, LockEntry, LockValue, MetaValue, RecoveryValue, RevocationValue, SessionValue, State,
    TicketValue, Value, decode_floor, encode_floor, format_of, revision, token,
};
