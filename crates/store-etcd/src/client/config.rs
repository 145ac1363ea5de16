use std::fmt;
use std::time::Duration;

use lock_spi::Result;

use super::tls::Tls;
use crate::error::invalid;

/// Where a cluster is, and how to get in; parsed from a URL.
///
/// ```text
/// etcd://[user[:password]@]host[:port][,host[:port]...][?parameter=value&...]
/// ```
///
/// The port is 2379 unless given. User and password are percent-decoded; the rest is taken as it
/// stands. `etcds://` asks for TLS.
///
/// | parameter | means |
/// |---|---|
/// | `tls=true` | TLS, as `etcds://` does |
/// | `ca=PATH` | the authorities to trust, in PEM; the system's unless given |
/// | `cert=PATH`, `key=PATH` | the client's own certificate and key, in PEM |
/// | `ping=SECONDS` | how often a connection in use is asked for a sign of life; 10 unless given, 6 at least |
/// | `allow_unsafe_version=true` | servers 3.5.0 to 3.5.6 are put up with, which can lose data |
///
/// `Debug` shows no password.
///
/// # Examples
///
/// ```
/// use store_etcd::ClientConfig;
///
/// let config: ClientConfig = "etcds://locks:secret@etcd-1,etcd-2:2479?ca=/etc/etcd/ca.pem".parse()?;
/// assert!(!format!("{config:?}").contains("secret"));
/// # Ok::<(), lock_spi::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientConfig {
    /// Each with its port.
    pub(super) hosts: Vec<String>,
    pub(super) credentials: Credentials,
    pub(super) tls: Option<Tls>,
    pub(super) allow_unsafe_version: bool,
    pub(super) request_timeout: Duration,
    pub(super) ping_period: Duration,
    pub(super) watch_silence: Duration,
}

/// Who the client is to the cluster; both or neither when it connects.
#[derive(Clone, Default, Eq, PartialEq)]
pub(super) struct Credentials {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

impl ClientConfig {
    /// The variable of the environment that names the user.
    pub const USER_VARIABLE: &'static str = "FENCELOCK_ETCD_USER";
    /// The variable of the environment that has the password.
    pub const PASSWORD_VARIABLE: &'static str = "FENCELOCK_ETCD_PASSWORD";
    pub(super) const PING_PERIOD: Duration = Duration::from_secs(10);
    /// Servers end connections that are pinged more often than every five seconds.
    pub(super) const LEAST_PING_PERIOD: Duration = Duration::from_secs(6);
    /// Half of it has to do for one member where another can be asked.
    pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
    pub(super) const WATCH_SILENCE: Duration = Duration::from_secs(10);

    /// How long one call may take, with all members that are asked; 1 s unless set. Keep it below a
    /// third of the shortest ttl in use.
    #[must_use]
    pub fn with_request_timeout(mut self, limit: Duration) -> Self {
        self.request_timeout = limit;
        self
    }

    /// After how long a silence a watch is asked for a sign of life; 10 s unless set. It is given up
    /// when it gives none for as long again.
    #[must_use]
    pub fn with_watch_silence(mut self, silence: Duration) -> Self {
        self.watch_silence = silence;
        self
    }

    /// Takes user and password, where the URL leaves them out, from the variables
    /// [`USER_VARIABLE`](Self::USER_VARIABLE) and [`PASSWORD_VARIABLE`](Self::PASSWORD_VARIABLE).
    #[must_use]
    pub fn with_environment(self) -> Self {
        self.with_variables(|name| std::env::var(name).ok())
    }

    fn with_variables(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let Credentials { user, password } = &mut self.credentials;
        if user.is_none() {
            *user = variable(Self::USER_VARIABLE);
        }
        if user.is_some() && password.is_none() {
            *password = variable(Self::PASSWORD_VARIABLE);
        }
        self
    }
}

impl Credentials {
    /// User and password, or neither.
    pub(super) fn pair(&self) -> Result<Option<(&str, &str)>> {
        match (self.user.as_deref(), self.password.as_deref()) {
            (Some(user), Some(password)) => Ok(Some((user, password))),
            (None, _) => Ok(None),
            (Some(_), None) => Err(invalid("there is a user for etcd, but no password")),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        match name {
            ClientConfig::USER_VARIABLE => Some("outer".into()),
            ClientConfig::PASSWORD_VARIABLE => Some("hidden".into()),
            _ => None,
        }
    }

    #[test]
    fn the_environment_fills_in_what_the_url_leaves_out() {
        for (url, user, password) in [
            ("etcd://h", "outer", "hidden"),
            ("etcd://inner@h", "inner", "hidden"),
            ("etcd://inner:own@h", "inner", "own"),
        ] {
            let config: ClientConfig = url.parse().unwrap();
            let config = config.with_variables(variables);
            let pair = config.credentials.pair().unwrap();
            assert_eq!(pair, Some((user, password)), "{url}");
            assert!(!format!("{config:?}").contains(password), "{url}");
        }
    }

    #[test]
    fn nobody_is_fine_and_a_user_without_a_password_is_not() {
        let nobody: ClientConfig = "etcd://h".parse().unwrap();
        let nobody = nobody.with_variables(|_| None);
        assert_eq!(nobody.credentials.pair().unwrap(), None);
        let half: ClientConfig = "etcd://user@h".parse().unwrap();
        let half = half.with_variables(|_| None);
        let refused = half.credentials.pair().unwrap_err();
        assert_eq!(refused.kind(), lock_spi::ErrorKind::InvalidRequest);
    }
}
