//! The client on several threads: what virtual time, which has one, cannot show.

use std::sync::{Arc, Barrier};
use std::thread;

use fencelock::spi::{Runtime, TokioRuntime, Ttl};

use crate::common::{Act, Double, Op, acquired, client_of, millis};

/// What began between the client's look at its session and the store's would be in neither account,
/// and be ended as surplus while its holder believes in it.
#[test]
// A thread waits and no task; and nothing tells that something will not happen.
#[allow(clippy::disallowed_methods)]
fn no_attempt_begins_while_a_renewal_sets_out() {
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    tokio.block_on(async {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
        let store = Double::new(Arc::clone(&runtime));
        let client = client_of(&store, &runtime, "a", |builder| builder.ttl(Ttl::MIN));
        let held = acquired(&client, "held").await;
        let gate = Arc::new(Barrier::new(2));
        store.next(Op::KeepAlive, [Act::Block(Arc::clone(&gate))]);
        gate.wait();
        // The client has looked, the store has not, and their thread stands still.
        let before = store.count(Op::Insert);
        let asking = client.clone();
        let other = runtime.run_to_end(async move { acquired(&asking, "other").await });
        let mut begun = 0;
        for _ in 0..20 {
            thread::sleep(millis(5));
            begun = store.count(Op::Insert) - before;
        }
        gate.wait();
        assert_eq!(begun, 0);
        let other = other.await.unwrap();
        assert!(other.check().is_ok() && held.check().is_ok());
    });
}
