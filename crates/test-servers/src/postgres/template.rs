//! A data directory as `initdb` makes it, which takes seconds, kept to be copied.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::postgres::SUPERUSER;
use crate::postgres::programs::Programs;
use crate::programs::once;
use crate::server::{Launch, Server};
use crate::{clock, folder, unprivileged};

const LIMIT: Duration = Duration::from_secs(120);

/// A data directory that no server runs on, for these programs and this user of the system.
pub(super) fn data(programs: &Programs) -> Result<PathBuf> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&MADE, || {
        let home = folder::kept();
        let version = programs
            .version
            .replace(|c: char| !c.is_alphanumeric(), "-");
        let runner = rustix::process::geteuid();
        let template = home.join(format!("data-{version}-{runner}"));
        if !template.is_dir() {
            fs::create_dir_all(&home)?;
            // Whoever else makes one at the same time has a folder of its own; the first to be done
            // wins.
            let own = home.join(format!("making-data-{}", std::process::id()));
            let made = make(programs, &own);
            let renamed = made.and_then(|()| Ok(fs::rename(&own, &template)?));
            if !template.is_dir() {
                renamed.context("there is no data directory to copy")?;
            }
            drop(fs::remove_dir_all(&own));
        }
        Ok(template)
    })
}

fn make(programs: &Programs, to: &Path) -> Result<()> {
    let user = unprivileged::user()?;
    // The user need not be able to enter the folder where it is kept.
    let folder = folder::private_to(user, "initdb")?;
    let data = folder.join("data");
    let arguments = [
        format!("--pgdata={}", data.display()),
        format!("--username={SUPERUSER}"),
        "--auth=trust".to_owned(),
        "--encoding=UTF8".to_owned(),
        "--locale=C".to_owned(),
        "--no-sync".to_owned(),
    ];
    let mut environment = programs.environment().to_owned();
    environment.push(("LC_ALL".to_owned(), "C".to_owned()));
    let mut initdb = Server::new(&Launch {
        folder: &folder,
        user,
        program: &programs.path("initdb"),
        arguments: &arguments,
        environment,
        foreign: "PG",
    })?;
    initdb.start()?;
    let ended = clock::poll(LIMIT, || (!initdb.runs()).then_some(()));
    let log = fs::read_to_string(folder.join("log"))?;
    ensure!(
        ended.is_some() && log.contains("Success"),
        "initdb failed; the last that it said:\n{}",
        initdb.last_of_log()
    );
    folder::copy(&data, to, None)
}
