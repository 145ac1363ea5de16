use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use lock_spi::Result;
use sqlx::postgres::PgSslMode;

use super::hosts::Host;
use super::url::{hosts_of, ssl_mode};

/// Where a database is, and how to get in; parsed from a URL.
///
/// ```text
/// postgres://[user[:password]@]host[:port][,host[:port]...][/database][?parameter=value&...]
/// ```
///
/// `postgresql://` means the same. The port is 5432 unless given. User, password, hosts and database
/// are percent-decoded; a host that begins with `/` is the folder of a socket. Of several hosts the
/// one that takes writes is used.
///
/// | parameter | means |
/// |---|---|
/// | `sslmode` | `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`; `prefer` unless given |
/// | `sslrootcert=PATH` | the authorities to trust, in PEM; the system's unless given |
/// | `sslcert=PATH`, `sslkey=PATH` | the client's own certificate and key, in PEM |
/// | `connect_timeout=SECONDS` | how long one host may take to let us in; 10 s unless given |
/// | `application_name` | what the server shows in `pg_stat_activity`; `fencelock` unless given |
/// | `host`, `port`, `user`, `password`, `dbname` | the same as in the address |
/// | `target_session_attrs` | `read-write` or `primary`; both are what is done anyway |
/// | `connections` | the most connections at once; 16 unless given |
///
/// What the URL leaves out is taken from libpq's variables `PGHOST`, `PGPORT`, `PGUSER`,
/// `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY`, `PGAPPNAME`
/// and `PGCONNECT_TIMEOUT` when a client is made of it; a password that is in neither, from the
/// password file (`PGPASSFILE`, else `.pgpass` in the home folder). `Debug` shows no password.
///
/// # Examples
///
/// ```
/// use store_postgres::ClientConfig;
///
/// let config: ClientConfig =
///     "postgres://locks:secret@pg-1,pg-2:5433/app?sslmode=verify-full".parse()?;
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), lock_spi::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    pub(super) hosts: Vec<Host>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) database: Option<String>,
    pub(super) tls: Tls,
    pub(super) application_name: Option<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) connections: Option<u32>,
}

/// Shown to nobody.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Password(pub(super) String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How connections are secured.
#[derive(Clone, Debug, Default)]
pub(super) struct Tls {
    pub(super) mode: Option<PgSslMode>,
    pub(super) root_cert: Option<PathBuf>,
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

impl ClientConfig {
    /// The most connections at once, unless told otherwise.
    pub const CONNECTIONS: u32 = 16;

    /// The most connections at once; 16 unless set, and at least one. Of several, one is left for
    /// those who renew what they hold. One more listens for notifications once somebody waits.
    #[must_use]
    pub fn with_connections(mut self, most: u32) -> Self {
        self.connections = Some(most);
        self
    }

    pub(super) fn most_connections(&self) -> usize {
        let most = self.connections.unwrap_or(Self::CONNECTIONS).max(1);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// Fills in what was left out.
    pub(super) fn with_variables(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let variable = |name| variable(name).filter(|value: &String| !value.is_empty());
        if self.hosts.is_empty() {
            let host = variable("PGHOST").unwrap_or_else(|| "localhost".into());
            self.hosts = hosts_of(&host, variable("PGPORT").as_deref())?;
        }
        self.user = self.user.or_else(|| variable("PGUSER"));
        self.password = self
            .password
            .or_else(|| variable("PGPASSWORD").map(Password));
        self.database = self.database.or_else(|| variable("PGDATABASE"));
        self.application_name = self.application_name.or_else(|| variable("PGAPPNAME"));
        let path = |name| variable(name).map(PathBuf::from);
        let Tls {
            mode,
            root_cert,
            cert,
            key,
        } = &mut self.tls;
        if mode.is_none() {
            *mode = variable("PGSSLMODE").as_deref().map(ssl_mode).transpose()?;
        }
        *root_cert = root_cert.take().or_else(|| path("PGSSLROOTCERT"));
        *cert = cert.take().or_else(|| path("PGSSLCERT"));
        *key = key.take().or_else(|| path("PGSSLKEY"));
        if self.connect_timeout.is_none()
            && let Some(seconds) = variable("PGCONNECT_TIMEOUT")
        {
            self.connect_timeout = super::url::connect_timeout(&seconds)?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        let value = match name {
            "PGHOST" => "a,b",
            "PGPORT" => "1,2",
            "PGUSER" => "outer",
            "PGPASSWORD" => "hidden",
            "PGDATABASE" => "app",
            "PGSSLMODE" => "require",
            "PGSSLROOTCERT" => "/ca.pem",
            "PGCONNECT_TIMEOUT" => "3",
            _ => return None,
        };
        Some(value.into())
    }

    fn filled(url: &str) -> ClientConfig {
        let config: ClientConfig = url.parse().unwrap();
        config.with_variables(variables).unwrap()
    }

    #[test]
    fn the_environment_fills_in_what_the_url_leaves_out() {
        let config = filled("postgres://");
        let hosts: Vec<_> = config.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a:1", "b:2"]);
        assert_eq!(config.user.as_deref(), Some("outer"));
        assert_eq!(config.database.as_deref(), Some("app"));
        assert!(matches!(config.tls.mode, Some(PgSslMode::Require)));
        assert_eq!(config.tls.root_cert, Some("/ca.pem".into()));
        assert_eq!(config.connect_timeout, Some(Duration::from_secs(3)));
        let shown = format!("{config:?}");
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn the_url_is_stronger_than_the_environment() {
        let config = filled("postgres://inner:own@h/db?sslmode=disable&connect_timeout=5");
        assert_eq!(config.hosts[0].to_string(), "h:5432");
        assert_eq!(config.user.as_deref(), Some("inner"));
        assert_eq!(config.password, Some(Password("own".into())));
        assert_eq!(config.database.as_deref(), Some("db"));
        assert!(matches!(config.tls.mode, Some(PgSslMode::Disable)));
        assert_eq!(config.connect_timeout, Some(Duration::from_secs(5)));
    }

    #[test]
    fn without_either_it_is_this_machine() {
        let config: ClientConfig = "postgres:///app".parse().unwrap();
        let config = config.with_variables(|_| None).unwrap();
        assert_eq!(config.hosts[0].to_string(), "localhost:5432");
        assert_eq!(config.most_connections(), 16);
        assert_eq!(config.with_connections(0).most_connections(), 1);
    }
}
