use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error, KvClient, LeaseClient, TlsOptions, WatchClient};
use etcd_kv::{Consistency, KvError, KvErrorKind};
use lock_spi::Result;

use super::config::ClientConfig;
use super::errors;
use super::keep_alive::KeepAlives;
use super::tls::Tls;
use super::version;

/// Servers bear no pings that come more often than every five seconds, and none at all on a
/// connection that nobody uses.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// etcd sends answers of any size; gRPC refuses more than 4 MiB unless told otherwise.
const MAX_ANSWER: usize = 64 << 20;

/// One member of the cluster, connected to.
#[derive(Clone)]
pub(super) struct Member {
    /// Refused at once where nobody leads: for all that decides something.
    leading: Client,
    /// For what this member can answer by itself.
    alone: Client,
    pub(super) keep_alives: Arc<KeepAlives>,
}

/// How to connect to a member.
pub(super) struct Connector {
    options: ConnectOptions,
    scheme: &'static str,
    allow_unsafe_version: bool,
}

impl Connector {
    /// Reads the certificates.
    pub(super) fn new(config: &ClientConfig) -> Result<Self> {
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        Ok(Self {
            scheme: if tls.is_some() { "https" } else { "http" },
            options: options(config, tls)?,
            allow_unsafe_version: config.allow_unsafe_version,
        })
    }

    /// Connects to a member, after a look at its version.
    pub(super) async fn connect(&self, host: &str) -> Result<Member, KvError> {
        let address = format!("{}://{host}", self.scheme);
        let connect = async |require_leader| {
            let options = self.options.clone().with_require_leader(require_leader);
            Client::connect([&address], Some(options)).await
        };
        let alone = connect(false).await.map_err(errors::from_client)?;
        if !self.allow_unsafe_version {
            check_version(&alone).await?;
        }
        Ok(Member {
            leading: connect(true).await.map_err(errors::from_client)?,
            alone,
            keep_alives: Arc::default(),
        })
    }
}

fn options(config: &ClientConfig, tls: Option<TlsOptions>) -> Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .with_keep_alive(PING_EVERY, PING_TIMEOUT)
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

async fn check_version(client: &Client) -> Result<(), KvError> {
    let status = client.maintenance_client().status().await;
    match status.map_err(errors::from_client) {
        Ok(status) => version::check(status.version()),
        // The versions that are looked for tell everybody.
        Err(error) if error.kind() == KvErrorKind::Denied => Ok(()),
        Err(error) => Err(error),
    }
}

impl Member {
    /// For keys; only serializable reads are answered by this member alone.
    pub(super) fn kv(&self, consistency: Consistency) -> KvClient {
        let client = match consistency {
            Consistency::Linearizable => &self.leading,
            Consistency::Serializable => &self.alone,
        };
        client.kv_client().max_decoding_message_size(MAX_ANSWER)
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
