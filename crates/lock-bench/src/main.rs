//! What locks on etcd cost, next to what etcd itself costs: several arms do the same thing each in
//! its own way, interleaved, so that what slows the machine down slows all of them down.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark talks to the person who runs it"
)]

mod arms;
mod chart;
mod cpu;
mod machine;
mod options;
mod report;
mod server;
mod slice;
mod statistics;
mod suite;

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use lock_spi::{Runtime, TokioRuntime};

use crate::machine::Machine;
use crate::options::EtcdOptions;
use crate::server::Server;

/// What locks cost.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
enum Bench {
    Etcd(EtcdOptions),
}

fn main() -> Result<()> {
    let Bench::Etcd(options) = Bench::parse();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    tokio.block_on(etcd(options.settled()))
}

async fn etcd(options: EtcdOptions) -> Result<()> {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let mut outcomes = Vec::new();
    let mut machine = None;
    for suite in options.suites() {
        println!("{suite} ...");
        let server = Server::start(options.server_fsync)?;
        if machine.is_none() {
            machine = Some(Machine::here(server.version().await?, options.server_fsync));
        }
        outcomes.push(suite.run(&server, &options, &runtime).await?);
    }
    let machine = machine.context("nothing is to be measured")?;
    let document = report::document(&machine, &options, &outcomes);
    fs::create_dir_all(&options.out)?;
    fs::write(options.out.join("etcd.md"), &document)?;
    fs::write(options.out.join("etcd.svg"), chart::svg(&outcomes)?)?;
    println!("\n{document}\nWritten to {}.", options.out.display());
    Ok(())
}
