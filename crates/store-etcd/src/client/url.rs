use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lock_spi::{Effect, Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;

use super::config::{ClientConfig, Credentials};
use super::tls::Tls;

const DEFAULT_PORT: u16 = 2379;

impl FromStr for ClientConfig {
    type Err = Error;

    /// # Errors
    ///
    /// `InvalidRequest`, which names what is wrong and never the password.
    fn from_str(url: &str) -> Result<Self> {
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (secure, authority) = match address.split_once("://") {
            Some(("etcd", authority)) => (false, authority),
            Some(("etcds", authority)) => (true, authority),
            _ => {
                return Err(refused(
                    "an address of etcd begins with etcd:// or etcds://",
                ));
            }
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (credentials(user)?, hosts),
            None => (Credentials::default(), authority),
        };
        let hosts = hosts.split(',').map(with_port).collect::<Result<_>>()?;
        let parameters = Parameters::parse(parameters)?;
        Ok(Self {
            hosts,
            credentials,
            tls: parameters.tls(secure)?,
            allow_unsafe_version: parameters.allow_unsafe_version,
            request_timeout: Self::REQUEST_TIMEOUT,
            ping_period: parameters.ping_period.unwrap_or(Self::PING_PERIOD),
            watch_silence: Self::WATCH_SILENCE,
        })
    }
}

fn credentials(userinfo: &str) -> Result<Credentials> {
    let (user, password) = match userinfo.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (userinfo, None),
    };
    let decode = |text| match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(refused("user and password are text in UTF-8")),
    };
    Ok(Credentials {
        user: Some(decode(user)?).filter(|user: &String| !user.is_empty()),
        password: password.map(decode).transpose()?,
    })
}

fn with_port(host: &str) -> Result<String> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let in_brackets = name.starts_with('[') && name.ends_with(']');
    let strange = |c: char| c.is_whitespace() || matches!(c, '/' | '#' | '@');
    if name.is_empty() || name.contains(strange) || (name.contains(':') && !in_brackets) {
        return Err(refused(format!("{host:?} is no host")));
    }
    let port = match port {
        Some(port) => port
            .parse()
            .map_err(|_| refused(format!("{port:?} is no port")))?,
        None => DEFAULT_PORT,
    };
    Ok(format!("{name}:{port}"))
}

#[derive(Default)]
struct Parameters {
    tls: Option<bool>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    allow_unsafe_version: bool,
    ping_period: Option<Duration>,
}

impl Parameters {
    fn parse(text: &str) -> Result<Self> {
        let mut parameters = Self::default();
        for parameter in text.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "tls" => parameters.tls = Some(switch(name, value)?),
                "ca" => parameters.ca = Some(path(name, value)?),
                "cert" => parameters.cert = Some(path(name, value)?),
                "key" => parameters.key = Some(path(name, value)?),
                "allow_unsafe_version" => parameters.allow_unsafe_version = switch(name, value)?,
                "ping" => parameters.ping_period = Some(ping_period(name, value)?),
                _ => {
                    return Err(refused(format!(
                        "parameter {name:?} is unknown to etcd; there are tls, ca, cert, key, ping \
                         and allow_unsafe_version"
                    )));
                }
            }
        }
        Ok(parameters)
    }

    fn tls(&self, secure: bool) -> Result<Option<Tls>> {
        let identity = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
            (None, None) => None,
            _ => return Err(refused("cert and key go together")),
        };
        let named = self.ca.is_some() || identity.is_some();
        match (self.tls, secure) {
            (Some(false), true) => Err(refused("etcds:// and tls=false contradict each other")),
            (Some(true), _) | (None, true) => Ok(Some(Tls {
                ca: self.ca.clone(),
                identity,
            })),
            // A certificate that would not be used is a mistake, and one that should be noticed.
            _ if named => Err(refused("ca, cert and key are for etcds:// or tls=true")),
            _ => Ok(None),
        }
    }
}

fn switch(name: &str, value: &str) -> Result<bool> {
    let parsed = value.parse();
    parsed.map_err(|_| refused(format!("{name}={value:?} is neither true nor false")))
}

fn ping_period(name: &str, value: &str) -> Result<Duration> {
    let period = value.parse().map(Duration::from_secs);
    let period =
        period.map_err(|_| refused(format!("{name}={value:?} is no number of seconds")))?;
    let least = ClientConfig::LEAST_PING_PERIOD;
    if period < least {
        return Err(refused(format!(
            "{name}={value} is too often: etcd ends connections that are pinged more often than \
             every 5 seconds; {} or more will do",
            least.as_secs()
        )));
    }
    Ok(period)
}

fn path(name: &str, value: &str) -> Result<PathBuf> {
    match value {
        "" => Err(refused(format!("{name} names no file"))),
        _ => Ok(value.into()),
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidRequest, Effect::None, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> ClientConfig {
        url.parse().unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn hosts_have_ports_and_credentials_are_decoded() {
        let config = parsed("etcd://us%40er:p%3Aw%2C@a,b:1,[::1],[fe80::2]:99/");
        assert_eq!(
            config.hosts,
            ["a:2379", "b:1", "[::1]:2379", "[fe80::2]:99"]
        );
        let pair = config.credentials.pair().unwrap();
        assert_eq!(pair, Some(("us@er", "p:w,")));
        assert_eq!(config.tls, None);
        assert!(!config.allow_unsafe_version);
    }

    #[test]
    fn tls_is_asked_for_by_the_scheme_or_by_the_parameter() {
        let plain = Tls {
            ca: None,
            identity: None,
        };
        assert_eq!(parsed("etcds://h").tls, Some(plain.clone()));
        assert_eq!(parsed("etcd://h?tls=true").tls, Some(plain));
        assert_eq!(parsed("etcd://h?tls=false").tls, None);
        let full = parsed("etcds://h?ca=/c.pem&cert=/d.pem&key=/k.pem&allow_unsafe_version=true");
        let tls = full.tls.unwrap();
        assert_eq!(tls.ca, Some("/c.pem".into()));
        assert_eq!(tls.identity, Some(("/d.pem".into(), "/k.pem".into())));
        assert!(full.allow_unsafe_version);
    }

    #[test]
    fn pings_come_as_often_as_asked_for_and_servers_bear() {
        let period = |url| parsed(url).ping_period;
        assert_eq!(period("etcd://h"), Duration::from_secs(10));
        assert_eq!(period("etcd://h?ping=6"), Duration::from_secs(6));
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_shows_no_password() {
        for (url, words) in [
            ("http://h", "begins with etcd://"),
            ("etcd:h", "begins with etcd://"),
            ("etcd://", "\"\" is no host"),
            ("etcd://a,,b", "\"\" is no host"),
            ("etcd://user:secret@a b", "\"a b\" is no host"),
            ("etcd://a/b", "\"a/b\" is no host"),
            ("etcd://::1", "is no host"),
            ("etcd://user:secret@a:port", "\"port\" is no port"),
            ("etcd://a:65536", "is no port"),
            ("etcd://user:secret%FF@a", "in UTF-8"),
            ("etcd://h?colour=red", "parameter \"colour\" is unknown"),
            ("etcd://h?tls=yes", "tls=\"yes\" is neither"),
            ("etcds://h?tls=false", "contradict"),
            ("etcds://h?ca=", "ca names no file"),
            ("etcds://h?cert=/c", "cert and key go together"),
            ("etcd://h?ca=/c", "are for etcds://"),
            ("etcd://h?ping=soon", "ping=\"soon\" is no number"),
            ("etcd://h?ping=5", "ping=5 is too often"),
        ] {
            let error = url.parse::<ClientConfig>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{url}");
            let shown = error.to_string();
            assert!(shown.contains(words), "{url}: {shown}");
            assert!(!shown.contains("secret"), "{url}: {shown}");
        }
    }
}
