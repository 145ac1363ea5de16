//! The figures as a document.

use crate::arms::{Keys, Kind};
use crate::machine::Machine;
use crate::options::EtcdOptions;
use crate::statistics::Spread;
use crate::suite::{Measured, Outcome};

/// What guards are to reach of the transactions that they cannot do without.
const GOAL: f64 = 0.90;

/// What was measured where, as a document in Markdown.
pub(crate) fn document(machine: &Machine, options: &EtcdOptions, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "# Locks on etcd\n\n\
         {machine}.\n\n\
         Repetitions: {}; in each of them every arm runs for {:.2} s, and for {:.2} s on one key for \
         all. Figures are medians over the repetitions, ratios with [least, greatest]. In ratios a \
         lock taken and given back counts as two writes.\n",
        options.repetitions,
        options.slice.as_secs_f64(),
        (options.slice * Keys::Hot.slices()).as_secs_f64(),
    );
    for outcome in outcomes {
        text.push_str(&section(outcome));
    }
    text.push_str(&verdict(outcomes));
    text
}

fn section(outcome: &Outcome) -> String {
    let base = match outcome.suite.keys {
        Keys::Distinct => "to raw put",
        Keys::Hot => "to raw put, one after another",
    };
    let mut text = format!(
        "\n## {}\n\n\
         | arm | {base} | to {} | op/s | p50 ms | server CPU µs/op | client CPU µs/op |\n\
         |---|---|---|---|---|---|---|\n",
        outcome.suite,
        Kind::Bare.name(),
    );
    for measured in &outcome.measured {
        text.push_str(&row(outcome, measured));
    }
    text
}

fn row(outcome: &Outcome, measured: &Measured) -> String {
    let kind = measured.kind;
    // On one key for all, what retries without a queue is no measure for what waits in one.
    let to_bare = match (outcome.suite.keys, kind) {
        (Keys::Hot, _) | (_, Kind::RawPut) => None,
        _ => outcome.ratio(kind, Kind::Bare),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        kind.name(),
        ratio(outcome.ratio(kind, Kind::RawPut)),
        ratio(to_bare),
        middle(measured.rate(), 1.0, 0),
        middle(measured.latency(), 1e3, 2),
        middle(measured.server_cpu(), 1e6, 0),
        middle(measured.client_cpu(), 1e6, 0),
    )
}

/// What the guards reached of the transactions that they cannot do without.
fn verdict(outcomes: &[Outcome]) -> String {
    let distinct = |outcome: &&Outcome| outcome.suite.keys == Keys::Distinct;
    let lines = outcomes.iter().filter(distinct).filter_map(|outcome| {
        let reached = outcome.ratio(Kind::Guards, Kind::Bare)?;
        let word = if reached.median >= GOAL {
            "met"
        } else {
            "missed"
        };
        Some(format!(
            "- {}: {} of {}; the goal of {GOAL:.2} is {word}\n",
            outcome.suite,
            ratio(Some(reached)),
            Kind::Bare.name(),
        ))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\n## What guards reach of what they cannot do without\n\n{lines}")
}

fn ratio(spread: Option<Spread>) -> String {
    spread.map_or_else(none, |spread| {
        let Spread {
            median,
            least,
            greatest,
        } = spread;
        format!("{median:.2} [{least:.2}, {greatest:.2}]")
    })
}

fn middle(spread: Option<Spread>, unit: f64, digits: usize) -> String {
    spread.map_or_else(none, |spread| format!("{:.digits$}", spread.median * unit))
}

fn none() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::sample;

    #[test]
    fn a_goal_that_is_met_and_one_that_is_missed_are_told_apart() {
        for (guards, word) in [(90.0, "met"), (89.0, "missed")] {
            let outcome = sample([(Kind::Bare, &[100.0]), (Kind::Guards, &[guards])]);
            let text = verdict(&[outcome]);
            assert!(
                text.ends_with(&format!("the goal of 0.90 is {word}\n")),
                "{text}"
            );
        }
    }

    #[test]
    fn an_arm_is_a_row_and_what_is_not_known_is_left_open() {
        let outcome = sample([(Kind::RawPut, &[1000.0]), (Kind::Bare, &[400.0, 450.0])]);
        let text = section(&outcome);
        let row =
            "| GRANT + DELETE | 0.80 [0.80, 0.80] | 1.00 [1.00, 1.00] | 425 | 2.00 | 90 | – |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }
}
