//! The file `fencelock.toml`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy as _;
use serde::{Deserialize, Deserializer};

use crate::args::duration;
use crate::exit::Exit;
use crate::failure::Failure;

const NAME: &str = "fencelock.toml";

/// What a file may say; flags and the environment come before it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) store: Option<String>,
    pub(crate) namespace: Option<String>,
    #[serde(default, deserialize_with = "optional_duration")]
    pub(crate) timeout: Option<Duration>,
}

impl Config {
    /// Reads the nearest file of the working folder and those above it, else the user's.
    pub(crate) fn find() -> Result<Self, Failure> {
        let here = std::env::current_dir()?;
        let above = here.ancestors().map(|folder| folder.join(NAME));
        let users = etcetera::choose_base_strategy()
            .ok()
            .map(|folders| folders.config_dir().join("fencelock").join(NAME));
        first(above.chain(users))
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }
}

/// Reads the first of these files that there is.
fn first(paths: impl Iterator<Item = PathBuf>) -> Result<Config, Failure> {
    for path in paths {
        match std::fs::read_to_string(&path) {
            Ok(text) => return Config::parse(&text).map_err(|why| unreadable(&path, &why)),
            // Below a file that stands where a folder should be there is nothing either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(error) => return Err(unreadable(&path, &error.to_string())),
        }
    }
    Ok(Config::default())
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::new(
        Exit::Usage,
        format!("{} cannot be used: {why}", path.display()),
    )
    .hint("a configuration may have the keys store, namespace and timeout")
}

fn optional_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    duration(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_store_namespace_and_timeout_and_nothing_else() {
        let text = "store = \"memory:\"\nnamespace = \"cron\"\ntimeout = \"2s\"";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.store.as_deref(), Some("memory:"));
        assert_eq!(config.namespace.as_deref(), Some("cron"));
        assert_eq!(config.timeout, Some(Duration::from_secs(2)));
        assert!(
            Config::parse("stroe = \"memory:\"")
                .unwrap_err()
                .contains("stroe")
        );
        assert!(
            Config::parse("timeout = \"2\"")
                .unwrap_err()
                .contains("15s")
        );
    }

    #[test]
    fn no_file_is_an_empty_one() {
        let config = first(std::iter::once(PathBuf::from("no/such/file"))).unwrap();
        assert!(config.store.is_none());
    }
}
