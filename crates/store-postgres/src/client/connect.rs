use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_spi::{Effect, Elapsed, Error, ErrorKind, Instant, Result, Runtime};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use super::config::ClientConfig;
use super::handshake::{MARK, attach, pooled, probe};
use super::hosts::{Host, Hosts};
use super::pool::{Permit, Pool};
use super::statement::{Answer, Call, run};
use crate::error::{Failure, Fate, Phase, timed_out};

/// Sent at startup, over whatever the role and the database have as defaults. How durable a commit
/// is stays as it is set: the functions of the schema raise it where they must.
///
/// The last two are for plans that are made while the tables are small, and stay. The functions
/// that are called for every lock rely on them: settings of their own cost a twentieth of a call.
const STARTUP: [(&str, &str); 7] = [
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
];
const APPLICATION_NAME: &str = "fencelock";
/// How long a host may take that is only looked at.
const LOOK_LIMIT: Duration = Duration::from_secs(3);
/// How long a connection may take that no call waits for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to a database: connections of its own, as many as it needs, and no more than it may.
///
/// Clones are handles to the same connections. Nothing is connected before it is needed.
///
/// Each call has one deadline for everything: a free connection, a new one if need be, the
/// statement. A connection on which an answer is missing is closed and never used again. A new
/// connection takes several round trips; where they are long, one is opened in the background for
/// the calls to come.
#[derive(Clone)]
pub struct PostgresClient(Arc<Inner>);

struct Inner {
    config: ClientConfig,
    hosts: Hosts,
    pool: Pool,
    runtime: Arc<dyn Runtime>,
    /// What was last said about the database, so that it is said once.
    warned: Mutex<Option<String>>,
}

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

impl PostgresClient {
    /// Makes a client; what the configuration leaves out is taken from the environment.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` when a variable of the environment makes no sense.
    pub fn new(config: ClientConfig, runtime: Arc<dyn Runtime>) -> Result<Self> {
        let config = config.with_variables(|name| std::env::var(name).ok())?;
        Ok(Self(Arc::new(Inner {
            hosts: Hosts::new(config.hosts.clone()),
            pool: Pool::new(config.most_connections()),
            config,
            runtime,
            warned: Mutex::default(),
        })))
    }

    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.0.runtime
    }

    /// Makes one call within the limit. Where its connection turns out to be broken it is sent once
    /// more, if that can be told apart from the first.
    pub(crate) async fn call<C: Call>(
        &self,
        limit: Duration,
        call: &C,
    ) -> Result<Answer<C::Reply>> {
        let runtime = &self.0.runtime;
        let begun = runtime.now();
        let deadline = begun + limit;
        let mut copy_lost = false;
        let effect = |lost| match lost && C::WRITES {
            true => Effect::Unknown,
            false => Effect::None,
        };
        let permit = self.permit(C::URGENT, deadline).await?;
        let mut last_try = false;
        loop {
            let connection = self.connection(&permit, deadline).await;
            let mut connection =
                connection.map_err(|error| error.with_effect(effect(copy_lost)))?;
            let sent = runtime.now();
            let left = deadline.saturating_since(sent);
            let answer = within(&**runtime, left, run(&mut connection, call, half_of(left))).await;
            let failure = match answer {
                Ok(Ok(reply)) => {
                    self.0.pool.give_back(connection, runtime.now());
                    return Ok(Answer {
                        reply,
                        sent,
                        copy_lost,
                    });
                }
                Ok(Err(error)) => Failure::new(Phase::Calling, error),
                Err(Elapsed) => {
                    // The others may lead to the same dead end.
                    self.0.pool.drop_silent_since(begun);
                    // Or the time went into a new connection, as it would with the next call.
                    self.search_patiently();
                    return Err(timed_out(effect(true)));
                }
            };
            match failure.fate {
                Fate::Keep => self.0.pool.give_back(connection, runtime.now()),
                Fate::Discard => self.0.pool.drop_silent_since(begun),
                Fate::SearchAgain => self.0.pool.clear(),
            }
            copy_lost |= failure.effect == Effect::Unknown;
            let again = failure.is_of_connection() && (C::REPEATABLE || !copy_lost);
            if last_try || !again {
                return Err(Error::from(failure).with_effect(effect(copy_lost)));
            }
            last_try = true;
        }
    }

    async fn permit(&self, is_urgent: bool, deadline: Instant) -> Result<Permit<'_>> {
        let left = deadline.saturating_since(self.0.runtime.now());
        let permit = within(&*self.0.runtime, left, self.0.pool.permit(is_urgent)).await;
        permit.map_err(|elapsed| {
            let message = "all connections to PostgreSQL were busy all the time";
            Error::new(ErrorKind::Unavailable, Effect::None, message).with_source(elapsed)
        })
    }

    async fn connection(&self, _permit: &Permit<'_>, deadline: Instant) -> Result<PgConnection> {
        match self.0.pool.take() {
            Some(connection) => Ok(connection),
            None => {
                let found = self.search(deadline).await;
                if found.is_err() && deadline <= self.0.runtime.now() {
                    self.search_patiently();
                }
                found
            }
        }
    }

    /// Looks for a connection for whoever calls next.
    fn search_patiently(&self) {
        let client = self.clone();
        self.0.runtime.spawn(Box::pin(async move {
            let Inner { pool, runtime, .. } = &*client.0;
            let Some(_alone) = pool.patience() else {
                return;
            };
            let _permit = pool.permit(false).await;
            if !pool.is_empty() {
                return;
            }
            match client.search(runtime.now() + PATIENCE).await {
                Ok(connection) => pool.give_back(connection, runtime.now()),
                Err(error) => tracing::debug!(%error, "no connection, with patience"),
            }
        }));
    }

    /// Connects to the first host that takes writes.
    async fn search(&self, deadline: Instant) -> Result<PgConnection> {
        let mut telling: Option<Error> = None;
        let mut untried = self.0.hosts.in_order();
        while let Some((place, host)) = untried.next() {
            let share = self.share(deadline, untried.len());
            let opened = within(&*self.0.runtime, share, self.open(host)).await;
            let error = match opened.map_err(|_elapsed| timed_out(Effect::None)) {
                Ok(Ok(connection)) => {
                    self.0.hosts.was_of_use(place);
                    return Ok(connection);
                }
                Ok(Err(error)) | Err(error) => error,
            };
            self.0.hosts.was_of_no_use(place);
            telling = match telling {
                Some(earlier) if rank(&earlier) >= rank(&error) => Some(earlier),
                _ => Some(error),
            };
        }
        Err(telling.unwrap_or_else(|| timed_out(Effect::None)))
    }

    /// How long one host may take, with so many more to try.
    fn share(&self, deadline: Instant, more: usize) -> Duration {
        let left = deadline.saturating_since(self.0.runtime.now());
        let parts = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1);
        let most = self.0.config.connect_timeout.unwrap_or(Duration::MAX);
        (left / parts).min(most)
    }

    async fn open(&self, host: &Host) -> Result<PgConnection> {
        let mark = self.mark();
        let mut connection = self.dial(host, &mark).await?;
        if let Some(warning) = attach(&mut connection, &mark).await? {
            let warned = self.0.warned.lock();
            let mut warned = warned.unwrap_or_else(PoisonError::into_inner);
            if warned.as_deref() != Some(&warning) {
                tracing::warn!(%host, warning);
                *warned = Some(warning);
            }
        }
        Ok(connection)
    }

    /// A connection of its own for what is no call, on a server that takes writes; whatever is
    /// stored there.
    pub(crate) async fn dedicated(&self, limit: Duration) -> Result<PgConnection> {
        let deadline = self.0.runtime.now() + limit;
        let mut error = None;
        let mut untried = self.0.hosts.in_order();
        while let Some((_, host)) = untried.next() {
            let share = self.share(deadline, untried.len());
            let opened = within(&*self.0.runtime, share, async {
                let mark = self.mark();
                let mut connection = self.dial(host, &mark).await?;
                probe(&mut connection, &mark).await?;
                Ok(connection)
            });
            match opened
                .await
                .unwrap_or_else(|_| Err(timed_out(Effect::None)))
            {
                Ok(connection) => return Ok(connection),
                Err(told) => error = Some(told),
            }
        }
        Err(error.unwrap_or_else(|| timed_out(Effect::None)))
    }

    /// A connection to each of the hosts, in the order in which they are tried, whatever is stored
    /// there and whether or not it takes writes.
    pub(crate) async fn connect_to_each(&self) -> Vec<(String, Result<PgConnection>)> {
        let mut connections = Vec::new();
        for (_, host) in self.0.hosts.in_order() {
            let limit = self.0.config.connect_timeout.unwrap_or(LOOK_LIMIT);
            let connected = within(&*self.0.runtime, limit.min(LOOK_LIMIT), async {
                let mark = self.mark();
                let mut connection = self.dial(host, &mark).await?;
                probe(&mut connection, &mark).await?;
                Ok(connection)
            });
            let connected = connected.await;
            let connected = connected.unwrap_or_else(|Elapsed| Err(timed_out(Effect::None)));
            connections.push((host.to_string(), connected));
        }
        connections
    }

    async fn dial(&self, host: &Host, mark: &str) -> Result<PgConnection> {
        let options = self.options(host, mark);
        options.connect().await.map_err(|error| {
            let failure = Failure::new(Phase::Connecting, error);
            match failure.kind {
                ErrorKind::Incompatible => {
                    pooled("its startup options were refused").with_source(Error::from(failure))
                }
                _ => failure.into(),
            }
        })
    }

    /// The options of a connection that listens, to the server that was last of use.
    pub(super) fn options_to_listen(&self) -> Option<PgConnectOptions> {
        let (_, host) = self.0.hosts.in_order().next()?;
        Some(self.options(host, &self.mark()))
    }

    fn mark(&self) -> String {
        format!("{:016x}", self.0.runtime.random())
    }

    fn options(&self, host: &Host, mark: &str) -> PgConnectOptions {
        let config = &self.0.config;
        let name = config.application_name.as_deref();
        let mut options = with_password_of(config, host)
            .host(&host.name)
            .port(host.port)
            .application_name(name.unwrap_or(APPLICATION_NAME))
            .options(STARTUP)
            .options([(MARK, mark)])
            .disable_statement_logging();
        if let Some(user) = &config.user {
            options = options.username(user);
        }
        if let Some(database) = &config.database {
            options = options.database(database);
        }
        if let Some(mode) = config.tls.mode {
            options = options.ssl_mode(mode);
        }
        if let Some(path) = &config.tls.root_cert {
            options = options.ssl_root_cert(path);
        }
        if let Some(path) = &config.tls.cert {
            options = options.ssl_client_cert(path);
        }
        if let Some(path) = &config.tls.key {
            options = options.ssl_client_key(path);
        }
        options
    }
}

/// Options with the password: what was configured, else what the password file has for this host.
fn with_password_of(config: &ClientConfig, host: &Host) -> PgConnectOptions {
    let none = PgConnectOptions::new_without_pgpass();
    if let Some(password) = &config.password {
        return none.password(&password.0);
    }
    // Sqlx looks into the file for nothing but a URL that it reads.
    let mut url = format!("postgres:///?port={}", host.port);
    let parts = [
        ("host", Some(&host.name)),
        ("user", config.user.as_ref()),
        ("dbname", config.database.as_ref()),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            url += &format!("&{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        }
    }
    url.parse().unwrap_or(none)
}

async fn within<T>(
    runtime: &dyn Runtime,
    limit: Duration,
    future: impl Future<Output = T> + Send,
) -> Result<T, Elapsed> {
    runtime.timeout(limit, future).await
}

/// How long a statement may wait for a row: so long that its answer still comes in time.
fn half_of(left: Duration) -> i32 {
    // Zero would mean without a limit.
    i32::try_from(left.as_millis() / 2).map_or(i32::MAX, |half| half.max(1))
}

/// Which of two hosts' errors tells more.
fn rank(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Unavailable => 0,
        ErrorKind::NotLeader => 1,
        _ => 2,
    }
}
