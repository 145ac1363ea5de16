use std::str::FromStr;
use std::time::Duration;

use lock_spi::{Namespace, Owner, Ttl};

use crate::error::{Error, Result};

/// A store's URL, taken apart.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct StoreUrl {
    pub(super) target: Target,
    pub(super) settings: Settings,
}

/// Which store a URL names.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Target {
    Etcd,
    /// The embedded store, private or by its name.
    Memory(Option<String>),
    Postgres,
}

/// The parameters of a URL.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Settings {
    pub(super) namespace: Option<Namespace>,
    pub(super) owner: Option<Owner>,
    pub(super) ttl: Option<Ttl>,
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
        let target = match scheme {
            "memory" => Target::Memory(Some(rest.to_owned()).filter(|name| !name.is_empty())),
            "etcd" | "etcds" => Target::Etcd,
            "postgres" | "postgresql" => Target::Postgres,
            _ => {
                return Err(Error::invalid(format!(
                    "scheme {scheme:?} is unknown; {KNOWN}"
                )));
            }
        };
        let settings = match target {
            Target::Memory(_) => parameters.parse()?,
            // Taken apart together with the address, by the store that is not there yet.
            Target::Etcd | Target::Postgres => Settings::default(),
        };
        Ok(Self { target, settings })
    }
}

const KNOWN: &str = "there are memory:, memory:NAME, etcd://, etcds:// and postgres://";

impl FromStr for Settings {
    type Err = Error;

    fn from_str(parameters: &str) -> Result<Self> {
        let mut settings = Self::default();
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "namespace" => settings.namespace = Some(Namespace::new(value)?),
                "owner" => settings.owner = Some(Owner::new(value)?),
                "ttl" => settings.ttl = Some(Ttl::new(duration(value)?)?),
                _ => {
                    return Err(Error::invalid(format!(
                        "parameter {name:?} is unknown; there are namespace, owner and ttl"
                    )));
                }
            }
        }
        Ok(settings)
    }
}

/// A whole number of `s` or `ms`.
fn duration(text: &str) -> Result<Duration> {
    let (digits, unit): (_, fn(u64) -> Duration) = match text.strip_suffix("ms") {
        Some(digits) => (digits, Duration::from_millis),
        None => (text.strip_suffix('s').unwrap_or(""), Duration::from_secs),
    };
    let number = digits.parse().map_err(|_| {
        Error::invalid(format!("ttl {text:?} is not a number of s or ms, like 15s"))
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
    fn what_cannot_be_understood_is_refused_and_named() {
        let table = [
            ("demo", "no scheme"),
            (
                "redis://h",
                "scheme \"redis\" is unknown; there are memory:",
            ),
            ("memory:?colour=red", "parameter \"colour\" is unknown"),
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
