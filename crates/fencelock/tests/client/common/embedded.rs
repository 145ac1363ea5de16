use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_kv::MetadataStore;
use etcd_mock::MockStore;
use fencelock::spi::{Owner, Runtime};
use fencelock::{Client, ClientBuilder};
use sim_runtime::World;
use store_etcd::{EtcdConfig, EtcdLockStore};

/// A world with the embedded store.
pub(crate) struct Embedded {
    pub(crate) world: World,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) server: MockStore,
}

impl Embedded {
    pub(crate) fn new() -> Self {
        Self::of_seed(11)
    }

    pub(crate) fn of_seed(seed: u64) -> Self {
        let world = World::new(seed);
        let runtime = world.runtime("server");
        let server = MockStore::in_step_with(Arc::clone(&runtime));
        Self {
            world,
            runtime,
            server,
        }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.block_on(future)
    }

    pub(crate) fn pass(&self, duration: Duration) {
        self.world.block_on(self.runtime.sleep(duration));
    }

    /// A client with a store object of its own, like one in another process.
    pub(crate) fn client(&self, name: &str) -> Client {
        self.client_over(self.server.clone(), name, |builder| builder)
    }

    /// The same, by another way to the server and set up otherwise.
    pub(crate) fn client_over(
        &self,
        way: impl MetadataStore,
        name: &str,
        configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Client {
        let runtime = self.world.runtime(name);
        let opening = EtcdLockStore::open(way, Arc::clone(&runtime), EtcdConfig::default());
        let store = self.world.block_on(opening).unwrap();
        let builder = Client::builder(store).runtime(runtime);
        let builder = builder.owner(Owner::new(name).unwrap());
        configure(builder).build().unwrap()
    }

    /// Everything that is stored but what belongs to the namespace itself.
    pub(crate) fn residue(&self) -> Vec<String> {
        let entries = self.server.entries();
        let keys = entries
            .iter()
            .map(|entry| String::from_utf8_lossy(&entry.key).into_owned());
        let of_sessions = |key: &String| {
            ["/lock/", "/wait/", "/session/", "/epoch/"]
                .iter()
                .any(|part| key.contains(part))
        };
        keys.filter(of_sessions).collect()
    }
}
