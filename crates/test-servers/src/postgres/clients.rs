//! The programs that are clients of a server.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Postgres, SUPERUSER};
use crate::user;

impl Postgres {
    /// Makes an empty database.
    ///
    /// # Errors
    ///
    /// When there is one of this name, or the server does not answer.
    pub fn create_database(&self, name: &str) -> Result<()> {
        let create = format!("CREATE DATABASE {}", quoted(name));
        self.psql("postgres", &create).map(drop)
    }

    /// Makes a database with all that is in another one, to which nobody may be connected.
    ///
    /// # Errors
    ///
    /// As [`create_database`](Self::create_database), and when the other is missing or in use.
    pub fn create_database_from(&self, name: &str, template: &str) -> Result<()> {
        let (name, template) = (quoted(name), quoted(template));
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        self.psql("postgres", &create).map(drop)
    }

    /// Runs SQL as the superuser, each statement by itself, and answers with the rows: one a line,
    /// the columns separated by `|`, without their names.
    ///
    /// # Errors
    ///
    /// When a statement fails; then with its code and text, and no later one is run. The effects of
    /// the former ones stay.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        let mut command = self.client("psql");
        command.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"]);
        command.args(["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose"]);
        run(command.arg(format!("--dbname={database}")), sql)
    }

    /// Runs another of the programs that come with the server, as `pg_dump`, and answers with what it
    /// prints. It connects as the superuser, and may write to [`folder`](Self::folder).
    ///
    /// # Errors
    ///
    /// When there is no such program, or it fails; then with what it complains about.
    pub fn run_program(&self, name: &str, arguments: &[&str]) -> Result<String> {
        run(self.client(name).args(arguments), "")
    }

    /// A program that finds this server by itself.
    pub(super) fn client(&self, name: &str) -> Command {
        let mut command = self.programs.command(name);
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", SUPERUSER)
            .env("PGCLIENTENCODING", "UTF8")
            .env("PGCONNECT_TIMEOUT", "10")
            // The user may be another one, who cannot enter the folders of this one.
            .env("HOME", self.folder())
            .current_dir(self.folder());
        if let Some(password) = &self.password {
            command.env("PGPASSWORD", password);
        }
        user::run_as(self.user, &mut command);
        command
    }
}

/// Runs a program with this input and answers with its output.
fn run(command: &mut Command, input: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{name} does not start"))?;
    let stdin = program.stdin.take();
    let output = std::thread::scope(|scope| {
        // Beside the output: whoever waits for the one may be waited for with the other.
        scope.spawn(move || {
            // A program that leaves some of it unread says why.
            drop(stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        });
        program.wait_with_output()
    })?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", complaint.trim());
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
