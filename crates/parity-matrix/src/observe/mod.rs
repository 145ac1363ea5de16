//! Looks at what the contract lets stores do differently, and tells what was seen.
//!
//! Tokens are told relative to the first one, and nothing that depends on the speed of a machine is
//! told at all, so that two runs tell the same.

mod client;
mod costs;
mod ledger;
mod time;
mod tokens;
mod troubles;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use lock_spi::{Runtime, TokioRuntime};

use crate::matrix::real_time;
use crate::places::{EtcdPlace, PostgresPlace, embedded};
use crate::{panics, progress};

pub(crate) use ledger::Ledger;

/// What was seen of one topic, place by place.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) topic: &'static str,
    /// The simulated etcd, a real one, Postgres.
    pub(crate) seen: [String; 3],
}

/// What looks at one topic.
type Probe = for<'a> fn(&'a dyn Ledger) -> futures_util::future::BoxFuture<'a, Result<String>>;

/// A look that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// How a topic is looked at.
enum Look {
    /// On a fresh deployment of each store.
    Probe(Probe),
    /// By tests of the etcd store and of the Postgres store, which take servers apart.
    Tests(&'static str, &'static str),
}

macro_rules! probe {
    ($module:ident::$name:ident) => {
        Look::Probe(|place| Box::pin($module::$name(place)))
    };
}

/// The topics of the contract's table, in its order, and then more.
const TOPICS: &[(&str, Look)] = &[
    ("where tokens come from", probe!(tokens::source)),
    ("order of tokens across keys", probe!(tokens::across_keys)),
    ("floor after a revoke", probe!(tokens::floor)),
    ("gaps between tokens", probe!(tokens::gaps)),
    ("ttl", probe!(time::ttl)),
    ("expiry", probe!(time::expiry)),
    (
        "ttl after a fail-over",
        Look::Tests(
            "a_new_leader_gives_leases_their_time_anew_and_the_waiter_still_gets_the_lock",
            "an_address_that_moves_to_a_standby_serves_again_once_that_is_promoted",
        ),
    ),
    (
        "`remaining` of another's grant",
        probe!(time::remaining_of_others),
    ),
    ("wake-up", probe!(time::wake_up)),
    ("cost of \"held\"", probe!(costs::held)),
    ("cost of keeping N grants", probe!(costs::keeping)),
    (
        "a full store",
        Look::Tests(
            "a_full_store_keeps_and_releases_and_grants_nothing",
            "every_code_has_its_row",
        ),
    ),
    ("the term rises", probe!(tokens::term)),
    (
        "after an asynchronous fail-over",
        Look::Tests(
            "while_the_leaders_of_a_cluster_are_killed_everything_stays_true",
            "of_two_standbys_promoted_one_after_the_other_the_later_one_is_ahead",
        ),
    ),
    (
        "a head that does not take its turn",
        probe!(time::sleeping_head),
    ),
    (
        "a floor raised above the counter by hand",
        probe!(tokens::floor_by_hand),
    ),
    (
        "answer lost, grant revoked, attempt repeated by another store object",
        probe!(troubles::lost_and_revoked),
    ),
    (
        "answer lost, lock deleted by hand, attempt repeated",
        probe!(troubles::lost_and_deleted),
    ),
    (
        "stored after a release",
        probe!(costs::stored_after_release),
    ),
    ("stored after a revoke", probe!(costs::stored_after_revoke)),
];

/// Looks at everything, on servers that nobody else uses; also tells what could not be seen.
pub(crate) fn all() -> Result<(Vec<Observed>, Vec<String>)> {
    let etcd = EtcdPlace::start("observed etcd".to_owned(), 1, None)?;
    let postgres = PostgresPlace::start("observed Postgres".to_owned(), false)?;
    let (mut observed, mut unseen) = (Vec::new(), Vec::new());
    let bar = progress::bar("where they differ", TOPICS.len() as u64);
    for (topic, look) in TOPICS {
        let seen = match look {
            Look::Tests(etcd, postgres) => {
                let by = |test: &str| format!("shown by `{test}`");
                ["".to_owned(), by(etcd), by(postgres)]
            }
            Look::Probe(probe) => {
                let seen = panics::caught(|| look_at(*probe, &etcd, &postgres));
                seen.and_then(|seen| seen.map_err(|error| format!("{error:#}")))
                    .unwrap_or_else(|error| {
                        unseen.push(format!("{topic}: {error}"));
                        Default::default()
                    })
            }
        };
        bar.inc(1);
        if bar.is_hidden() {
            println!("{topic}: {}", seen.join(" | "));
        }
        observed.push(Observed { topic, seen });
    }
    progress::done(&bar, format!("{} not seen", unseen.len()));
    Ok((observed, unseen))
}

fn look_at(probe: Probe, etcd: &EtcdPlace, postgres: &PostgresPlace) -> Result<[String; 3]> {
    let simulated = embedded(0, async |deployment| {
        let place: Arc<dyn Ledger> = Arc::new(deployment);
        probe(&*place).await
    })?;
    let on_etcd = real_time(async { in_time(probe(&etcd.deployment().await?)).await })?;
    let on_postgres = real_time(async { in_time(probe(&postgres.deployment().await?)).await })?;
    Ok([simulated, on_etcd, on_postgres])
}

async fn in_time(looking: impl Future<Output = Result<String>> + Send) -> Result<String> {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime::current());
    let seen = runtime.timeout(LIMIT, looking).await;
    seen.unwrap_or_else(|_| bail!("nothing was seen within {LIMIT:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The topics of the table of divergences in the contract.
    fn divergences() -> Vec<String> {
        let contract = include_str!("../../../../docs/contract.md");
        let table = contract.split("## Divergences").nth(1).unwrap_or_default();
        let rows = table.lines().filter(|line| line.starts_with("| "));
        let topics = rows.filter_map(|row| row.split('|').nth(1));
        let topics = topics.map(|topic| topic.trim().to_owned());
        topics.filter(|topic| topic != "topic").collect()
    }

    #[test]
    fn every_divergence_of_the_contract_is_looked_at() {
        let looked_at: Vec<_> = TOPICS.iter().map(|(topic, _)| *topic).collect();
        for divergence in divergences() {
            assert!(looked_at.contains(&&*divergence), "{divergence}");
        }
    }
}
