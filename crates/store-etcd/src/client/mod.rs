//! The way to a real cluster: [`EtcdClient`], a `MetadataStore` over the crate etcd-client.
//!
//! `config` and `url` say where the cluster is, `member` connects to one member of it, `endpoints`
//! decides which member is asked and how long, `slot` when to connect anew, `requests` and
//! `responses` translate, `errors` has the table of what may have been applied, `keep_alive` keeps
//! the streams of renewals and `watch` the one stream of all watches; `tls` and `handshake` tell
//! certificates that do not fit from servers that do not answer. `examine` looks at a cluster for an
//! operator, with the table of `bugs`.

mod bugs;
mod config;
mod endpoints;
mod errors;
mod examine;
mod handshake;
mod keep_alive;
mod member;
mod requests;
mod responses;
mod slot;
mod store;
mod tls;
mod url;
mod version;
mod watch;

pub use config::ClientConfig;
pub use examine::examine;
pub use store::EtcdClient;
