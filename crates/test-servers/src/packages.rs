//! Packages of the distribution, unpacked below the target folder. Nothing is installed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Packages that are unpacked together, into a folder of this name.
pub(crate) struct Bundle {
    pub(crate) name: &'static str,
    pub(crate) packages: &'static [&'static str],
    /// What is wanted of them, below the folder.
    pub(crate) program: &'static str,
}

impl Bundle {
    /// The program out of the packages, which are fetched if that was not done before.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let home = target_folder().join("test-servers");
        let unpacked = home.join(self.name);
        let program = unpacked.join(self.program);
        if !program.is_file() {
            // Whoever else fetches at the same time has a folder of its own; the first to be done
            // wins.
            let own = home.join(format!("fetching-{}-{}", self.name, std::process::id()));
            let fetched = self.fetch(&own, &unpacked);
            drop(fs::remove_dir_all(&own));
            fetched?;
        }
        ensure!(program.is_file(), "the packages hold no {}", self.program);
        Ok(program)
    }

    fn fetch(&self, own: &Path, unpacked: &Path) -> Result<()> {
        let content = own.join("content");
        for folder in ["content", "lists/partial"] {
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
        if unpacked.join(self.program).is_file() {
            return Ok(()); // ours, or that of whoever was first
        }
        renamed.context("the unpacked packages cannot be moved")
    }

    fn download(&self, folder: &Path, options: &[&str]) -> Result<()> {
        run(apt(folder, options).arg("download").args(self.packages))
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

/// The folder that cargo builds in and marks as such.
fn target_folder() -> &'static Path {
    let built = Path::new(env!("OUT_DIR"));
    built
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .unwrap_or(built)
}
