use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error, KvClient, LeaseClient, TlsOptions, WatchClient};
use etcd_kv::{Applied, Consistency, KvError, KvErrorKind};
use lock_spi::Result;

use super::config::ClientConfig;
use super::errors;
use super::handshake::Handshake;
use super::keep_alive::KeepAlives;
use super::tls::{self, Tls};
use super::version;

const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// etcd sends answers of any size; gRPC refuses more than 4 MiB unless told otherwise.
const MAX_ANSWER: usize = 64 << 20;

/// One member of the cluster, connected to.
pub(super) struct Member {
    /// Refused at once where nobody leads: for all that decides something.
    leading: Client,
    /// For what this member can answer by itself.
    alone: Client,
    /// For keys, of the one and the other: each call takes a copy, and the whole clients are dear.
    leading_kv: KvClient,
    alone_kv: KvClient,
    pub(super) keep_alives: Arc<KeepAlives>,
}

/// How to connect to a member.
pub(super) struct Connector {
    options: ConnectOptions,
    /// Over TLS, and otherwise in plain text.
    handshake: Option<Handshake>,
    allow_unsafe_version: bool,
}

impl Connector {
    /// Reads the certificates.
    pub(super) fn new(config: &ClientConfig) -> Result<Self> {
        let tls = config.tls.as_ref();
        Ok(Self {
            options: options(config, tls.map(Tls::load).transpose()?)?,
            handshake: tls.map(Handshake::new).transpose()?,
            allow_unsafe_version: config.allow_unsafe_version,
        })
    }

    /// Connects to a member, after a look at its version.
    pub(super) async fn connect(&self, host: &str) -> Result<Member, KvError> {
        match (self.try_connect(host).await, &self.handshake) {
            (Err(error), Some(handshake)) if was_cut_off(&error) => {
                Err(handshake.verdict(host).await.unwrap_or(error))
            }
            (Err(error), None) if was_cut_off(&error) => Err(speaks_tls_alone(error)),
            (connected, _) => connected,
        }
    }

    async fn try_connect(&self, host: &str) -> Result<Member, KvError> {
        let scheme = match self.handshake {
            Some(_) => "https",
            None => "http",
        };
        let address = format!("{scheme}://{host}");
        let connect = async |require_leader| {
            let options = self.options.clone().with_require_leader(require_leader);
            Client::connect([&address], Some(options)).await
        };
        let alone = connect(false).await.map_err(errors::from_client)?;
        let version = version_of(&alone).await?;
        if !self.allow_unsafe_version {
            version.map_or(Ok(()), |version| version::check(&version))?;
        }
        let leading = connect(true).await.map_err(errors::from_client)?;
        let kv = |client: &Client| client.kv_client().max_decoding_message_size(MAX_ANSWER);
        Ok(Member {
            leading_kv: kv(&leading),
            alone_kv: kv(&alone),
            leading,
            alone,
            keep_alives: Arc::default(),
        })
    }
}

/// Whether there was a connection, and it ended before the first answer.
fn was_cut_off(error: &KvError) -> bool {
    let open = (error.kind(), error.applied()) == (KvErrorKind::Unavailable, Applied::Unknown);
    let client = error.source().and_then(|source| source.downcast_ref());
    // What a server says has no cause.
    open && matches!(client, Some(Error::GRpcStatus(status)) if status.source().is_some())
}

/// So it looks to those who do not speak TLS; but for servers that go down too.
fn speaks_tls_alone(error: KvError) -> KvError {
    let message = "the server hung up before it answered; it may speak TLS alone";
    KvError::new(error.kind(), error.applied(), message).with_source(error)
}

fn options(config: &ClientConfig, tls: Option<TlsOptions>) -> Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .with_keep_alive(config.ping_period, PING_TIMEOUT)
        // Servers bear no pings on a connection that nobody uses.
        .with_keep_alive_while_idle(false)
        // Then there is time left for another member, and it is known that nothing was sent.
        .with_connect_timeout(config.request_timeout / 2)
        .with_auto_token_refresh(true);
    if let Some((user, password)) = config.credentials.pair()? {
        options = options.with_user(user, password);
    }
    if let Some(tls) = tls {
        options = options.with_tls(tls);
    }
    Ok(options)
}

/// The server's version, unless it is not for everybody to know: those that are looked for tell it to
/// all who ask.
async fn version_of(client: &Client) -> Result<Option<String>, KvError> {
    let status = client.maintenance_client().status().await;
    match status.map_err(errors::from_client) {
        Ok(status) => Ok(Some(status.version().to_owned())),
        Err(error) if error.kind() == KvErrorKind::Denied && !tls::is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a member says of itself.
#[derive(Debug)]
pub(super) struct Status {
    /// Unless it is not for everybody to know.
    pub(super) version: Option<String>,
    /// The member that it takes for the leader, 0 for none; unless it is not for everybody to know.
    pub(super) leader: Option<u64>,
    /// Alarms among them.
    pub(super) errors: Vec<String>,
    /// How much of its quota the database has filled, where it tells.
    pub(super) fullness: Option<f64>,
}

fn fullness(size: i64, quota: i64) -> Option<f64> {
    // Exact enough for a part of a whole, and servers before 3.6 tell no quota.
    let whole = u32::try_from(quota >> 20).ok().filter(|whole| *whole > 0)?;
    let part = u32::try_from(size >> 20).ok()?;
    Some(f64::from(part) / f64::from(whole))
}

impl Member {
    /// Asks the member about itself.
    pub(super) async fn status(&self) -> Result<Status, KvError> {
        let status = self.alone.maintenance_client().status().await;
        match status.map_err(errors::from_client) {
            Ok(status) => Ok(Status {
                version: Some(status.version().to_owned()),
                leader: Some(status.leader()),
                errors: status.errors().to_vec(),
                fullness: fullness(status.db_size(), status.db_size_quota()),
            }),
            Err(error) if error.kind() == KvErrorKind::Denied && !tls::is_refusal(&error) => {
                Ok(Status {
                    version: None,
                    leader: None,
                    errors: Vec::new(),
                    fullness: None,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// For keys; only serializable reads are answered by this member alone.
    pub(super) fn kv(&self, consistency: Consistency) -> KvClient {
        match consistency {
            Consistency::Linearizable => self.leading_kv.clone(),
            Consistency::Serializable => self.alone_kv.clone(),
        }
    }

    pub(super) fn lease(&self) -> LeaseClient {
        self.leading.lease_client()
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.leading.watch_client()
    }

    /// Authenticates anew.
    pub(super) async fn refresh_tokens(&self) -> Result<(), Error> {
        self.leading.refresh_token().await?;
        self.alone.refresh_token().await
    }
}
