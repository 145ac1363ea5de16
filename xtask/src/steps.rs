//! One step after another: what it is, what it runs, how long it took. A failure does not stop the
//! steps after it, so that one run shows everything that is wrong.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// The steps of a task and what became of them.
#[derive(Debug)]
pub(crate) struct Steps {
    root: PathBuf,
    environment: BTreeMap<&'static str, OsString>,
    done: Vec<Done>,
}

#[derive(Debug)]
struct Done {
    name: String,
    failed: bool,
    took: Duration,
}

impl Steps {
    /// No step yet; they run in `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            environment: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// The folder of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Sets a variable in the environment of every step that follows.
    pub(crate) fn set(&mut self, variable: &'static str, value: OsString) {
        self.environment.insert(variable, value);
    }

    /// Runs cargo with these arguments.
    pub(crate) fn cargo(&mut self, name: &str, arguments: &[&str]) {
        self.cargo_with(name, arguments, &[]);
    }

    /// Runs cargo with these arguments and these variables in its environment.
    pub(crate) fn cargo_with(
        &mut self,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) {
        let shown: Vec<String> = variables
            .iter()
            .map(|(variable, value)| format!("{variable}={value:?}"))
            .chain(["cargo".to_owned()])
            .chain(arguments.iter().map(|&argument| argument.to_owned()))
            .collect();
        let mut command = cargo();
        command
            .args(arguments)
            .envs(&self.environment)
            .envs(variables.iter().copied())
            .current_dir(&self.root);
        self.command(name, &shown.join(" "), command);
    }

    fn command(&mut self, name: &str, shown: &str, mut command: Command) {
        self.check(name, shown, || {
            let status = command.status().context("it did not start")?;
            ensure!(status.success(), "{status}");
            Ok(())
        });
    }

    /// Runs a check that is part of this program; `command` is how a person would run it.
    pub(crate) fn check(&mut self, name: &str, command: &str, run: impl FnOnce() -> Result<()>) {
        println!("\n== {name}\n   {command}");
        let begun = now();
        let result = run();
        let took = begun.elapsed();
        match &result {
            Ok(()) => println!("   ok, {:.1} s", took.as_secs_f64()),
            Err(error) => println!("   FAILED, {:.1} s: {error:#}", took.as_secs_f64()),
        }
        self.done.push(Done {
            name: name.to_owned(),
            failed: result.is_err(),
            took,
        });
    }

    /// Prints what became of the steps. Fails when one of them failed.
    pub(crate) fn finish(self) -> ExitCode {
        let took: Duration = self.done.iter().map(|step| step.took).sum();
        let failed: Vec<_> = self.done.iter().filter(|step| step.failed).collect();
        let steps = self.done.len();
        let seconds = took.as_secs_f64();
        if failed.is_empty() {
            println!("\n{steps} of {steps} steps passed in {seconds:.1} s.");
            return ExitCode::SUCCESS;
        }
        let names: Vec<_> = failed.iter().map(|step| step.name.as_str()).collect();
        println!(
            "\n{} of {steps} steps failed in {seconds:.1} s: {}.",
            failed.len(),
            names.join(", ")
        );
        ExitCode::FAILURE
    }
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
}

#[allow(
    clippy::disallowed_methods,
    reason = "a task measures real time; nothing of it is replayed"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failed_step_does_not_stop_the_next_and_fails_the_task() {
        let mut steps = Steps::new(PathBuf::new());
        let mut reached = false;
        steps.check("first", "planted", || bail!("planted"));
        steps.check("second", "planted", || {
            reached = true;
            Ok(())
        });
        assert!(reached);
        assert_eq!(steps.finish(), ExitCode::FAILURE);
    }

    #[test]
    fn a_command_that_fails_is_a_failed_step() {
        for (program, argument) in [("cargo", "no-such-command"), ("no-such-program", "")] {
            let mut steps = Steps::new(PathBuf::new());
            let mut command = Command::new(program);
            command.arg(argument).stderr(Stdio::null());
            steps.command("planted", program, command);
            assert_eq!(steps.finish(), ExitCode::FAILURE, "{program}");
        }
    }

    #[test]
    fn steps_that_pass_make_a_task_that_passes() {
        let mut steps = Steps::new(PathBuf::new());
        steps.check("only", "planted", || Ok(()));
        assert_eq!(steps.finish(), ExitCode::SUCCESS);
    }
}
