//! What one kind of server has to bring along to be measured.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use clap::ValueEnum;
use lock_spi::Runtime;

use crate::arms::{Arm, Keys, Site};
use crate::cpu::Process;

/// A server with nothing in it, which ends with this.
pub(crate) trait Backend: Sized {
    /// Its arms.
    type Kind: Kind;

    /// Starts it; told not to wait for its disk, it does so only if it must.
    async fn start(fsync: bool, runtime: &Arc<dyn Runtime>) -> Result<Self>;

    /// Its process, or the one that all of them descend from.
    fn process(&self) -> Result<Process>;

    async fn version(&self) -> Result<String>;

    /// Connects an arm, by connections of its own.
    async fn connect(&self, kind: Self::Kind, site: &Site) -> Result<Arc<dyn Arm>>;
}

/// The arms of a backend, in the order of the tables.
pub(crate) trait Kind: ValueEnum + fmt::Debug + Copy + Eq + Send + Sync + 'static {
    /// How they are compared.
    const COMPARISON: Comparison<Self>;

    fn name(self) -> &'static str;

    /// Whether a single task does it where there is one key for all, one after another, as locks of
    /// one key must.
    fn is_alone(self) -> bool {
        self == Self::COMPARISON.limit
    }

    /// How many writes one operation is: a lock taken and given back is two.
    fn writes(self) -> f64 {
        2.0
    }
}

/// What is compared with what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<K: 'static> {
    /// The server, as table and chart are named.
    pub(crate) file: &'static str,
    /// The server, as people name it.
    pub(crate) server: &'static str,
    /// The package that speaks to it.
    pub(crate) driver: &'static str,
    /// What the server itself costs.
    pub(crate) limit: K,
    /// What the store and the client cannot do without.
    pub(crate) needed: K,
    /// How ratios are meant.
    pub(crate) ratios: &'static str,
    /// What the chart shows.
    pub(crate) caption: &'static str,
    pub(crate) goal: Goal<K>,
    /// What one key for all is to reach.
    pub(crate) hand_overs: &'static [HandOver<K>],
}

/// How often one arm is to hand a key over, next to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver<K> {
    pub(crate) keys: Keys,
    pub(crate) of: K,
    pub(crate) who: K,
    pub(crate) tasks: u32,
    pub(crate) ratio: f64,
}

/// What one arm is to reach of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal<K> {
    pub(crate) of: K,
    pub(crate) who: K,
    pub(crate) ratio: f64,
    /// With more tasks than that there is no goal.
    pub(crate) most_tasks: u32,
}
