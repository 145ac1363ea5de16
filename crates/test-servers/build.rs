//! Builds the supervisor beside the library: cargo builds no programs of a crate that others depend
//! on.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const FOLDER: &str = "supervisor";
const SOURCE: &str = "supervisor/main.rs";

fn main() {
    println!("cargo::rerun-if-changed={FOLDER}");
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let program = PathBuf::from(variable("OUT_DIR")).join("supervisor");
    let status = Command::new(variable("RUSTC"))
        .args(["--edition=2024", "--crate-name=supervisor", "-o"])
        .arg(&program)
        .args(["--target", &variable("TARGET"), SOURCE])
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "the supervisor does not build: {status:?}"
    );
    println!("cargo::rustc-env=SUPERVISOR={}", program.display());
}
