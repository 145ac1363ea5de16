//! The etcd store on a simulated etcd, in virtual time, as a deployment of the suite.

use std::sync::Arc;
use std::time::Duration;

use etcd_mock::{Expiry, MockStore, Options};
use lock_spi::Namespace;
use sim_runtime::{Weather, World};

use crate::deployment::EtcdDeployment;

/// Plays a story on a fresh simulated etcd. Every other seed has a slow network.
pub(crate) fn embedded<S: Future>(
    seed: u64,
    story: impl FnOnce(EtcdDeployment<MockStore>) -> S,
) -> S::Output {
    let world = Arc::new(World::new(seed));
    let options = Options::embedded().with_expiry(Expiry::Exact);
    let calm = Weather::calm();
    let weather = match seed % 2 {
        0 => calm,
        _ => Weather {
            delay: Duration::from_millis(1)..Duration::from_millis(30),
            ..calm
        },
    };
    let deployment = EtcdDeployment {
        runtime: world.runtime("scenario"),
        server: MockStore::in_step_with_options(world.runtime("server"), options),
        namespace: Namespace::new("parity").expect("a namespace"),
        weather,
        process: Box::new({
            let world = Arc::clone(&world);
            move || world.runtime("node")
        }),
    };
    world.block_on(story(deployment))
}
