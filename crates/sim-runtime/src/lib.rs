//! One seed, one run: unmodified clients and stores in virtual time.
//!
//! A [`World`] owns the clock, the tasks and every random draw. [`World::runtime`] gives each node
//! a [`Runtime`](lock_spi::Runtime) with clocks of its own; [`World::block_on`] runs the nodes until
//! a future is done, jumping over the time in which nobody has anything to do. Which of several
//! tasks that could run runs next is a draw too, so seeds explore interleavings.
//!
//! All draws go onto one [`Tape`], which [`World::replay`] plays once more, edited or not.
//! [`Processes`] pauses and kills nodes, and has their clocks go wrong.
//!
//! [`Faulty`] is the network between a store and its server: late, lossy, partitioned, as its
//! [`Weather`] has it or as a test scripts it by its [`Faults`].
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use sim_runtime::World;
//!
//! let world = World::new(7);
//! let runtime = world.runtime("node");
//! let begun = runtime.now();
//! world.block_on(runtime.sleep(Duration::from_secs(3600)));
//! assert_eq!(runtime.now().saturating_since(begun), Duration::from_secs(3600));
//! ```

mod chance;
mod clock;
mod executor;
mod faults;
mod faulty;
mod node_runtime;
mod nodes;
mod processes;
mod sleep;
mod streams;
mod tape;
mod trace;
mod weather;
mod world;

pub use faults::{Faults, Mishap};
pub use faulty::Faulty;
pub use processes::Processes;
pub use tape::{Draw, Tape};
pub use weather::Weather;
pub use world::World;
