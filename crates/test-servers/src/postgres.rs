use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use crate::postgres::faketime::FakeClock;
use crate::postgres::programs::Programs;
use crate::proxy::Proxy;
use crate::server::{Launch, Server};
use crate::user::User;
use crate::{folder, ports, unprivileged};

mod backends;
mod builder;
mod clients;
mod copies;
mod faketime;
mod health;
mod programs;
mod replication;
mod template;
mod tls;

pub use builder::PostgresBuilder;
pub use faketime::Step;

/// How long a server may take to end in order.
const END_LIMIT: Duration = Duration::from_secs(30);
/// How often a server is tried on a port of its own: someone may take it between its choice and its
/// use.
const STARTS: usize = 3;
/// What it says then.
const PORT_TAKEN: &str = "Address already in use";
/// The superuser.
const SUPERUSER: &str = "postgres";

/// Postgres on the loopback address, with a data directory of its own. Whoever connects is trusted,
/// and nothing waits for the disk, unless the [`builder`](Self::builder) is told otherwise.
///
/// The programs are those in the folder that `PG_BIN` names, else those in `PATH`, else those that
/// the distribution installs outside of `PATH`, else those of its packages, which `apt-get` fetches
/// and which are unpacked below the target folder. As root, the server is run as the user `postgres`
/// or `nobody`, who must be able to enter the temporary folder.
///
/// Dropped, the server is killed with all of its processes, and its folder deleted. The same happens
/// when the process ends in any other way.
///
/// # Examples
///
/// ```
/// use test_servers::{Mode, Postgres};
///
/// let mut postgres = Postgres::start()?;
/// postgres.create_database("app")?;
/// postgres.psql("app", "CREATE TABLE color (name text); INSERT INTO color VALUES ('green')")?;
/// postgres.restart(Mode::Fast)?; // on the same port, with the same data
/// assert_eq!(postgres.psql("app", "SELECT name FROM color")?, "green");
/// # anyhow::Ok(())
/// ```
#[derive(Debug)]
pub struct Postgres {
    /// It ends before what stands between it and others does.
    server: Server,
    programs: Programs,
    user: Option<User>,
    port: u16,
    password: Option<String>,
    clock: Option<FakeClock>,
    /// Between a standby and the server that it follows.
    upstream: Option<Proxy>,
}

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// It waits until its clients have left, and ends in order.
    Smart,
    /// It ends the transactions of its clients, and then in order.
    Fast,
    /// It ends at once. When it is started again, it recovers as after a crash.
    Immediate,
}

/// What distinguishes one server from the next before it has data.
#[derive(Debug, Default)]
struct Identity {
    password: Option<String>,
    has_fake_clock: bool,
}

impl Postgres {
    /// Starts a server and waits until it serves.
    ///
    /// # Errors
    ///
    /// When there is no Postgres, or it does not serve within half a minute.
    pub fn start() -> Result<Self> {
        Self::builder().start()
    }

    /// For a server that differs from the usual.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// Starts a server on what `fill` writes to its data directory, which does not exist before.
    fn start_on(
        programs: &Programs,
        identity: &Identity,
        fill: impl Fn(&Self) -> Result<()>,
    ) -> Result<Self> {
        let try_start = || -> Result<Self> {
            let mut postgres = Self::prepare(programs, identity)?;
            fill(&postgres)?;
            postgres.start_again()?;
            Ok(postgres)
        };
        for _ in 1..STARTS {
            match try_start() {
                Err(error) if error.to_string().contains(PORT_TAKEN) => {}
                settled => return settled,
            }
        }
        try_start()
    }

    /// A server that is down and has no data yet.
    fn prepare(programs: &Programs, identity: &Identity) -> Result<Self> {
        let user = unprivileged::user()?;
        let folder = folder::private_to(user, "server")?;
        let port = ports::free()?;
        let data = folder.join("data").display().to_string();
        // Here and not in the file with the other settings, as that is copied with the data.
        let own = [
            format!("port={port}"),
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
        ];
        let own = own.into_iter().flat_map(|own| ["-c".to_owned(), own]);
        let arguments: Vec<_> = ["-D".to_owned(), data].into_iter().chain(own).collect();
        let clock = identity
            .has_fake_clock
            .then(|| FakeClock::new(&folder, user));
        let clock = clock.transpose()?;
        let mut environment = programs.environment().to_owned();
        environment.extend(clock.iter().flat_map(FakeClock::environment));
        let server = Server::new(&Launch {
            folder: &folder,
            user,
            program: &programs.path("postgres"),
            arguments: &arguments,
            environment,
            foreign: "PG",
        })?;
        Ok(Self {
            server,
            programs: programs.clone(),
            user,
            port,
            password: identity.password.clone(),
            clock,
            upstream: None,
        })
    }

    /// Where it listens on the loopback address.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where it is reached, as `127.0.0.1:5432`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address of a database for the superuser, as `postgres://postgres@127.0.0.1:5432/app`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_at(&self.address(), database)
    }

    /// As [`url`](Self::url), at another address, as that of a [`Proxy`].
    #[must_use]
    pub fn url_at(&self, address: &str, database: &str) -> String {
        let password = self.password.as_ref();
        let password = password.map_or_else(String::new, |password| format!(":{password}"));
        format!("postgres://{SUPERUSER}{password}@{address}/{database}")
    }

    /// A folder of the server's own, for files that programs exchange. It goes with the server.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.server.folder()
    }

    /// The data directory.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// What the server has written to its log.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn log(&self) -> Result<String> {
        let log = fs::read(self.folder().join("log"))?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// The number of the first of its processes.
    ///
    /// # Errors
    ///
    /// When the server is down.
    pub fn process(&self) -> Result<u32> {
        let pid = self.server.pid().context("the server is down")?;
        Ok(pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Asks the server to end, and waits until it has.
    ///
    /// # Errors
    ///
    /// When the server is down, or has not ended within half a minute, as when clients stay in
    /// [`Mode::Smart`].
    pub fn stop(&mut self, mode: Mode) -> Result<()> {
        let signal = match mode {
            Mode::Smart => Signal::TERM,
            Mode::Fast => Signal::INT,
            Mode::Immediate => Signal::QUIT,
        };
        self.server.end_by(signal, END_LIMIT)
    }

    /// Kills all of its processes at once, as a power failure does. Its data stay; what was not
    /// written to the disk survives as well, since the system goes on.
    ///
    /// # Errors
    ///
    /// When the server is down.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts a server that is down, on its former port and data, and waits until it serves.
    ///
    /// # Errors
    ///
    /// When the server is up, or does not serve within half a minute.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(!self.server.is_up(), "the server is up");
        self.server.start()?;
        self.await_ready()
    }

    /// [Stops](Self::stop) and [starts](Self::start_again) the server.
    ///
    /// # Errors
    ///
    /// As these.
    pub fn restart(&mut self, mode: Mode) -> Result<()> {
        self.stop(mode)?;
        self.start_again()
    }

    /// Waits until the server takes connections: after one of its processes was killed, until it has
    /// recovered.
    ///
    /// # Errors
    ///
    /// When it is down, has ended by itself, or does not serve within half a minute.
    pub fn await_ready(&self) -> Result<()> {
        let serves = || health::is_serving(self.port);
        self.server.await_ready("Postgres", serves)
    }
}
