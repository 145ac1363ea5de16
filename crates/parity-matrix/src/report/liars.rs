//! Stores that lie, and what catches them.

use parity_tests::liars::LIES;

use super::table;

pub(super) fn section() -> String {
    let rows: Vec<_> = LIES
        .iter()
        .map(|caught| {
            vec![
                caught.what.trim_end_matches('.').to_owned(),
                caught.clause.to_owned(),
                format!("`{}`", caught.scenario),
            ]
        })
        .collect();
    format!(
        "## Liars\n\nEach of these stores keeps all promises but one. The scenario that is named \
         catches it, on every run; there is a liar for every clause.\n\n{}",
        table(&["what it does", "clause", "caught by"], &rows)
    )
}
