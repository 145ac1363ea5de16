//! What befalls a node's network while it works.

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Instant, Runtime};
use sim_runtime::{Faults, Weather};

const LONGEST_LULL: Duration = Duration::from_secs(10);
/// Longer than a session lives.
const LONGEST_PARTITION: Duration = Duration::from_secs(9);
const LONGEST_HOLD: Duration = Duration::from_secs(6);

/// Lets faults happen until `until`, and leaves the network as it should be.
pub(crate) async fn rage(runtime: Arc<dyn Runtime>, faults: Faults, until: Instant) {
    while runtime.now() < until {
        runtime.sleep(runtime.jitter(LONGEST_LULL)).await;
        match runtime.random() % 6 {
            0 => {
                faults.partition();
                runtime.sleep(runtime.jitter(LONGEST_PARTITION)).await;
                faults.heal();
            }
            1 => {
                faults.hold_requests();
                runtime.sleep(runtime.jitter(LONGEST_HOLD)).await;
                faults.release_requests();
            }
            2 => faults.reset_streams(),
            3 => faults.lose_next_replies(few(&*runtime)),
            4 => faults.lose_next_requests(few(&*runtime)),
            _ => faults.fail_next(few(&*runtime)),
        }
    }
    faults.lose_next_replies(0);
    faults.lose_next_requests(0);
    faults.fail_next(0);
    faults.set_weather(Weather::calm());
}

fn few(runtime: &dyn Runtime) -> u32 {
    1 + u32::from(runtime.random().is_multiple_of(2))
        + u32::from(runtime.random().is_multiple_of(4))
}
