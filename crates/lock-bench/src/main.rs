//! What locks cost, next to what their servers themselves cost: several arms do the same thing each
//! in its own way, interleaved, so that what slows the machine down slows all of them down.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark talks to the person who runs it"
)]

mod arms;
mod backend;
mod chart;
mod cpu;
mod etcd;
mod hold;
mod machine;
mod options;
mod postgres;
mod report;
mod slice;
mod statistics;
mod suite;

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Parser;
use lock_spi::{Runtime, TokioRuntime};

use crate::backend::{Backend, Comparison, Kind};
use crate::machine::Machine;
use crate::options::Options;

/// What locks cost.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
enum Bench {
    /// The arms against one another on a real etcd.
    Etcd(Options<etcd::Kind>),
    /// The arms against one another on a real Postgres.
    Postgres(Options<postgres::Kind>),
}

fn main() -> Result<()> {
    let bench = Bench::parse();
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    match bench {
        Bench::Etcd(options) => tokio.block_on(run::<etcd::Server>(options.settled())),
        Bench::Postgres(options) => tokio.block_on(run::<postgres::Server>(options.settled())),
    }
}

async fn run<B: Backend>(options: Options<B::Kind>) -> Result<()> {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let Comparison {
        file,
        server: name,
        driver,
        ..
    } = B::Kind::COMPARISON;
    let mut outcomes = Vec::new();
    let mut machine = None;
    for suite in options.suites() {
        println!("{suite} ...");
        let server = B::start(options.server_fsync, &runtime).await?;
        if machine.is_none() {
            let server = format!("{name} {}", server.version().await?);
            machine = Some(Machine::here(server, options.server_fsync, driver));
        }
        outcomes.push(suite.run(&server, &options, &runtime).await?);
    }
    let machine = machine.context("nothing is to be measured")?;
    let document = report::document(&machine, &options, &outcomes);
    fs::create_dir_all(&options.out)?;
    fs::write(options.out.join(format!("{file}.md")), &document)?;
    let chart = chart::svg(&outcomes)?;
    fs::write(options.out.join(format!("{file}.svg")), chart)?;
    println!("\n{document}\nWritten to {}.", options.out.display());
    Ok(())
}
