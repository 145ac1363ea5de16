use std::time::Duration;

use fencelock::Client;
use fencelock::spi::{Namespace, Owner, Runtime, TokioRuntime, Ttl};

use crate::args::duration;
use crate::exit::Exit;
use crate::failure::Failure;

/// A store by its URL.
#[derive(Debug)]
pub(crate) struct Store {
    url: String,
    timeout: Duration,
}

impl Store {
    /// The store of `url`, in `namespace` if that is given.
    pub(crate) fn named(
        url: Option<&str>,
        namespace: Option<&str>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let Some(url) = url else {
            return Err(Failure::new(Exit::Usage, "no store is named").hint(
                "give --store URL, set FENCELOCK_STORE, or write store = \"URL\" into fencelock.toml; \
                 `fencelock` alone shows how to begin",
            ));
        };
        let mut url = url.to_owned();
        if let Some(namespace) = namespace {
            url = with_parameter(&url, "namespace", Namespace::new(namespace)?.as_str());
        }
        if parameter(&url, "owner").is_none() {
            url = with_parameter(&url, "owner", Owner::new(caller())?.as_str());
        }
        Ok(Self { url, timeout })
    }

    /// The whole URL. It may hold a password: never print it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether it lives in this process only, so that it excludes nobody else.
    pub(crate) fn is_embedded(&self) -> bool {
        self.url.starts_with("memory:")
    }

    /// The ttl that locks have here unless said otherwise.
    ///
    /// A value that makes no sense is refused when the store is connected to.
    pub(crate) fn ttl(&self) -> Ttl {
        let ttl = parameter(&self.url, "ttl").and_then(|text| duration(text).ok());
        ttl.and_then(|ttl| Ttl::new(ttl).ok()).unwrap_or_default()
    }

    /// Connects, within the time that the store may take.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let runtime: &dyn Runtime = &TokioRuntime::current();
        match runtime
            .timeout(self.timeout, Client::connect(&self.url))
            .await
        {
            Ok(client) => Ok(client?),
            Err(_) => Err(self.silent()),
        }
    }

    /// The failure of a store that took too long to answer.
    pub(crate) fn silent(&self) -> Failure {
        let timeout = humantime::format_duration(self.timeout);
        Failure::new(
            Exit::Unreachable,
            format!("the store did not answer within {timeout}"),
        )
        .hint("check its address, or give it longer with --timeout")
    }
}

/// Who types this, for those who look at the lock or the record: `user@host, process N`.
pub(crate) fn caller() -> String {
    let uid = nix::unistd::getuid();
    let user = match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        _ => format!("user {uid}"),
    };
    let host = nix::unistd::gethostname().unwrap_or_default();
    let host = host.to_string_lossy();
    format!("{user}@{host}, process {}", std::process::id())
}

fn parameter<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let (_, parameters) = url.split_once('?')?;
    parameters
        .split('&')
        .filter_map(|parameter| parameter.split_once('='))
        .find_map(|(known, value)| (known == name).then_some(value))
}

/// The URL with this parameter instead of those of the same name.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let (address, parameters) = url.split_once('?').unwrap_or((url, ""));
    let others = parameters
        .split('&')
        .filter(|parameter| !parameter.is_empty() && parameter.split('=').next() != Some(name));
    let own = format!("{name}={value}");
    let all: Vec<_> = others.chain([own.as_str()]).collect();
    format!("{address}?{}", all.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_takes_the_place_of_its_like_and_leaves_the_others() {
        let url = with_parameter("etcd://a?ttl=9s&namespace=x", "namespace", "cron");
        assert_eq!(url, "etcd://a?ttl=9s&namespace=cron");
        assert_eq!(with_parameter("memory:", "owner", "me"), "memory:?owner=me");
        assert_eq!(parameter(&url, "ttl"), Some("9s"));
        assert_eq!(parameter(&url, "tt"), None);
    }

    #[test]
    fn no_store_is_a_failure_that_says_how_to_name_one() {
        let failure = Store::named(None, None, Duration::ZERO).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.hint.unwrap().contains("FENCELOCK_STORE"));
    }

    #[test]
    fn a_bad_namespace_is_refused_by_name() {
        let failure = Store::named(Some("memory:"), Some("A"), Duration::ZERO).unwrap_err();
        assert!(failure.what.contains("\"A\""), "{}", failure.what);
    }
}
