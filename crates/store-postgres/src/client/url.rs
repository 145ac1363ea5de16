use std::borrow::Cow;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use lock_spi::{Effect, Error, ErrorKind, Result};
use percent_encoding::percent_decode_str;
use sqlx::postgres::PgSslMode;

use super::config::{ClientConfig, Password};
use super::hosts::Host;

const DEFAULT_PORT: u16 = 5432;

impl FromStr for ClientConfig {
    type Err = Error;

    /// # Errors
    ///
    /// `InvalidRequest`, which names what is wrong and never the password.
    fn from_str(url: &str) -> Result<Self> {
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        let Some(("postgres" | "postgresql", rest)) = address.split_once("://") else {
            return Err(refused(
                "an address of PostgreSQL begins with postgres:// or postgresql://",
            ));
        };
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let mut config = Self {
            user: given(&decoded(user)?),
            password: given(&decoded(password)?).map(Password),
            database: given(&decoded(database)?),
            ..Self::default()
        };
        if !hosts.is_empty() {
            config.hosts = hosts.split(',').map(with_port).collect::<Result<_>>()?;
        }
        let mut named = (None, None);
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decoded(value)?;
            match name {
                "host" => named.0 = Some(value.into_owned()),
                "port" => named.1 = Some(value.into_owned()),
                _ => config.take(name, &value)?,
            }
        }
        match named {
            (None, None) => {}
            (Some(host), port) if config.hosts.is_empty() => {
                config.hosts = hosts_of(&host, port.as_deref())?;
            }
            _ => {
                return Err(refused(
                    "hosts and ports stand in the address or in the parameters, not in both",
                ));
            }
        }
        Ok(config)
    }
}

impl ClientConfig {
    fn take(&mut self, name: &str, value: &str) -> Result<()> {
        let path = || match value {
            "" => Err(refused(format!("{name} names no file"))),
            _ => Ok(Some(PathBuf::from(value))),
        };
        match name {
            "user" => self.user = given(value),
            "password" => self.password = given(value).map(Password),
            "dbname" => self.database = given(value),
            "application_name" => self.application_name = given(value),
            "sslmode" => self.tls.mode = Some(ssl_mode(value)?),
            "sslrootcert" => self.tls.root_cert = path()?,
            "sslcert" => self.tls.cert = path()?,
            "sslkey" => self.tls.key = path()?,
            "connect_timeout" => self.connect_timeout = connect_timeout(value)?,
            "connections" => self.connections = Some(number(name, value)?),
            "target_session_attrs" if matches!(value, "read-write" | "primary") => {}
            "target_session_attrs" => {
                return Err(refused(format!(
                    "target_session_attrs={value:?} will not do: locks need read-write"
                )));
            }
            _ => {
                return Err(refused(format!(
                    "parameter {name:?} is unknown to the Postgres store; there are sslmode, \
                     sslrootcert, sslcert, sslkey, connect_timeout, application_name, host, port, \
                     user, password, dbname, target_session_attrs and connections"
                )));
            }
        }
        Ok(())
    }
}

/// Hosts and ports as libpq has them: lists, the second as long as the first, or of one entry.
pub(super) fn hosts_of(hosts: &str, ports: Option<&str>) -> Result<Vec<Host>> {
    let hosts: Vec<_> = hosts.split(',').collect();
    let ports: Vec<_> = ports.map_or_else(Vec::new, |ports| ports.split(',').collect());
    if ports.len() > 1 && ports.len() != hosts.len() {
        return Err(refused(format!(
            "there are {} ports for {} hosts",
            ports.len(),
            hosts.len()
        )));
    }
    let port_of = |place: usize| match ports.get(place).or(ports.first()) {
        Some(&port) if !port.is_empty() => port_number(port),
        _ => Ok(DEFAULT_PORT),
    };
    let hosts = hosts.iter().enumerate();
    hosts
        .map(|(place, name)| host(name, port_of(place)?))
        .collect()
}

fn with_port(text: &str) -> Result<Host> {
    // The colons of an IPv6 address stand in brackets.
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port_number(port)?),
        _ => (text, DEFAULT_PORT),
    };
    if name.contains(':') && !(name.starts_with('[') && name.ends_with(']')) {
        return Err(refused(format!("{text:?} is no host")));
    }
    host(&decoded(name)?, port)
}

fn host(name: &str, port: u16) -> Result<Host> {
    let plain = name.trim_start_matches('[').trim_end_matches(']');
    let is_folder = plain.starts_with('/');
    let strange = |c: char| c.is_whitespace() || (!is_folder && matches!(c, '/' | '#' | '@'));
    if plain.is_empty() || plain.contains(strange) {
        return Err(refused(format!("{name:?} is no host")));
    }
    Ok(Host {
        name: plain.into(),
        port,
    })
}

fn port_number(text: &str) -> Result<u16> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| refused(format!("{text:?} is no port")))
}

pub(super) fn ssl_mode(text: &str) -> Result<PgSslMode> {
    let mode = text.parse();
    mode.map_err(|_| refused(format!("{text:?} is no sslmode")))
}

/// As in libpq, zero means that there is no limit.
pub(super) fn connect_timeout(text: &str) -> Result<Option<Duration>> {
    let seconds: u32 = number("connect_timeout", text)?;
    Ok((seconds > 0).then(|| Duration::from_secs(seconds.into())))
}

fn number(name: &str, text: &str) -> Result<u32> {
    let number = text.parse();
    number.map_err(|_| refused(format!("{name}={text:?} is no number")))
}

fn decoded(text: &str) -> Result<Cow<'_, str>> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map_err(|_| refused("what is percent-encoded is text in UTF-8"))
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
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

    fn hosts(url: &str) -> Vec<String> {
        let config = parsed(url);
        config.hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hosts_have_ports_and_everything_is_decoded() {
        let config = parsed("postgresql://us%40er:p%3Aw%2C@a,b:1,[::1],[fe80::2]:99/my%20db");
        let shown: Vec<_> = config.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["a:5432", "b:1", "::1:5432", "fe80::2:99"]);
        assert_eq!(config.user.as_deref(), Some("us@er"));
        assert_eq!(config.password, Some(Password("p:w,".into())));
        assert_eq!(config.database.as_deref(), Some("my db"));
    }

    #[test]
    fn hosts_may_be_folders_and_may_stand_in_parameters() {
        assert_eq!(hosts("postgres://%2Frun%2Fpg/db"), ["/run/pg:5432"]);
        assert_eq!(hosts("postgres:///db?host=/run/pg&port=7"), ["/run/pg:7"]);
        assert_eq!(hosts("postgres://?host=a,b&port=1,2"), ["a:1", "b:2"]);
        assert_eq!(hosts("postgres://?host=a,b&port=1"), ["a:1", "b:1"]);
    }

    #[test]
    fn parameters_are_libpqs() {
        let config = parsed(
            "postgres://h/db?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem\
             &connect_timeout=4&application_name=billing%20locks&target_session_attrs=read-write\
             &connections=3",
        );
        assert!(matches!(config.tls.mode, Some(PgSslMode::VerifyFull)));
        assert_eq!(config.tls.root_cert, Some("/ca.pem".into()));
        assert_eq!(config.tls.cert, Some("/c.pem".into()));
        assert_eq!(config.tls.key, Some("/k.pem".into()));
        assert_eq!(config.connect_timeout, Some(Duration::from_secs(4)));
        assert_eq!(config.application_name.as_deref(), Some("billing locks"));
        assert_eq!(config.connections, Some(3));
        assert_eq!(
            parsed("postgres://h?connect_timeout=0").connect_timeout,
            None
        );
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_shows_no_password() {
        for (url, words) in [
            ("mysql://h", "begins with postgres://"),
            ("postgres:h", "begins with postgres://"),
            ("postgres://a,,b", "\"\" is no host"),
            ("postgres://user:secret@a b", "\"a b\" is no host"),
            ("postgres://::1", "is no host"),
            ("postgres://user:secret@a:port", "\"port\" is no port"),
            ("postgres://a:0", "is no port"),
            ("postgres://user:secret%FF@a", "in UTF-8"),
            ("postgres://h?colour=red", "parameter \"colour\" is unknown"),
            ("postgres://h?options=-c%20x=y", "\"options\" is unknown"),
            ("postgres://h?sslmode=maybe", "no sslmode"),
            ("postgres://h?sslrootcert=", "names no file"),
            ("postgres://h?connect_timeout=soon", "is no number"),
            ("postgres://h?target_session_attrs=standby", "read-write"),
            ("postgres://h?host=a", "not in both"),
            ("postgres://h?port=1", "not in both"),
            ("postgres://?host=a,b,c&port=1,2", "2 ports for 3 hosts"),
        ] {
            let error = url.parse::<ClientConfig>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{url}");
            let shown = error.to_string();
            assert!(shown.contains(words), "{url}: {shown}");
            assert!(!shown.contains("secret"), "{url}: {shown}");
        }
    }
}
