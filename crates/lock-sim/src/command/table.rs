//! The table of known bugs, written into a document between two marks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use lock_sim::bugs::Fate;

use crate::bugs::Findings;

const BEGIN: &str = "<!-- bugs: written by cargo xtask sim --bugs -->";
const END: &str = "<!-- bugs: end -->";

/// Puts the table in its place.
pub(crate) fn write(path: &Path, found: &[Findings]) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let text = replaced(&text, &table(found)).with_context(|| format!("{}", path.display()))?;
    fs::write(path, text).with_context(|| format!("{}", path.display()))
}

fn replaced(text: &str, table: &str) -> Result<String> {
    let (before, rest) = text
        .split_once(BEGIN)
        .context("the first mark is missing")?;
    let (_, after) = rest.split_once(END).context("the second mark is missing")?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

/// For people who look on.
pub(crate) fn line(findings: &Findings) -> String {
    let Findings {
        known,
        catches,
        events,
    } = findings;
    let broken = broken(findings);
    match (known.fate, catches.median()) {
        (Fate::Withstood, None) => format!("{}: withstood", known.name),
        (_, Some(median)) => format!(
            "{}: caught in {median} seeds by {broken}, missed {} times, stories of {events:?} events",
            known.name, catches.missed
        ),
        (Fate::Caught, None) => format!("{}: missed {} times", known.name, catches.missed),
    }
}

fn table(found: &[Findings]) -> String {
    let mut text = String::new();
    let caught: Vec<_> = found
        .iter()
        .filter(|findings| findings.known.fate == Fate::Caught)
        .collect();
    let withstood = found
        .iter()
        .filter(|findings| findings.known.fate == Fate::Withstood);
    let every_time = caught
        .iter()
        .filter(|findings| findings.catches.missed == 0);
    text.push_str(&format!(
        "Of {} bugs, {} were caught each of the {} times that they were looked for. Seeds are the \
         median, and the most; a dash stands where a bug was not caught in time.\n\n",
        caught.len(),
        every_time.count(),
        caught.first().map_or(0, |findings| times(findings)),
    ));
    text.push_str(
        "| bug | what it does | seen in | breaks | seeds | most | events in its story |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|\n");
    for findings in caught {
        let known = findings.known;
        let number =
            |number: Option<u64>| number.map_or("–".to_owned(), |number| number.to_string());
        let events = findings.events.first().map(|events| events.to_string());
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} | {} |\n",
            known.name,
            known.what,
            known.seen,
            broken(findings),
            number(findings.catches.median()),
            number(findings.catches.most()),
            events.unwrap_or_else(|| "–".to_owned()),
        ));
    }
    text.push_str("\nWithstood, because nothing relies on what they break:\n\n");
    text.push_str("| bug | what it does | seen in |\n|---|---|---|\n");
    for findings in withstood {
        let known = findings.known;
        text.push_str(&format!(
            "| `{}` | {} | {} |\n",
            known.name, known.what, known.seen
        ));
    }
    text
}

fn times(findings: &Findings) -> u64 {
    let caught = u64::try_from(findings.catches.caught.len()).unwrap_or(u64::MAX);
    caught.saturating_add(findings.catches.missed)
}

/// The invariants that it was caught by, the most frequent first.
fn broken(findings: &Findings) -> String {
    let caught = &findings.catches.caught;
    let mut ids: Vec<_> = caught
        .iter()
        .map(|catch| catch.violation.invariant)
        .collect();
    let count = |id| {
        caught
            .iter()
            .filter(|catch| catch.violation.invariant == id)
            .count()
    };
    ids.sort_by_key(|id| (std::cmp::Reverse(count(*id)), *id));
    ids.dedup();
    let ids: Vec<_> = ids.into_iter().map(|id| id.id()).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_sim::bugs::KNOWN;
    use lock_sim::campaign::{Catch, Catches};
    use lock_sim::check::{Invariant, Violation};

    use super::*;

    fn findings(needed: &[u64]) -> Findings {
        let caught = needed.iter().map(|&needed| Catch {
            seed: 0,
            needed,
            violation: Violation::new(Invariant::OneGrant, Duration::ZERO, "planted"),
        });
        Findings {
            known: KNOWN
                .iter()
                .find(|known| known.fate == Fate::Caught)
                .unwrap(),
            catches: Catches {
                caught: caught.collect(),
                missed: 0,
            },
            events: vec![9, 12],
        }
    }

    #[test]
    fn a_bug_that_was_missed_is_not_called_caught() {
        let mut missed = findings(&[3]);
        missed.catches.missed = 2;
        let table = table(&[findings(&[3, 1, 2]), missed]);
        assert!(
            table.starts_with("Of 2 bugs, 1 were caught each"),
            "{table}"
        );
        assert!(table.contains("| INV-01 | – | – | 9 |"), "{table}");
    }

    #[test]
    fn the_table_takes_the_place_of_the_old_one() {
        let document = format!("# Before\n{BEGIN}\nold\n{END}\nafter\n");
        let written = replaced(&document, &table(&[findings(&[3, 1, 2])])).unwrap();
        assert!(
            written.starts_with("# Before\n") && written.ends_with("\nafter\n"),
            "{written}"
        );
        assert!(!written.contains("old"), "{written}");
        assert!(written.contains("| INV-01 | 2 | 3 | 9 |"), "{written}");
        assert_eq!(
            replaced(&written, &table(&[findings(&[3, 1, 2])])).unwrap(),
            written
        );
    }

    #[test]
    fn a_document_without_marks_is_left_alone() {
        assert!(replaced("# Before\n", "table").is_err());
        assert!(replaced(BEGIN, "table").is_err());
    }
}
