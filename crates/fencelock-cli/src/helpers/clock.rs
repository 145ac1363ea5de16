//! A clock that two processes of one machine share, and that goes on during suspend where it can.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_SUSPEND: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const COUNTS_SUSPEND: ClockId = ClockId::Monotonic;

/// The present, counted from an origin that all processes of the machine have.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(COUNTS_SUSPEND);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
