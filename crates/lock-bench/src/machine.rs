//! What the figures were measured on.

use std::fmt;
use std::fs;
use std::thread;

use toml::{Table, Value};

/// The versions that this program was built with.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// A machine, a server and a client.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    processors: usize,
    model: String,
    server: String,
    fsync: bool,
    driver: &'static str,
}

impl Machine {
    /// This one, with a server that waits for its disk or not, and the package that speaks to it.
    pub(crate) fn here(server: String, fsync: bool, driver: &'static str) -> Self {
        let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            processors: thread::available_parallelism().map_or(1, usize::from),
            model: model(&known).unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            server,
            fsync,
            driver,
        }
    }
}

fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn version_of<'a>(package: &str, lock: &'a Table) -> Option<&'a str> {
    let packages = lock.get("package").and_then(Value::as_array)?;
    let named = |found: &&Value| found.get("name").and_then(Value::as_str) == Some(package);
    packages.iter().find(named)?.get("version")?.as_str()
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lock = LOCK_FILE.parse::<Table>().unwrap_or_default();
        let Self {
            processors,
            model,
            server,
            fsync,
            driver,
        } = self;
        let version = version_of(driver, &lock).unwrap_or("?");
        let disk = match *fsync {
            true => "waiting for its disk",
            false => "not waiting for its disk if it can leave that out",
        };
        write!(
            f,
            "{server}, one server, {disk}; {driver} {version}; {processors} processors \
             ({model}) for server and client together"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_client_is_the_one_of_the_build() {
        let lock = LOCK_FILE.parse::<Table>().unwrap();
        for driver in ["etcd-client", "sqlx"] {
            assert!(version_of(driver, &lock).is_some(), "{driver}");
        }
        assert_eq!(version_of("no-such-package", &lock), None);
    }

    #[test]
    fn the_processor_is_called_what_the_system_calls_it() {
        let known = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags\t: a b";
        assert_eq!(model(known).as_deref(), Some("Some CPU @ 3 GHz"));
        assert_eq!(model(""), None);
    }
}
