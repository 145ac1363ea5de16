//! What a server has of one namespace.

use etcd_kv::{KeyValue, MetadataStore, RangeRequest};
use lock_spi::Namespace;
use store_etcd::EtcdClient;

/// A look past the store.
pub(crate) struct Stored {
    pub(crate) etcd: EtcdClient,
    pub(crate) namespace: Namespace,
}

impl Stored {
    /// The key under which a name below the namespace stands.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("/dlock/{}/{name}", self.namespace)
    }

    /// What stands below `prefix`.
    pub(crate) async fn below(&self, prefix: &str) -> Vec<KeyValue> {
        let range = RangeRequest::prefix(self.key(prefix));
        self.etcd.range(range).await.unwrap().kvs
    }

    /// What stands under this very name.
    pub(crate) async fn at(&self, name: &str) -> Option<KeyValue> {
        let range = RangeRequest::key(self.key(name));
        self.etcd.range(range).await.unwrap().kvs.pop()
    }
}
