use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;
use fencelock::Client;
use lock_spi::{LockStore, Namespace, Owner, Runtime, Ttl};
use store_etcd::{EtcdConfig, EtcdLockStore};

use crate::believers::Believers;
use crate::bugs::Planted;
use crate::chronicle::Chronicle;
use crate::cluster::NAMESPACE;
use crate::record::{Lane, What};
use crate::recorded::{Recorded, Watching};

/// Between two tries to open a store.
const AGAIN: Duration = Duration::from_millis(500);

/// A process in a simulated world, with a client of its own; started again after a crash, it is
/// another one of the same name.
///
/// What runs on a node takes time, tasks and chance from it, and nothing of these from elsewhere.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    lane: Lane,
    runtime: Arc<dyn Runtime>,
    client: Client,
    chronicle: Chronicle,
    believers: Believers,
}

/// What a node is started with.
pub(crate) struct Start {
    pub(crate) name: Arc<str>,
    pub(crate) incarnation: u32,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) server: Arc<dyn MetadataStore>,
    pub(crate) ttl: Duration,
    pub(crate) planted: Arc<Planted>,
    pub(crate) chronicle: Chronicle,
    pub(crate) believers: Believers,
    pub(crate) watching: Watching,
}

impl Node {
    /// Starts a node; it tries until its store can be opened.
    pub(crate) async fn start(start: Start) -> Self {
        let Start {
            name,
            incarnation,
            runtime,
            server,
            ttl,
            planted,
            chronicle,
            believers,
            watching,
        } = start;
        let lane = Lane::client(Arc::clone(&name), incarnation);
        chronicle.note(&lane, What::Started);
        let server = planted.server(server);
        // Invariant: the names of namespaces and nodes, and the ttls of plans, are valid.
        let config = EtcdConfig::new(Namespace::new(NAMESPACE).expect("a valid namespace"));
        let store = loop {
            let (server, own) = (Arc::clone(&server), Arc::clone(&runtime));
            match EtcdLockStore::open(server, own, config.clone()).await {
                Ok(store) => break store,
                Err(error) => {
                    chronicle.note(&lane, What::Note(format!("cannot open its store: {error}")));
                    runtime.sleep(AGAIN).await;
                }
            }
        };
        let store: Arc<dyn LockStore> = planted.store(Arc::new(store), &runtime);
        let store = Recorded::new(store, chronicle.clone(), lane.clone(), watching);
        // Invariant: as above.
        let client = Client::builder(store)
            .owner(Owner::new(&*name).expect("a valid owner"))
            .ttl(Ttl::new(ttl).expect("a valid ttl"))
            .runtime(Arc::clone(&runtime))
            .build()
            .expect("a valid client");
        Self(Arc::new(Inner {
            name,
            lane,
            runtime,
            client,
            chronicle,
            believers,
        }))
    }

    /// Its name, which it keeps across crashes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its client.
    #[must_use]
    pub fn locks(&self) -> &Client {
        &self.0.client
    }

    /// Its time, tasks and chance.
    #[must_use]
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.0.runtime
    }

    /// Does nothing for so long, by the node's clock.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn sleep(&self, duration: Duration) {
        self.0.runtime.sleep(duration).await;
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.0.lane
    }

    pub(crate) fn chronicle(&self) -> &Chronicle {
        &self.0.chronicle
    }

    pub(crate) fn believers(&self) -> &Believers {
        &self.0.believers
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.0.lane).finish()
    }
}
