//! Many seeds: on all cores, some of them twice, with what went wrong and what was met.

mod catch;
mod report;
mod seeds;
mod workers;

pub use catch::{Catch, Catches, catches};
pub use report::{Played, Report, Wrong};
pub use seeds::Seeds;
pub use workers::survey;
