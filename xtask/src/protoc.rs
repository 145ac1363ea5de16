//! protoc, with which the client of etcd is built: named by `PROTOC`, in `PATH`, or the vendored one.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::steps::{self, Steps};

const VARIABLE: &str = "PROTOC";

/// Finds a protoc and names it to the steps that follow.
pub(crate) fn bring(steps: &mut Steps) {
    let root = steps.root().to_owned();
    let mut found = None;
    steps.check("protoc", "protoc --version", || {
        let protoc = find(&root)?;
        println!("   {}: {}", protoc.to_string_lossy(), version(&protoc)?);
        found = Some(protoc);
        Ok(())
    });
    if let Some(protoc) = found {
        steps.set(VARIABLE, protoc);
    }
}

fn find(root: &Path) -> Result<OsString> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Ok(named);
    }
    let installed = OsString::from("protoc");
    if version(&installed).is_ok() {
        return Ok(installed);
    }
    let path = answer(
        steps::cargo()
            .args(["run", "--quiet", "--package", "vendored-protoc"])
            .current_dir(root),
    )?;
    Ok(path.into())
}

fn version(protoc: &OsString) -> Result<String> {
    answer(Command::new(protoc).arg("--version"))
}

/// What a command prints; it must succeed.
fn answer(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("{program} does not start"))?;
    ensure!(output.status.success(), "{program}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_missing_or_fails_has_no_answer() {
        for (program, argument) in [("no-such-program", ""), ("cargo", "no-such-command")] {
            assert!(answer(Command::new(program).arg(argument)).is_err());
        }
        assert!(version(&"cargo".into()).unwrap().starts_with("cargo "));
    }
}
