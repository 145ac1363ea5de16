//! Packages of the distribution, unpacked below the target folder. Nothing is installed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::folder;

/// The variable that tells programs where libraries are.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Packages that are unpacked together, into a folder of this name.
pub(crate) struct Bundle {
    pub(crate) name: &'static str,
    pub(crate) packages: &'static [&'static str],
    /// Whether what they depend on and this system lacks is fetched as well.
    pub(crate) with_dependencies: bool,
    /// Where in the folder stands what is wanted of them.
    pub(crate) find: fn(&Path) -> Option<PathBuf>,
}

/// What is wanted of unpacked packages, and where they are.
#[derive(Clone, Debug)]
pub(crate) struct Unpacked {
    folder: PathBuf,
    pub(crate) program: PathBuf,
}

impl Unpacked {
    /// The variable, and its value, by which programs find the libraries that were unpacked beside
    /// them.
    pub(crate) fn libraries(&self) -> Result<(String, String)> {
        // Distributions name a folder after the machine's kind.
        let own = format!("{}-linux-gnu", std::env::consts::ARCH);
        let folders = ["usr/lib", "lib"].map(|folder| self.folder.join(folder));
        let folders = folders.iter().flat_map(|lib| [lib.join(&own), lib.clone()]);
        let folders = std::env::join_paths(folders)?;
        let folders = folders
            .into_string()
            .ok()
            .context("the target folder is no text")?;
        Ok((LIBRARIES.to_owned(), folders))
    }
}

/// Held while this process fetches packages.
static FETCHING: Mutex<()> = Mutex::new(());

impl Bundle {
    /// What is wanted of the packages, which are fetched if that was not done before.
    pub(crate) fn unpack(&self) -> Result<Unpacked> {
        let home = folder::kept();
        let unpacked = home.join(self.name);
        // The threads of this process share its folder, so that only the first of them fetches.
        let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
        if self.wanted(&unpacked).is_none() {
            // Whoever else fetches at the same time has a folder of its own; the first to be done
            // wins.
            let own = home.join(format!("fetching-{}-{}", self.name, std::process::id()));
            let fetched = self.fetch(&own, &unpacked);
            drop(fs::remove_dir_all(&own));
            fetched?;
        }
        let program = self.wanted(&unpacked);
        Ok(Unpacked {
            program: program.with_context(|| format!("the packages hold no {}", self.name))?,
            folder: unpacked,
        })
    }

    fn wanted(&self, unpacked: &Path) -> Option<PathBuf> {
        (self.find)(unpacked).filter(|wanted| wanted.is_file())
    }

    fn fetch(&self, own: &Path, unpacked: &Path) -> Result<()> {
        let content = own.join("content");
        for folder in ["content", "lists/partial", "partial"] {
            fs::create_dir_all(own.join(folder))?;
        }
        // Not by `eprintln`, which the test harness keeps to itself.
        writeln!(
            io::stderr(),
            "test-servers: no {} on this system; unpacking the packages {} below {}",
            self.name,
            self.packages.join(" and "),
            unpacked.display()
        )?;
        // With the system's lists of packages, and if these are missing or old, with new ones of our
        // own.
        if self.download(own, &[]).is_err() {
            let lists = format!("Dir::State::Lists={}", own.join("lists").display());
            run(apt(own, &["-o", &lists]).arg("update"))?;
            self.download(own, &["-o", &lists])?;
        }
        for file in fs::read_dir(own)? {
            let file = file?.path();
            if file.extension().is_some_and(|ending| ending == "deb") {
                run(Command::new("dpkg").arg("-x").args([&file, &content]))?;
            }
        }
        let renamed = fs::rename(&content, unpacked);
        if self.wanted(unpacked).is_some() {
            return Ok(()); // ours, or that of whoever was first
        }
        renamed.context("the unpacked packages cannot be moved")
    }

    fn download(&self, folder: &Path, options: &[&str]) -> Result<()> {
        let mut command = apt(folder, options);
        if self.with_dependencies {
            // The system is asked what it lacks; it is not changed.
            command
                .args(["install", "--download-only", "--yes"])
                .arg("--no-install-recommends")
                .args(["-o", "Debug::NoLocking=true"])
                .args(["-o", &format!("Dir::Cache::Archives={}", folder.display())]);
        } else {
            command.arg("download");
        }
        run(command.args(self.packages))
    }
}

fn apt(folder: &Path, options: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command
        .current_dir(folder)
        // The user whom apt would change to may not write below the target folder.
        .args(["--quiet", "--quiet", "-o", "APT::Sandbox::User=root"])
        .args(options);
    command
}

/// Runs a command to its end. What it prints is shown only when it fails.
fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} does not start"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let (status, words) = (output.status, words.trim());
    ensure!(status.success(), "{program}: {status}: {words}");
    Ok(())
}
