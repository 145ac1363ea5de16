//! A server that follows another one.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Identity, Postgres, SUPERUSER};
use crate::clock;
use crate::proxy::{Direction, Proxy};

/// How long a standby may take to catch up.
const LIMIT: Duration = Duration::from_secs(30);

impl Postgres {
    /// Starts a server that follows this one, by streaming, asynchronously; `standby` is its name in
    /// `synchronous_standby_names`. Its settings are those of this one.
    ///
    /// # Errors
    ///
    /// When `pg_basebackup` fails, or the standby does not serve within half a minute.
    pub fn standby(&self) -> Result<Self> {
        let identity = Identity {
            password: self.password.clone(),
            has_fake_clock: false,
        };
        let way = Proxy::to(&self.address())?;
        let mut standby = Self::start_on(&self.programs, &identity, |standby| {
            let data = standby.data();
            let target = format!("--pgdata={}", data.display());
            let mut backup = vec!["--checkpoint=fast", "--no-sync", "--wal-method=stream"];
            backup.push(&target);
            // Run by the standby, whose process owns what is written, against this server.
            self.run_program("pg_basebackup", &backup)?;
            self.follow(standby, &way)
        })?;
        standby.upstream = Some(way);
        Ok(standby)
    }

    /// Tells a copy of this server to follow it.
    fn follow(&self, standby: &Self, way: &Proxy) -> Result<()> {
        let way = way.endpoint();
        let (host, port) = way.split_once(':').context("the way has no port")?;
        let mut primary =
            format!("host={host} port={port} user={SUPERUSER} application_name=standby");
        if let Some(password) = &self.password {
            primary.push_str(&format!(" password={password}"));
        }
        let data = standby.data();
        let mut settings = File::options()
            .append(true)
            .open(data.join("postgresql.conf"))?;
        writeln!(settings, "primary_conninfo = '{primary}'")?;
        // It is back soon after the way to the primary is.
        writeln!(settings, "wal_retrieve_retry_interval = '100ms'")?;
        File::create(data.join("standby.signal"))?;
        Ok(())
    }

    /// Makes a standby a primary, whatever became of the one that it followed, and waits until it
    /// is.
    ///
    /// # Errors
    ///
    /// When it is no standby, or does not become a primary within half a minute.
    pub fn promote(&self) -> Result<()> {
        let wait = LIMIT.as_secs();
        let promoted = self.psql("postgres", &format!("SELECT pg_promote(true, {wait})"))?;
        ensure!(promoted == "t", "the standby is not promoted");
        Ok(())
    }

    /// Loses all that passes between a standby and the server that it follows, until
    /// [`heal_replication`](Self::heal_replication). Their connection stays open.
    ///
    /// # Errors
    ///
    /// When this is no standby.
    pub fn cut_replication(&self) -> Result<()> {
        let way = self.upstream()?;
        way.swallow(Direction::ToClient);
        way.swallow(Direction::ToServer);
        Ok(())
    }

    /// Lets a standby reach the server that it follows again.
    ///
    /// # Errors
    ///
    /// When this is no standby.
    pub fn heal_replication(&self) -> Result<()> {
        self.upstream()?.heal();
        Ok(())
    }

    /// Waits until this standby shows all that the other server has written to its log by now.
    ///
    /// # Errors
    ///
    /// When that is not so within half a minute.
    pub fn catch_up_with(&self, primary: &Self) -> Result<()> {
        let position = primary.psql("postgres", "SELECT pg_current_wal_lsn()")?;
        let replayed = format!("SELECT pg_last_wal_replay_lsn() >= '{position}'");
        let caught_up = clock::poll(LIMIT, || {
            let answer = self.psql("postgres", &replayed).ok()?;
            (answer == "t").then_some(())
        });
        caught_up.context("the standby does not catch up")
    }

    fn upstream(&self) -> Result<&Proxy> {
        self.upstream.as_ref().context("this is no standby")
    }
}
