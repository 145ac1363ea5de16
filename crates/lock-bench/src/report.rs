//! The figures as a document.

use crate::arms::Keys;
use crate::backend::{Comparison, Goal, HandOver, Kind};
use crate::machine::Machine;
use crate::options::Options;
use crate::statistics::Spread;
use crate::suite::{Measured, Outcome, Suite};

/// What was measured where, as a document in Markdown.
pub(crate) fn document<K: Kind>(
    machine: &Machine,
    options: &Options<K>,
    outcomes: &[Outcome<K>],
) -> String {
    let Comparison { server, ratios, .. } = K::COMPARISON;
    let mut text = format!(
        "# Locks on {server}\n\n\
         {machine}.\n\n\
         Repetitions: {}; in each of them every arm runs for {:.2} s, and for {:.2} s on one key for \
         all. Figures are medians over the repetitions, ratios with [least, greatest]. In ratios \
         {ratios}. Where the key is held for a while, op/s counts in the time in which nobody holds \
         it, which is the time that hand-overs take.\n",
        options.repetitions,
        options.slice.as_secs_f64(),
        (options.slice * Keys::Hot.slices()).as_secs_f64(),
    );
    for outcome in outcomes {
        text.push_str(&section(outcome));
    }
    text.push_str(&verdict(outcomes));
    text.push_str(&hand_overs(outcomes));
    text
}

fn section<K: Kind>(outcome: &Outcome<K>) -> String {
    let Comparison { limit, needed, .. } = K::COMPARISON;
    let how = match outcome.suite.keys {
        Keys::Distinct => "",
        Keys::Hot | Keys::Held => ", one after another",
    };
    let mut text = format!(
        "\n## {}\n\n\
         | arm | to {}{how} | to {} | op/s | p50 ms | server CPU µs/op | client CPU µs/op |\n\
         |---|---|---|---|---|---|---|\n",
        outcome.suite,
        limit.name(),
        needed.name(),
    );
    for measured in &outcome.measured {
        text.push_str(&row(outcome, measured));
    }
    text
}

fn row<K: Kind>(outcome: &Outcome<K>, measured: &Measured<K>) -> String {
    let Comparison { limit, needed, .. } = K::COMPARISON;
    let kind = measured.kind;
    // On one key for all, what retries without a queue is no measure for what waits in one.
    let to_needed = match outcome.suite.keys {
        Keys::Distinct if kind != limit => outcome.ratio(kind, needed),
        _ => None,
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        kind.name(),
        ratio(outcome.ratio(kind, limit)),
        ratio(to_needed),
        middle(measured.rate(), 1.0, 0),
        middle(measured.latency(), 1e3, 2),
        middle(measured.server_cpu(), 1e6, 0),
        middle(measured.client_cpu(), 1e6, 0),
    )
}

/// What was reached of what is the goal.
fn verdict<K: Kind>(outcomes: &[Outcome<K>]) -> String {
    let Goal {
        of,
        who,
        ratio: goal,
        most_tasks,
    } = K::COMPARISON.goal;
    let distinct = |outcome: &&Outcome<K>| outcome.suite.keys == Keys::Distinct;
    let lines = outcomes.iter().filter(distinct).filter_map(|outcome| {
        let reached = outcome.ratio(who, of)?;
        let word = match (outcome.suite.tasks <= most_tasks, reached.median >= goal) {
            (false, _) => "there is no goal".to_owned(),
            (true, true) => format!("the goal of {goal:.2} is met"),
            (true, false) => format!("the goal of {goal:.2} is missed"),
        };
        Some(format!(
            "- {}: {}; {word}\n",
            outcome.suite,
            ratio(Some(reached))
        ))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    let (who, of) = (who.name(), of.name());
    format!("\n## What {who} reach of {of}\n\n{lines}")
}

/// What was reached on one key for all.
fn hand_overs<K: Kind>(outcomes: &[Outcome<K>]) -> String {
    let of = |keys, tasks| {
        let mut all = outcomes.iter();
        all.find(move |found| found.suite == Suite { keys, tasks })
    };
    let goals = K::COMPARISON.hand_overs.iter();
    let lines: String = goals
        .filter_map(|goal| {
            let HandOver {
                keys,
                of: base,
                who,
                tasks,
                ratio: least,
            } = *goal;
            let outcome = of(keys, tasks)?;
            let reached = outcome.ratio(who, base)?;
            let word = if reached.median >= least {
                "met"
            } else {
                "missed"
            };
            let (suite, who, base) = (outcome.suite, who.name(), base.name());
            let reached = ratio(Some(reached));
            Some(format!(
                "- {suite}, {who} to {base}: {reached}; the goal of {least} is {word}\n"
            ))
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\n## Hand-overs of one key\n\n{lines}")
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
    use crate::{etcd, postgres};

    #[test]
    fn a_goal_that_is_met_and_one_that_is_missed_are_told_apart() {
        for (guards, word) in [(90.0, "met"), (89.0, "missed")] {
            let (bare, all) = (etcd::Kind::Bare, etcd::Kind::Guards);
            let text = verdict(&[sample([(bare, &[100.0]), (all, &[guards])])]);
            let end = format!("the goal of 0.90 is {word}\n");
            assert!(text.ends_with(&end), "{text}");
        }
    }

    #[test]
    fn with_more_tasks_than_the_goal_is_for_there_is_none() {
        for (tasks, words) in [(16, "the goal of 0.87 is missed"), (64, "there is no goal")] {
            let (pair, guards) = (postgres::Kind::RawPair, postgres::Kind::Guards);
            let mut outcome = sample([(pair, &[100.0]), (guards, &[60.0])]);
            outcome.suite.tasks = tasks;
            let text = verdict(&[outcome]);
            let line = format!("- distinct keys, {tasks} tasks: 0.60 [0.60, 0.60]; {words}\n");
            assert!(
                text.contains("## What guards reach of raw pair\n"),
                "{text}"
            );
            assert!(text.ends_with(&line), "{text}");
        }
    }

    #[test]
    fn an_arm_is_a_row_and_what_is_not_known_is_left_open() {
        let (put, bare) = (etcd::Kind::RawPut, etcd::Kind::Bare);
        let text = section(&sample([(put, &[1000.0]), (bare, &[400.0, 450.0])]));
        let row =
            "| GRANT + DELETE | 0.80 [0.80, 0.80] | 1.00 [1.00, 1.00] | 425 | 2.00 | 90 | – |";
        assert!(text.lines().any(|line| line == row), "{text}");
        assert!(
            text.contains("| arm | to raw put | to GRANT + DELETE |"),
            "{text}"
        );
    }

    #[test]
    fn on_one_key_for_all_nothing_is_compared_with_what_only_tries_again() {
        let (pair, functions) = (postgres::Kind::RawPair, postgres::Kind::Functions);
        let mut outcome = sample([(pair, &[100.0]), (functions, &[50.0])]);
        outcome.suite.keys = Keys::Hot;
        let text = section(&outcome);
        assert!(text.contains("| arm | to raw pair, one after another | to functions |"));
        assert!(
            text.contains("| functions | 0.50 [0.50, 0.50] | – | 50 |"),
            "{text}"
        );
    }
}
