use std::fs::{self, File};
use std::io::Write;

use anyhow::{Result, ensure};
use rustix::process::Signal;

use crate::certificates::Issued;
use crate::folder;
use crate::postgres::programs::Programs;
use crate::postgres::{Identity, Postgres, SUPERUSER, template};

/// What every server is set to, unless said otherwise.
const USUAL: &[(&str, &str)] = &[
    ("max_connections", "60"),
    ("shared_buffers", "16MB"),
    ("wal_level", "replica"),
    ("max_wal_senders", "5"),
    // A standby that was cut off for a while still finds what it missed.
    ("wal_keep_size", "256MB"),
    // In the data directory, which is deleted; a server that is killed leaves any other behind.
    ("dynamic_shared_memory_type", "mmap"),
];
/// What a server is to be like.
///
/// # Examples
///
/// ```
/// use test_servers::Postgres;
///
/// let postgres = Postgres::builder()
///     .setting("max_connections", "7")
///     .password("secret")
///     .start()?;
/// assert_eq!(postgres.psql("postgres", "SHOW max_connections")?, "7");
/// assert!(postgres.url("app").starts_with("postgres://postgres:secret@127.0.0.1:"));
/// # anyhow::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it starts"]
pub struct PostgresBuilder {
    settings: Vec<(String, String)>,
    password: Option<String>,
    fsync: bool,
    faketime: bool,
    pub(super) certificate: Option<Issued>,
}

impl PostgresBuilder {
    /// One more setting, as `max_connections` and `7`; the last one of a name counts. Port and
    /// address are the server's own.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Lets nobody in without a password, by SCRAM; this is the superuser's, of letters and digits.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Whether the server waits for the disk, as it does in production; it does not, unless said
    /// otherwise.
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.fsync = fsync;
        self
    }

    /// Gives the server a clock of its own, for [`Postgres::step_clock`]. It slows the server down.
    pub fn faketime(mut self) -> Self {
        self.faketime = true;
        self
    }

    /// Starts the server and waits until it serves.
    ///
    /// # Errors
    ///
    /// When there is no Postgres, or no libfaketime for a clock of its own; when a setting is refused,
    /// or the server does not serve within half a minute.
    pub fn start(&self) -> Result<Postgres> {
        let programs = Programs::find()?;
        let template = template::data(&programs)?;
        let identity = Identity {
            password: self.password.clone(),
            has_fake_clock: self.faketime,
        };
        let postgres = Postgres::start_on(&programs, &identity, |postgres| {
            folder::copy(&template, &postgres.data(), postgres.user)?;
            let file = postgres.data().join("postgresql.conf");
            let mut file = File::options().append(true).open(file)?;
            file.write_all(self.settings().as_bytes())?;
            self.encrypt(postgres)?;
            self.admit_by(postgres, "trust")
        })?;
        self.ask_for_password(&postgres)?;
        Ok(postgres)
    }

    /// As lines of the server's file.
    fn settings(&self) -> String {
        let disk = if self.fsync { "on" } else { "off" };
        let disk = ["fsync", "full_page_writes"].map(|name| (name, disk));
        let own = self.settings.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let all = USUAL.iter().copied().chain(disk).chain(own);
        all.map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''")))
            .collect()
    }

    fn ask_for_password(&self, postgres: &Postgres) -> Result<()> {
        let Some(password) = &self.password else {
            return Ok(());
        };
        ensure!(
            password.chars().all(|c| c.is_ascii_alphanumeric()),
            "the password is not of letters and digits"
        );
        let alter = format!("ALTER ROLE {SUPERUSER} PASSWORD '{password}'");
        postgres.psql("postgres", &alter)?;
        self.admit_by(postgres, "scram-sha-256")?;
        postgres.server.signal(Signal::HUP)
    }

    /// Has the server let in by this method whoever comes over the network as it is meant to.
    fn admit_by(&self, postgres: &Postgres, method: &str) -> Result<()> {
        let network = match self.certificate {
            Some(_) => "hostssl",
            None => "host",
        };
        let rule = |what| format!("{network} {what} all 127.0.0.1/32 {method}\n");
        let rules = ["all", "replication"].map(rule).concat();
        Ok(fs::write(postgres.data().join("pg_hba.conf"), rules)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_of_a_name_is_the_builders_own_and_quoted() {
        let builder = Postgres::builder().setting("fsync", "it's");
        assert!(builder.settings().ends_with("\nfsync = 'it''s'\n"));
        let durable = Postgres::builder().fsync(true).settings();
        assert!(durable.contains("\nfsync = 'on'\nfull_page_writes = 'on'\n"));
    }
}
