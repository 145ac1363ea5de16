//! An interface with the shape of etcd: keys with revisions, transactions, leases and watches.
//!
//! [`MetadataStore`] is what the etcd lock store asks of a server. `etcd-mock` implements it in
//! memory, deterministically; an adaptor implements it on a real cluster. What the documentation
//! here leaves open, etcd decides.
//!
//! [`generation()`] and [`bump_generation()`] keep fencing generations of nodes on any such store.

mod error;
mod generation;
mod key;
mod lease;
mod store;
mod stream;
mod txn;
mod watch;

pub use error::{Applied, KvError, KvErrorKind};
pub use generation::{bump_generation, generation};
pub use key::{
    Consistency, DeleteRequest, DeleteResponse, GetResponse, Header, KeyRange, KeyValue, Lease,
    Order, PutRequest, PutResponse, RangeRequest, RangeResponse, prefix_end,
};
pub use lease::{KeepAliveResponse, KeepAliveStream, LeaseGrant, LeaseId, TimeToLive};
pub use store::MetadataStore;
pub use stream::KvStream;
pub use txn::{Compare, CompareOp, Op, OpResponse, Target, Txn, TxnResponse};
pub use watch::{EventKind, WatchEvent, WatchRequest, WatchResponse, WatchStream};
