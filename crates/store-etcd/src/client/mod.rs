//! The way to a real cluster: [`EtcdClient`], a `MetadataStore` over the crate etcd-client.
//!
//! `config` and `url` say where the cluster is, `member` connects to one member of it, `endpoints`
//! decides which member is asked and how long, `requests` and `responses` translate, `errors` has
//! the table of what may have been applied, `keep_alive` and `watch` keep the streams.

mod config;
mod endpoints;
mod errors;
mod keep_alive;
mod member;
mod requests;
mod responses;
mod store;
mod tls;
mod url;
mod version;
mod watch;

pub use config::ClientConfig;
pub use store::EtcdClient;
