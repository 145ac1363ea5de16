use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_mock::MockStore;
use fencelock::Client;
use fencelock::spi::{Owner, Runtime};
use lock_sim::World;
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
        let runtime = self.world.runtime(name);
        let (server, own) = (self.server.clone(), Arc::clone(&runtime));
        let opening = EtcdLockStore::open(server, own, EtcdConfig::default());
        let store = self.world.block_on(opening).unwrap();
        let builder = Client::builder(store).runtime(runtime);
        builder.owner(Owner::new(name).unwrap()).build().unwrap()
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
