use std::str::FromStr;
#[cfg(any(feature = "etcd", feature = "memory", feature = "postgres"))]
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "etcd", feature = "memory", feature = "postgres"))]
use lock_spi::{LockStore, Runtime};
use lock_spi::{Namespace, Owner, Ttl};

#[cfg(any(feature = "etcd", feature = "memory", feature = "postgres"))]
use crate::client::Client;
use crate::error::{Error, Result};

/// A store's URL, taken apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoreUrl {
    pub(super) target: Target,
    pub(super) settings: Settings,
}

/// Which store a URL names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    /// A cluster, by an address and the parameters that only etcd knows.
    Etcd(String),
    /// The embedded store, private or by its name.
    Memory(Option<String>),
    /// A database, by an address and the parameters that only Postgres knows.
    Postgres(String),
}

/// The parameters of a URL.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Settings {
    pub(super) namespace: Option<Namespace>,
    pub(super) owner: Option<Owner>,
    pub(super) ttl: Option<Ttl>,
    pub(super) request_timeout: Option<Duration>,
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
        let Some((scheme, rest)) = address.split_once(':') else {
            return Err(Error::invalid(format!(
                "{address:?} has no scheme; {KNOWN}"
            )));
        };
        let mut target = match scheme {
            "memory" => Target::Memory(Some(rest.to_owned()).filter(|name| !name.is_empty())),
            "etcd" | "etcds" => Target::Etcd(address.to_owned()),
            "postgres" | "postgresql" => Target::Postgres(address.to_owned()),
            _ => {
                return Err(Error::invalid(format!(
                    "scheme {scheme:?} is unknown; {KNOWN}"
                )));
            }
        };
        let mut settings = Settings::default();
        let mut others = Vec::new();
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            if !settings.take(parameter)? {
                others.push(parameter);
            }
        }
        if settings.request_timeout.is_some() && matches!(target, Target::Memory(_)) {
            others.insert(0, "request_timeout");
        }
        match (&mut target, &*others) {
            (_, []) => {}
            (Target::Etcd(url) | Target::Postgres(url), others) => {
                *url = format!("{address}?{}", others.join("&"));
            }
            (Target::Memory(_), [first, ..]) => {
                let name = first.split('=').next().unwrap_or_default();
                return Err(Error::invalid(format!(
                    "parameter {name:?} is unknown; there are namespace, owner and ttl"
                )));
            }
        }
        Ok(Self { target, settings })
    }
}

const KNOWN: &str = "there are memory:, memory:NAME, etcd://, etcds:// and postgres://";

impl Settings {
    /// Takes a parameter that every store has; `false` for any other.
    fn take(&mut self, parameter: &str) -> Result<bool> {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "namespace" => self.namespace = Some(Namespace::new(value)?),
            "owner" => self.owner = Some(Owner::new(value)?),
            "ttl" => self.ttl = Some(Ttl::new(duration(name, value)?)?),
            "request_timeout" => {
                let limit = duration(name, value)?;
                if limit.is_zero() {
                    return Err(Error::invalid(format!("{name} {value:?} leaves no time")));
                }
                self.request_timeout = Some(limit);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A client of the store, as the URL wants it.
    #[cfg(any(feature = "etcd", feature = "memory", feature = "postgres"))]
    pub(super) fn client(self, store: impl LockStore, runtime: Arc<dyn Runtime>) -> Result<Client> {
        let owner = match self.owner {
            Some(owner) => owner,
            None => Owner::new(format!("process {}", std::process::id()))?,
        };
        let mut builder = Client::builder(store).runtime(runtime).owner(owner);
        if let Some(ttl) = self.ttl {
            builder = builder.ttl(ttl);
        }
        builder.build()
    }
}

/// A whole number of `s` or `ms`.
fn duration(name: &str, text: &str) -> Result<Duration> {
    let (digits, unit): (_, fn(u64) -> Duration) = match text.strip_suffix("ms") {
        Some(digits) => (digits, Duration::from_millis),
        None => (text.strip_suffix('s').unwrap_or(""), Duration::from_secs),
    };
    let number = digits.parse().map_err(|_| {
        Error::invalid(format!(
            "{name} {text:?} is not a number of s or ms, like 15s"
        ))
    })?;
    Ok(unit(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_urls_are_private_or_named() {
        let private: StoreUrl = "memory:".parse().unwrap();
        assert_eq!(private.target, Target::Memory(None));
        assert_eq!(private.settings, Settings::default());
        let named: StoreUrl = "memory:demo?namespace=cron&ttl=1500ms&owner=a"
            .parse()
            .unwrap();
        assert_eq!(named.target, Target::Memory(Some("demo".into())));
        assert_eq!(
            named.settings.namespace,
            Some(Namespace::new("cron").unwrap())
        );
        let ttl = named.settings.ttl.unwrap().as_duration();
        assert_eq!(ttl, Duration::from_millis(1500));
    }

    #[test]
    fn etcd_is_given_what_only_it_knows() {
        for (url, target) in [
            ("etcd://a:1,b", "etcd://a:1,b"),
            ("etcds://u:p@a?ttl=9s", "etcds://u:p@a"),
            (
                "etcd://a?tls=true&namespace=n&ca=/c",
                "etcd://a?tls=true&ca=/c",
            ),
        ] {
            let parsed: StoreUrl = url.parse().unwrap();
            assert_eq!(parsed.target, Target::Etcd(target.into()), "{url}");
        }
        let parsed: StoreUrl = "etcd://a?x=1&namespace=n&ttl=9s".parse().unwrap();
        assert_eq!(parsed.settings.namespace, Namespace::new("n").ok());
        assert_eq!(parsed.settings.ttl, Ttl::from_secs(9).ok());
        let parsed: StoreUrl = "etcd://a?request_timeout=1500ms".parse().unwrap();
        let limit = parsed.settings.request_timeout;
        assert_eq!(limit, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn postgres_is_given_what_only_it_knows() {
        for (url, target) in [
            ("postgres://u:p@a:1,b/app", "postgres://u:p@a:1,b/app"),
            (
                "postgresql://a/app?sslmode=require&namespace=n&connect_timeout=2",
                "postgresql://a/app?sslmode=require&connect_timeout=2",
            ),
        ] {
            let parsed: StoreUrl = url.parse().unwrap();
            assert_eq!(parsed.target, Target::Postgres(target.into()), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_named() {
        let table = [
            ("demo", "no scheme"),
            (
                "redis://h",
                "scheme \"redis\" is unknown; there are memory:",
            ),
            ("memory:?colour=red", "parameter \"colour\" is unknown"),
            (
                "memory:?request_timeout=2s",
                "parameter \"request_timeout\" is unknown",
            ),
            (
                "etcd://a?request_timeout=2m",
                "request_timeout \"2m\" is not a number of s or ms",
            ),
            ("etcd://a?request_timeout=0s", "leaves no time"),
            ("memory:?namespace=A", "namespace \"A\""),
            ("memory:?ttl=15", "\"15\" is not a number of s or ms"),
            ("memory:?ttl=s", "\"s\" is not a number"),
            ("memory:?ttl=0s", "out of range"),
            ("memory:?ttl=18446744073709551615s", "out of range"),
        ];
        for (url, words) in table {
            let refused = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(refused.contains(words), "{url}: {refused}");
        }
    }
}
