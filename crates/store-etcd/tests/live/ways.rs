//! Ways to a real server, in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lock_spi::{Namespace, Runtime, TokioRuntime};
use store_etcd::{ClientConfig, EtcdClient};

pub(crate) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current())
}

/// One that nobody has used before.
pub(crate) fn fresh_namespace() -> Namespace {
    static USED: AtomicU32 = AtomicU32::new(0);
    let number = USED.fetch_add(1, Ordering::Relaxed);
    Namespace::new(format!("live-{number}")).unwrap()
}

/// How to connect to a member.
pub(crate) fn config(endpoint: &str) -> ClientConfig {
    format!("etcd://{endpoint}").parse().unwrap()
}

pub(crate) async fn connect(endpoint: &str) -> EtcdClient {
    let etcd = EtcdClient::connect(config(endpoint), runtime()).await;
    etcd.expect("the server answers")
}
