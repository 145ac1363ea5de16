//! A Postgres with the schema of the locks, and the ways to it.

use std::sync::Arc;

use anyhow::{Context, Result};
use lock_spi::{Namespace, Runtime};
use store_postgres::{ClientConfig, PostgresClient, PostgresConfig, PostgresLockStore, schema};
use test_servers::Postgres;

use super::connections::{CONNECTIONS, Connections};
use super::{Kind, advisory, functions, hand_over, raw_pair};
use crate::arms::{Arm, REQUEST_TIMEOUT, Site, clients, guards, store};
use crate::backend::Backend;
use crate::cpu::Process;

const DATABASE: &str = "bench";
/// Every arm has its own connections, and keeps them.
const MOST_CONNECTIONS: &str = "400";
/// Of a client that has one task: one for its calls, and one for its renewals.
const FEW_CONNECTIONS: u32 = 2;
/// What Postgres has unless told otherwise.
const SHARED_BUFFERS: &str = "128MB";

#[derive(Debug)]
pub(crate) struct Server(Postgres);

impl Server {
    /// Of the database of the locks.
    pub(super) fn url(&self) -> String {
        self.0.url(DATABASE)
    }

    /// Runs statements, one after another.
    pub(super) fn run(&self, sql: &str) -> Result<String> {
        self.0.psql(DATABASE, sql)
    }

    /// Connections as the store has them.
    fn client(&self, runtime: &Arc<dyn Runtime>, connections: u32) -> Result<PostgresClient> {
        let config: ClientConfig = self.url().parse()?;
        let config = config.with_connections(connections);
        Ok(PostgresClient::new(config, Arc::clone(runtime))?)
    }

    /// A store in a namespace of the arm's own.
    async fn store(&self, site: &Site, namespace: &str) -> Result<PostgresLockStore> {
        self.store_with(site, namespace, CONNECTIONS).await
    }

    async fn store_with(
        &self,
        site: &Site,
        namespace: &str,
        connections: u32,
    ) -> Result<PostgresLockStore> {
        let client = self.client(&site.runtime, connections)?;
        let config = PostgresConfig::new(Namespace::new(namespace)?);
        let config = config.with_request_timeout(REQUEST_TIMEOUT);
        let runtime = Arc::clone(&site.runtime);
        Ok(PostgresLockStore::connect(client, runtime, config).await?)
    }
}

impl Backend for Server {
    type Kind = Kind;

    async fn start(fsync: bool, runtime: &Arc<dyn Runtime>) -> Result<Self> {
        let postgres = Postgres::builder()
            .fsync(fsync)
            .setting("max_connections", MOST_CONNECTIONS)
            .setting("shared_buffers", SHARED_BUFFERS)
            .start()?;
        postgres.create_database(DATABASE)?;
        let server = Self(postgres);
        schema::migrate(&server.client(runtime, FEW_CONNECTIONS)?).await?;
        server.run(raw_pair::TABLE)?;
        Ok(server)
    }

    fn process(&self) -> Result<Process> {
        Ok(Process::with_children(self.0.process()?))
    }

    async fn version(&self) -> Result<String> {
        let version = self.run("SHOW server_version")?;
        let number = version.split_whitespace().next();
        Ok(number.context("a server without a version")?.to_owned())
    }

    async fn connect(&self, kind: Kind, site: &Site) -> Result<Arc<dyn Arm>> {
        match kind {
            Kind::RawPair => raw_pair::connect(self, site).await,
            Kind::Functions => functions::connect(self, site).await,
            Kind::Store => store::of(self.store(site, "store").await?, site).await,
            Kind::Guards => guards::of(self.store(site, "guards").await?, site),
            Kind::Clients => {
                let own = async || self.store_with(site, "clients", FEW_CONNECTIONS).await;
                clients::of(site, own).await
            }
            Kind::HandOver => hand_over::connect(self, site).await,
            Kind::Advisory => Ok(advisory::on(Connections::open(&self.url()).await?, site)),
        }
    }
}
