//! Where the stores differ, as it was seen.

use super::table;
use crate::observe::Observed;

pub(super) fn section(observed: &[Observed]) -> String {
    let rows: Vec<_> = observed
        .iter()
        .map(|Observed { topic, seen }| {
            let [simulated, etcd, postgres] = seen;
            // What the simulation shows is told once, if the real one shows the same.
            let etcd = match simulated == etcd || simulated.is_empty() {
                true => etcd.clone(),
                false => format!("{etcd}; simulated: {simulated}"),
            };
            vec![(*topic).to_owned(), etcd, postgres.clone()]
        })
        .collect();
    format!(
        "## Where they differ\n\nThe stores may differ only where the \
         [contract](contract.md#divergences) says so. This is what was seen there: on the simulated \
         and on a real etcd, which show the same unless it is said otherwise, and on Postgres. \
         Tokens are told relative to the first one, t, and names that are drawn at random as …; what \
         needs servers to be taken apart is shown by the tests that are named.\n\n{}",
        table(&["topic", "etcd", "Postgres"], &rows)
    )
}
