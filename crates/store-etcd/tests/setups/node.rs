use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Namespace, Result, Runtime, TokioRuntime};
use store_etcd::{ClientConfig, EtcdClient, EtcdConfig, EtcdLockStore};
use test_servers::Etcd;

use crate::common::Node;
use crate::live::keys;

/// Of one call. Nothing here is about speed, and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(5);

/// A store object on a real server.
pub(crate) type RealNode = Node<EtcdClient>;

pub(crate) async fn connect(url: &str) -> Result<EtcdClient> {
    let config: ClientConfig = url.parse()?;
    EtcdClient::connect(config.with_request_timeout(LIMIT), runtime()).await
}

/// A new store object: another process.
pub(crate) async fn node(server: &Etcd) -> RealNode {
    let url = format!("etcd://{}", server.endpoints()[0]);
    node_on(connect(&url).await.unwrap()).await.unwrap()
}

pub(crate) async fn node_on(etcd: EtcdClient) -> Result<RealNode> {
    let config = EtcdConfig::default().with_request_timeout(LIMIT);
    let store = EtcdLockStore::open(etcd.clone(), runtime(), config);
    Ok(Node {
        store: store.await?,
        kv: etcd,
        runtime: runtime(),
    })
}

/// What every lock has to have, wherever it came from.
pub(crate) async fn assert_locks_end_by_themselves(node: &RealNode) {
    keys::assert_locks_end_by_themselves(&node.kv, &Namespace::default()).await;
}

fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime::current())
}
