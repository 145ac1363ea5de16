//! Prints where a protoc is that came as a crate. A program of its own, so that only those fetch it
//! who need it.

#![allow(clippy::print_stdout, reason = "its output is its answer")]

use anyhow::Result;

fn main() -> Result<()> {
    println!("{}", protoc_bin_vendored::protoc_bin_path()?.display());
    Ok(())
}
