//! What is told of a run: on the terminal, and in the document.

mod answers;
mod liars;
mod outcomes;
mod stores;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::matrix::Matrix;

pub(crate) use outcomes::summary;

/// Begins the line that differs from machine to machine.
const RUN: &str = "Played last on: ";

/// Writes the report, unless what was played falls short.
pub(crate) fn write(path: &Path, matrix: &Matrix) -> Result<bool> {
    if matrix.falls_short() {
        println!("{} is left as it is.", path.display());
        return Ok(false);
    }
    let text = document(matrix);
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("Written: {}.", path.display());
    Ok(true)
}

/// Whether the report says what was found; what is measured aside.
pub(crate) fn is_fresh(path: &Path, matrix: &Matrix) -> Result<bool> {
    let committed =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let found = document(matrix);
    let (committed, found) = (substance(&committed), substance(&found));
    let stale = first_difference(&committed, &found);
    match &stale {
        None => println!("{} says what was found.", path.display()),
        Some((line, committed, found)) => println!(
            "{}:{line} is stale:\n  it says {committed}\n  found is {found}\n\
             `cargo xtask parity` writes it anew.",
            path.display()
        ),
    }
    Ok(stale.is_none())
}

/// What must be the same wherever it is played.
fn substance(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with(RUN)).collect()
}

fn first_difference(committed: &[&str], found: &[&str]) -> Option<(usize, String, String)> {
    let length = committed.len().max(found.len());
    (0..length).find_map(|at| {
        let line = |lines: &[&str]| lines.get(at).copied().unwrap_or("nothing more").to_owned();
        let (committed, found) = (line(committed), line(found));
        (committed != found).then_some((at + 1, committed, found))
    })
}

fn document(matrix: &Matrix) -> String {
    [
        "# Parity\n\nWhat the stores have in common, and where they differ. Written by \
         `cargo xtask parity`, which plays the suite of `parity-tests` on every store; \
         `cargo xtask parity --check` fails when this document is stale.\n"
            .to_owned(),
        answers::section(),
        outcomes::section(matrix),
        stores::section(&matrix.observed),
        liars::section(),
    ]
    .join("\n")
}

/// A table in Markdown.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let rows = rows.iter().map(|row| line(row));
    [line(&head), rule].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_makes_no_report_stale() {
        let (committed, found) = (format!("a\n{RUN}one\nb"), format!("a\n{RUN}two\nb"));
        let differs = |a: &str, b: &str| first_difference(&substance(a), &substance(b));
        assert_eq!(differs(&committed, &found), None);
        let told = differs("a\nb", "a\nc\nd");
        assert_eq!(told, Some((2, "b".to_owned(), "c".to_owned())));
        let told = differs("a", "a\nb");
        assert_eq!(told, Some((2, "nothing more".to_owned(), "b".to_owned())));
    }
}
