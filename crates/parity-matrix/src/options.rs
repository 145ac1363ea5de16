//! What is asked for on the command line.

use std::path::PathBuf;

use clap::Parser;

/// Plays the parity suite on every store there is, and reports where they differ.
#[derive(Clone, Debug, Parser)]
#[command(name = "cargo xtask parity")]
pub(crate) struct Options {
    /// One more cluster of etcd, as `etcd://127.0.0.1:2379`. What is played there is deleted.
    #[arg(long = "etcd", value_name = "URL")]
    pub(crate) etcd: Vec<String>,
    /// One more Postgres, as `postgres://user:password@127.0.0.1:5432/postgres`, reached without
    /// TLS by someone who may make databases. What is played there is dropped.
    #[arg(long = "postgres", value_name = "URL")]
    pub(crate) postgres: Vec<String>,
    /// One more program of etcd, of which a server is started.
    #[arg(long = "etcd-bin", value_name = "PATH")]
    pub(crate) etcd_bin: Vec<PathBuf>,
    /// Only the places whose names contain this: `simulated`, `etcd, one`, `Postgres`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Only the scenarios whose names contain this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) scenario: Vec<String>,
    /// So many scenarios are played on a real server at once: they wait more than they work.
    #[arg(long, default_value_t = 12)]
    pub(crate) jobs: usize,
    /// So many histories of each kind on the simulated etcd.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) histories: u64,
    /// So many histories on each real server.
    #[arg(long, default_value_t = 200)]
    pub(crate) real_histories: u64,
    /// Plays nothing: only looks where the stores differ.
    #[arg(long)]
    pub(crate) observe_only: bool,
    /// Writes nothing: fails when the report is not what was found.
    #[arg(long)]
    pub(crate) check: bool,
    /// Where the report stands.
    #[arg(long, default_value = "docs/parity.md")]
    pub(crate) report: PathBuf,
}

impl Options {
    /// Whether everything that is usual is asked for.
    pub(crate) fn asks_for_all(&self) -> bool {
        self.only.is_empty() && self.scenario.is_empty() && !self.observe_only
    }

    pub(crate) fn wants_place(&self, name: &str) -> bool {
        if self.observe_only {
            return false;
        }
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    pub(crate) fn wants_scenario(&self, name: &str) -> bool {
        self.scenario.is_empty()
            || self
                .scenario
                .iter()
                .any(|part| name.contains(part.as_str()))
    }
}
