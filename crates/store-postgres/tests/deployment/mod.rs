//! What the suite needs of a deployment, on a real server of Postgres.

use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use lock_spi::{FencingToken, LockKey, Namespace, Runtime, SessionId};
use parity_tests::{Connection, Deployment};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use store_postgres::{PostgresClient, PostgresConfig, PostgresLockStore, schema};
use tokio::sync::{Mutex, MutexGuard};

use crate::wire::Wire;

/// One database on a server, behind networks that fail on demand.
pub(crate) struct PostgresDeployment {
    runtime: Arc<dyn Runtime>,
    server: SocketAddr,
    /// Who the store objects are.
    user: &'static str,
    database: String,
    namespace: Namespace,
    /// The operator's own way to the server.
    operator: Mutex<PgConnection>,
}

impl PostgresDeployment {
    /// `database` has the schema, and nobody has used it.
    pub(crate) async fn new(
        runtime: Arc<dyn Runtime>,
        server: SocketAddr,
        user: &'static str,
        database: String,
    ) -> Self {
        let operator = PgConnection::connect(&url("postgres", server, &database)).await;
        Self {
            runtime,
            server,
            user,
            database,
            namespace: Namespace::new("parity").expect("a namespace"),
            operator: Mutex::new(operator.expect("the server answers")),
        }
    }

    /// Other scenarios are copying databases beside, so that it may take several tries.
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

    async fn operator(&self) -> MutexGuard<'_, PgConnection> {
        self.operator.lock().await
    }
}

pub(crate) fn url(user: &str, server: SocketAddr, database: &str) -> String {
    format!("postgres://{user}@{server}/{database}?sslmode=disable")
}

/// Makes the schema in a database that has none.
pub(crate) async fn make_schema(runtime: &Arc<dyn Runtime>, url: &str) {
    let config = url.parse().expect("a URL");
    let client = PostgresClient::new(config, Arc::clone(runtime)).expect("a client");
    schema::migrate(&client).await.expect("the schema is made");
}

#[async_trait]
impl Deployment for PostgresDeployment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    async fn connect(&self) -> Connection {
        let wire = Wire::to(self.server, Arc::clone(&self.runtime)).await;
        let url = url(self.user, wire.address(), &self.database);
        let config = url.parse().expect("a URL");
        let client = PostgresClient::new(config, Arc::clone(&self.runtime));
        let client = client.expect("a client");
        Connection {
            store: Arc::new(self.open(&client).await),
            faults: Some(Arc::new(wire)),
        }
    }

    async fn end_session(&self, session: SessionId) {
        let ended = sqlx::query(
            "UPDATE dlock.sessions SET closed_at = clock_timestamp() \
              WHERE namespace = $1 AND session = $2 AND closed_at IS NULL",
        )
        .bind(self.namespace.as_str())
        .bind(session.as_i64())
        .execute(&mut *self.operator().await)
        .await
        .expect("an answer");
        assert_eq!(ended.rows_affected(), 1, "a session that is open");
    }

    async fn delete_lock(&self, key: &LockKey) {
        let deleted = sqlx::query(
            "UPDATE dlock.locks SET held = false \
              WHERE namespace = $1 AND lock_key = $2 AND held",
        )
        .bind(self.namespace.as_str())
        .bind(key.as_str())
        .execute(&mut *self.operator().await)
        .await
        .expect("an answer");
        assert_eq!(deleted.rows_affected(), 1, "a lock that is held");
    }

    async fn raise_floor(&self, key: &LockKey, floor: FencingToken) {
        sqlx::query(
            "INSERT INTO dlock.locks (namespace, lock_key, floor) VALUES ($1, $2, $3) \
             ON CONFLICT (namespace, lock_key) DO UPDATE SET floor = EXCLUDED.floor",
        )
        .bind(self.namespace.as_str())
        .bind(key.as_str())
        .bind(floor.as_i64())
        .execute(&mut *self.operator().await)
        .await
        .expect("an answer");
    }

    async fn residue(&self) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT 'session ' || session FROM dlock.sessions \
              WHERE namespace = $1 AND closed_at IS NULL AND expires_at > clock_timestamp() \
              UNION ALL SELECT 'lock ' || lock_key FROM dlock.grants WHERE namespace = $1 \
              UNION ALL SELECT 'place ' || lock_key || ' ' || attempt FROM dlock.places \
              WHERE namespace = $1",
        )
        .bind(self.namespace.as_str())
        .fetch_all(&mut *self.operator().await)
        .await
        .expect("an answer")
    }
}
