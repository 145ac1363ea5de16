//! A server that lets clients in over TLS only.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use anyhow::Result;

use super::{Postgres, PostgresBuilder};
use crate::certificates::Issued;
use crate::unprivileged;

/// What the server shows, under the names that it looks for, and what it wants of the key.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";
const KEY_MODE: u32 = 0o600;

impl PostgresBuilder {
    /// Lets clients in over TLS only; `own` is the certificate that the server shows.
    pub fn tls(mut self, own: &Issued) -> Self {
        self.certificate = Some(own.clone());
        self
    }

    /// Turns TLS on for a server that is down, if that is wanted.
    pub(super) fn encrypt(&self, postgres: &Postgres) -> Result<()> {
        let Some(Issued { certificate, key }) = &self.certificate else {
            return Ok(());
        };
        let data = postgres.data();
        for (file, name) in [(certificate, CERTIFICATE), (key, KEY)] {
            let copy = data.join(name);
            fs::copy(file, &copy)?;
            fs::set_permissions(&copy, Permissions::from_mode(KEY_MODE))?;
            unprivileged::give_to(postgres.user, &copy)?;
        }
        let settings = data.join("postgresql.conf");
        let mut settings = File::options().append(true).open(settings)?;
        Ok(writeln!(settings, "ssl = on")?)
    }
}
