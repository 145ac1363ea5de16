//! A deterministic etcd in memory.
//!
//! [`MockStore`] answers every call of [`MetadataStore`](etcd_kv::MetadataStore) as etcd does:
//! revisions, transactions, leases, watches, compaction. The same calls get the same answers;
//! there is no network, no thread and no chance in it. Tests use it in place of a cluster, and the
//! client's `memory:` store is built on it.
//!
//! Below it stands [`Engine`], a state machine that takes a call through its four phases (sent,
//! applied, replied, delivered) one event at a time. A simulator that schedules these events can
//! lose, delay and repeat requests and answers; `MockStore` takes all four at once.
//!
//! Not modelled are several members, authentication and nested transactions. The half second by which
//! a real server may be late to end a lease is left out too, unless it is asked for:
//! [`Expiry::Scanned`]. One thing is refused that etcd lets pass: a transaction that puts a key and
//! deletes all keys from some key on, that one included.
//!
//! # Examples
//!
//! A key that goes with its lease:
//!
//! ```
//! use etcd_kv::{Consistency, KvError, LeaseId, MetadataStore, PutRequest};
//! use etcd_mock::MockStore;
//!
//! # fn main() -> Result<(), KvError> {
//! # sim_runtime::World::new(0).block_on(async {
//! let store = MockStore::new();
//! let lease = store.lease_grant(LeaseId(7), 5).await?;
//! store.put(PutRequest::new("lock/a", "me").with_lease(lease.id)).await?;
//!
//! store.advance(499); // ticks of 10 ms
//! let found = store.get("lock/a".into(), Consistency::Linearizable).await?;
//! assert!(found.kv.is_some());
//!
//! store.tick();
//! let found = store.get("lock/a".into(), Consistency::Linearizable).await?;
//! assert!(found.kv.is_none());
//! assert_eq!(found.header.revision, 3, "the put made revision 2, the expiry 3");
//! # Ok(())
//! # })
//! # }
//! ```

mod clock;
mod compare;
mod database;
mod engine;
mod error;
mod expiry;
mod facts;
mod history;
mod keep_alive;
mod keyspace;
mod lease;
mod limits;
mod options;
mod request;
mod server;
mod shared;
mod store;
mod stream;
mod time;
mod watch;

pub use engine::{CallId, Effect, Engine, Event, Snapshot};
pub use facts::Fact;
pub use options::{Expiry, Options, Retention};
pub use request::{LeaseGrantRequest, LeaseKeepAliveRequest, Request, Response, StreamId};
pub use store::MockStore;
pub use time::TICK;
