//! The matrix: chapters of the contract by places.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use parity_tests::SCENARIOS;
use parity_tests::liars::LIES;

use super::{RUN, table};
use crate::matrix::{Column, Matrix, SIMULATED};
use crate::play::{Outcome, Played};

/// The chapters in the order of the suite.
fn chapters() -> Vec<&'static str> {
    let mut seen = BTreeSet::new();
    let chapters = SCENARIOS.iter().map(|scenario| scenario.chapter);
    chapters.filter(|chapter| seen.insert(*chapter)).collect()
}

fn cell(played: &Played, chapter: &str) -> String {
    let mut own = played.scenarios.iter();
    let (mut passed, mut all, mut known) = (0, 0, 0);
    for (scenario, outcome) in own.by_ref().filter(|(known, _)| known.chapter == chapter) {
        debug_assert!(scenario.chapter == chapter);
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Known(_) => known += 1,
            Outcome::Excluded(_) | Outcome::Failed(_) => {}
        }
        all += 1;
    }
    match (all, known) {
        (0, _) => "–".to_owned(),
        (_, 0) => format!("{passed} of {all}"),
        _ => format!("{passed} of {all}, {known} known"),
    }
}

fn rows(columns: &[&Column]) -> Vec<Vec<String>> {
    let cells = |title: &str, told: &dyn Fn(&Played) -> String| {
        let cells = columns.iter().map(|column| match &column.played {
            Ok(played) => told(played),
            Err(_) => "skipped".to_owned(),
        });
        [title.to_owned()].into_iter().chain(cells).collect()
    };
    let mut rows: Vec<_> = chapters()
        .into_iter()
        .map(|chapter| cells(chapter, &|played| cell(played, chapter)))
        .collect();
    rows.push(cells("scenarios that do not apply", &|played| {
        let excluded = played.count(|outcome| matches!(outcome, Outcome::Excluded(_)));
        excluded.to_string()
    }));
    rows.push(cells("histories that agree with the model", &|played| {
        let agree = played.histories - played.disagreements.len() as u64;
        format!("{agree} of {}", played.histories)
    }));
    rows
}

/// The part of the report.
pub(super) fn section(matrix: &Matrix) -> String {
    // Servers that somebody named are not part of it.
    let usual: Vec<_> = matrix.columns.iter().take(5).collect();
    let names = usual.iter().map(|column| &*column.name);
    let head: Vec<_> = ["chapter"].into_iter().chain(names).collect();
    let versions = usual.iter().filter(|column| !column.version.is_empty());
    let versions: Vec<_> = versions
        .map(|column| format!("{} {}", column.name, column.version))
        .collect();
    let mut text = format!(
        "## The matrix\n\n{}\n{RUN}{}.\n\nEach scenario stands for a fact about the contract and \
         names the clauses that it shows; the simulated etcd plays each in virtual time, in many \
         interleavings. A history is some sixty calls of several clients in a random order, \
         answered by the store and by a model of the contract, step by step.\n\nThe simulated and \
         the real etcd run one and the same store: that they agree shows that the simulation is \
         true, and nothing about the store. The independent witnesses are Postgres, which has the \
         contract in another language, and the model, which has it in no store's terms.\n",
        table(&head, &rows(&usual)),
        versions.join(", "),
    );
    let excluded = excluded(matrix);
    if excluded.is_empty() {
        text.push_str("\nEvery scenario applies to every store.\n");
    } else {
        text.push_str("\nWhat does not apply, and what the store lacks for it:\n\n");
        for line in excluded {
            // Writing to a text does not fail.
            writeln!(text, "- {line}").unwrap_or_default();
        }
    }
    text
}

fn excluded(matrix: &Matrix) -> Vec<String> {
    let columns = matrix.columns.iter();
    let played = columns.filter_map(|column| Some((&column.name, column.played.as_ref().ok()?)));
    played
        .flat_map(|(name, played)| played.scenarios.iter().map(move |one| (name, one)))
        .filter_map(|(name, (scenario, outcome))| match outcome {
            Outcome::Excluded(lacks) => Some(format!("{name}: `{}`: no {lacks}", scenario.name)),
            _ => None,
        })
        .collect()
}

/// What a person reads at the end of a run.
pub(crate) fn summary(matrix: &Matrix) -> String {
    let columns: Vec<_> = matrix.columns.iter().collect();
    let names = columns.iter().map(|column| column.name.clone());
    let head: Vec<_> = ["".to_owned()].into_iter().chain(names).collect();
    let rows: Vec<_> = [head].into_iter().chain(rows(&columns)).collect();
    let widths: Vec<_> = (0..=columns.len())
        .map(|at| {
            rows.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        text.push('\n');
    }
    if columns.iter().any(|column| column.name == SIMULATED) {
        let caught = LIES.len() - matrix.escaped.len();
        text.push_str(&format!("\nliars caught: {caught} of {}\n", LIES.len()));
    }
    for caught in &matrix.escaped {
        text.push_str(&format!("ESCAPED {:?}: {}\n", caught.lie, caught.scenario));
    }
    for column in columns {
        text.push_str(&troubles(column));
    }
    for unseen in &matrix.unseen {
        text.push_str(&format!("NOT SEEN {unseen}\n"));
    }
    text
}

fn troubles(column: &Column) -> String {
    let name = &column.name;
    let played = match &column.played {
        Ok(played) => played,
        Err(missing) => {
            let word = if missing.required {
                "FAILED"
            } else {
                "SKIPPED"
            };
            return format!("{word} {name}: {}\n", missing.why);
        }
    };
    let scenarios = played.scenarios.iter();
    let told = scenarios.filter_map(|(scenario, outcome)| match outcome {
        Outcome::Passed => None,
        Outcome::Excluded(lacks) => Some(format!(
            "not applicable {name}: {}: the store has no {lacks}\n",
            scenario.name
        )),
        Outcome::Known(bug) => Some(format!(
            "known {name} {}: {}: {}\n",
            column.version, scenario.name, bug.upstream
        )),
        Outcome::Failed(why) => Some(format!("FAILED {name}: {}: {why}\n", scenario.name)),
    });
    let disagree = played.disagreements.iter();
    let disagree = disagree.map(|told| format!("DISAGREES {name}: {told}\n"));
    told.chain(disagree).collect()
}
