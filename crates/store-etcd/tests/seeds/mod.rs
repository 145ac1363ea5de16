//! Which runs of a test that draws are made.

use std::ops::Range;

/// The one that `FENCELOCK_SEED` names, or the first so many: `FENCELOCK_SEEDS`, else `count`.
pub(crate) fn seeds(count: u64) -> Range<u64> {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().expect("seeds are numbers"))
    };
    match number("FENCELOCK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FENCELOCK_SEEDS").unwrap_or(count),
    }
}
