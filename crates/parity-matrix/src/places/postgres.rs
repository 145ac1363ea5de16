//! Real servers of Postgres.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, Namespace, Runtime, SessionId, TokioRuntime};
use parity_tests::{Connection, Deployment};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use store_postgres::{PostgresClient, PostgresConfig, PostgresLockStore, schema};
use test_servers::Postgres;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::wire::Wire;

/// A server; each deployment has a database of its own.
#[derive(Debug)]
pub(crate) struct PostgresPlace {
    pub(crate) name: String,
    pub(crate) version: String,
    credentials: Credentials,
    /// Begins the names of all databases of this run.
    prefix: String,
    databases: AtomicU32,
    namespaces: AtomicU32,
    /// The one that the others are copies of.
    template: OnceCell<String>,
    /// The one that deployments share that need no more than a namespace of their own.
    shared: OnceCell<String>,
    /// They end with the place, the standby first.
    _standby: Option<Postgres>,
    _server: Option<Postgres>,
}

/// Where a server is, and as whom it is reached.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// `user` or `user:password`, as in an address.
    user: String,
    server: SocketAddr,
    /// A database that is there.
    database: String,
}

impl Credentials {
    /// Reads `postgres://user:password@host:5432/database`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let rest = url.strip_prefix("postgres://").context("no postgres://")?;
        let rest = rest.split('?').next().unwrap_or_default();
        let (user, rest) = rest.split_once('@').context("no user@")?;
        let (server, database) = rest.split_once('/').context("no database")?;
        let server = match server.contains(':') {
            true => server.to_owned(),
            false => format!("{server}:5432"),
        };
        let mut addresses = server.to_socket_addrs()?;
        Ok(Self {
            user: user.to_owned(),
            server: addresses.next().context("no such host")?,
            database: database.to_owned(),
        })
    }

    fn url(&self, server: SocketAddr, database: &str) -> String {
        let user = &self.user;
        format!("postgres://{user}@{server}/{database}?sslmode=disable")
    }

    async fn operator(&self, database: &str) -> Result<PgConnection> {
        let url = self.url(self.server, database);
        Ok(PgConnection::connect(&url).await?)
    }
}

impl PostgresPlace {
    /// Starts a server, and perhaps a standby that follows it.
    pub(crate) fn start(name: String, with_standby: bool) -> Result<Self> {
        let builder = Postgres::builder().setting("max_connections", "400");
        let server = builder.setting("autovacuum", "off").start()?;
        let standby = with_standby.then(|| server.standby()).transpose()?;
        let version = server.psql("postgres", "SHOW server_version")?;
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        Ok(Self {
            version,
            _standby: standby,
            ..Self::at(name, Credentials::parse(&server.url("postgres"))?)
        }
        .keeping(server))
    }

    fn keeping(mut self, server: Postgres) -> Self {
        self._server = Some(server);
        self
    }

    /// A server that somebody named.
    pub(crate) fn at(name: String, credentials: Credentials) -> Self {
        Self {
            name,
            version: String::new(),
            credentials,
            prefix: format!("parity_{}_", std::process::id()),
            databases: AtomicU32::new(0),
            namespaces: AtomicU32::new(0),
            template: OnceCell::new(),
            shared: OnceCell::new(),
            _standby: None,
            _server: None,
        }
    }

    async fn template(&self) -> Result<&str> {
        let made = self.template.get_or_try_init(async || -> Result<String> {
            let name = format!("{}template", self.prefix);
            self.create_database(&name, "template0").await?;
            let config = self
                .credentials
                .url(self.credentials.server, &name)
                .parse()?;
            let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
            let client = PostgresClient::new(config, runtime)?;
            schema::migrate(&client).await?;
            Ok(name)
        });
        Ok(made.await?)
    }

    async fn create_database(&self, name: &str, template: &str) -> Result<()> {
        let mut operator = self
            .credentials
            .operator(&self.credentials.database)
            .await?;
        let copy = AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"));
        sqlx::raw_sql(copy).execute(&mut operator).await?;
        Ok(())
    }

    /// A deployment with a database of its own.
    pub(crate) async fn deployment(&self) -> Result<PostgresDeployment> {
        let database = self.copy().await?;
        self.in_namespace(database, "parity".to_owned()).await
    }

    /// A deployment that shares its database with others of its kind.
    pub(crate) async fn shared_deployment(&self) -> Result<PostgresDeployment> {
        let shared = self.shared.get_or_try_init(async || self.copy().await);
        let database = shared.await?.clone();
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        self.in_namespace(database, format!("parity-{number}"))
            .await
    }

    /// A database with the schema.
    async fn copy(&self) -> Result<String> {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let database = format!("{}{number}", self.prefix);
        let template = self.template().await?;
        self.create_database(&database, template).await?;
        Ok(database)
    }

    async fn in_namespace(
        &self,
        database: String,
        namespace: String,
    ) -> Result<PostgresDeployment> {
        Ok(PostgresDeployment {
            runtime: Arc::new(TokioRuntime::current()),
            operator: Mutex::new(self.credentials.operator(&database).await?),
            credentials: self.credentials.clone(),
            database,
            namespace: Namespace::new(namespace)?,
        })
    }

    pub(crate) async fn clear(&self) -> Result<()> {
        if self._server.is_some() {
            return Ok(());
        }
        let mut operator = self
            .credentials
            .operator(&self.credentials.database)
            .await?;
        let count = self.databases.load(Ordering::Relaxed);
        let copies = (0..count).map(|number| format!("{}{number}", self.prefix));
        for name in copies.chain(self.template.get().cloned()) {
            let drop = AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            sqlx::raw_sql(drop).execute(&mut operator).await?;
        }
        Ok(())
    }
}

/// One database, whose store objects are behind networks that fail on demand.
pub(crate) struct PostgresDeployment {
    runtime: Arc<dyn Runtime>,
    credentials: Credentials,
    database: String,
    namespace: Namespace,
    /// The operator's own way to the server.
    operator: Mutex<PgConnection>,
}

impl PostgresDeployment {
    pub(crate) async fn operator(&self) -> MutexGuard<'_, PgConnection> {
        self.operator.lock().await
    }

    /// Others are copying databases beside, so that it may take several tries.
    async fn open(&self, client: &PostgresClient) -> PostgresLockStore {
        let mut tries = 0;
        loop {
            let config = PostgresConfig::new(self.namespace.clone());
            let runtime = Arc::clone(&self.runtime);
            match PostgresLockStore::connect(client.clone(), runtime, config).await {
                Ok(store) => return store,
                Err(error) if error.is_retryable() && tries < 10 => tries += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Changes one row, as an operator.
    async fn change(&self, what: &str, statement: &'static str, key: &str) {
        let answer = sqlx::query(statement)
            .bind(self.namespace.as_str())
            .bind(key)
            .execute(&mut *self.operator().await)
            .await;
        match answer {
            Ok(changed) => assert_eq!(changed.rows_affected(), 1, "{what}"),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[async_trait]
impl Deployment for PostgresDeployment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        let wire = Wire::to(self.credentials.server, Arc::clone(&self.runtime)).await;
        let url = self.credentials.url(wire.address(), &self.database);
        let config = match url.parse() {
            Ok(config) => config,
            Err(error) => panic!("{error:?}"),
        };
        match PostgresClient::new(config, Arc::clone(&self.runtime)) {
            Ok(client) => Connection {
                store: Arc::new(self.open(&client).await),
                faults: Some(Arc::new(wire)),
            },
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn end_session(&self, session: SessionId) {
        let session = session.as_i64().to_string();
        let end = "UPDATE dlock.sessions SET closed_at = clock_timestamp() \
                    WHERE namespace = $1 AND session = $2::bigint AND closed_at IS NULL";
        self.change("a session that is open", end, &session).await;
    }

    async fn delete_lock(&self, key: &LockKey) {
        let delete = "UPDATE dlock.locks SET held = false \
                       WHERE namespace = $1 AND lock_key = $2 AND held";
        self.change("a lock that is held", delete, key.as_str())
            .await;
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        let raised = sqlx::query(
            "INSERT INTO dlock.locks (namespace, lock_key, floor) VALUES ($1, $2, $3) \
             ON CONFLICT (namespace, lock_key) DO UPDATE SET floor = EXCLUDED.floor",
        )
        .bind(self.namespace.as_str())
        .bind(key.as_str())
        .bind(floor.as_i64())
        .execute(&mut *self.operator().await)
        .await;
        assert!(raised.is_ok(), "{raised:?}");
    }

    async fn residue(&self) -> Vec<String> {
        let told = sqlx::query_scalar(
            "SELECT 'session ' || session FROM dlock.sessions \
              WHERE namespace = $1 AND closed_at IS NULL AND expires_at > clock_timestamp() \
              UNION ALL SELECT 'lock ' || lock_key FROM dlock.grants WHERE namespace = $1 \
              UNION ALL SELECT 'place ' || lock_key || ' ' || attempt FROM dlock.places \
              WHERE namespace = $1",
        )
        .bind(self.namespace.as_str())
        .fetch_all(&mut *self.operator().await)
        .await;
        match told {
            Ok(residue) => residue,
            Err(error) => panic!("{error}"),
        }
    }
}
