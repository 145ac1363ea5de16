//! Calls that are made at the same time and go together: each ends with the truth about its own key,
//! whatever becomes of the batch.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod stage;
mod wire;

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::join_all;
use lock_spi::{AttemptId, Grant, InsertOutcome, LockKey, LockStore, Queue, Result};
use parity_tests::FaultPort;
use test_servers::Postgres;

use crate::stage::{
    DATABASE, Node, TTL, attempt, config, end_backends, eventually, insist, key, runtime, server,
    url_of,
};
use crate::wire::Wire;

/// So many calls are made at once.
const MANY: usize = 24;
/// So long that nothing runs out of time unless something is lost.
const PATIENT: Duration = Duration::from_secs(10);

async fn patient(server: &Postgres) -> Node {
    let config = config().with_request_timeout(PATIENT);
    Node::with(&server.url(DATABASE), config, TTL).await
}

fn wishes(of: &str) -> Vec<(LockKey, AttemptId)> {
    let keys = (0..MANY).map(|number| key(&format!("{of} {number}")));
    keys.map(|key| (key, attempt())).collect()
}

async fn insert_all(node: &Node, wishes: &[(LockKey, AttemptId)]) -> Vec<Result<InsertOutcome>> {
    let inserts = wishes
        .iter()
        .map(|(key, attempt)| node.insert(key, *attempt, Queue::Never));
    join_all(inserts).await
}

fn grant(outcome: InsertOutcome) -> Grant {
    match outcome {
        InsertOutcome::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

async fn grants(node: &Node, of: &str) -> Vec<Grant> {
    let outcomes = insert_all(node, &wishes(of)).await;
    let grants = outcomes.into_iter().map(|outcome| grant(outcome.unwrap()));
    grants.collect()
}

fn calls_of(server: &Postgres, function: &str) -> u32 {
    let calls = server.psql(
        DATABASE,
        &format!(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions \
              WHERE schemaname = 'dlock' AND funcname = '{function}'"
        ),
    );
    calls.unwrap().parse().unwrap()
}

fn standing(server: &Postgres) -> u32 {
    let count = server.psql(DATABASE, "SELECT count(*) FROM dlock.grants");
    count.unwrap().parse().unwrap()
}

/// Repeats what was not answered, and takes care that nothing was done twice.
async fn settle(
    node: &Node,
    server: &Postgres,
    wishes: &[(LockKey, AttemptId)],
    first: Vec<Result<InsertOutcome>>,
) -> Vec<Grant> {
    let mut grants = Vec::new();
    for ((key, attempt), first) in wishes.iter().zip(first) {
        let again = insist(async || node.insert(key, *attempt, Queue::Never).await).await;
        let again = grant(again);
        match first {
            Ok(first) => assert_eq!(grant(first).token, again.token, "{key} was granted twice"),
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        grants.push(again);
    }
    let tokens: BTreeSet<_> = grants.iter().map(|grant| grant.token).collect();
    assert_eq!(tokens.len(), MANY);
    assert_eq!(usize::try_from(standing(server)).unwrap(), MANY);
    grants
}

/// INSERT-1, DELETE-1: with far fewer calls than there are locks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_at_once_goes_together() {
    let server = server().await;
    let sql = "ALTER DATABASE app SET track_functions = 'pl'";
    server.psql(DATABASE, sql).unwrap();
    let node = patient(&server).await;
    for round in ["new", "again", "again"] {
        let grants = grants(&node, round).await;
        let tokens: BTreeSet<_> = grants.iter().map(|grant| grant.token).collect();
        assert_eq!(tokens.len(), MANY);
        let released = join_all(grants.iter().map(|grant| node.release(grant))).await;
        assert!(released.into_iter().all(|released| released.unwrap()));
    }
    let few = u32::try_from(MANY).unwrap();
    eventually("the calls are counted", || {
        calls_of(&server, "try_insert_many_1") > 0 && calls_of(&server, "release_many_1") > 0
    })
    .await;
    for function in ["try_insert", "release"] {
        let (many, one) = (format!("{function}_many_1"), format!("{function}_1"));
        let calls = calls_of(&server, &many) + calls_of(&server, &one);
        assert!(
            calls < 3 * few,
            "{function}: {calls} calls for 3 * {few} keys"
        );
    }
    assert_eq!(standing(&server), 0);
}

/// INSERT-3, INSERT-6, DELETE-2: the batch is done and nobody is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_whose_answer_is_lost_is_settled_by_repeating_its_calls() {
    let server = server().await;
    let wire = Wire::to(server.address().parse().unwrap(), runtime()).await;
    let config = config().with_request_timeout(PATIENT / 4);
    let node = Node::with(&url_of(&[wire.address().to_string()]), config, TTL).await;
    let wishes = wishes("lost");
    wire.lose_next_replies(1);
    let first = insert_all(&node, &wishes).await;
    assert!(first.iter().any(Result::is_err), "no answer was lost");
    let grants = settle(&node, &server, &wishes, first).await;
    wire.lose_next_replies(1);
    let released = join_all(grants.iter().map(|grant| node.release(grant))).await;
    assert!(released.iter().any(Result::is_err), "no answer was lost");
    for (grant, released) in grants.iter().zip(released) {
        match released {
            Ok(released) => assert!(released),
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                insist(async || node.release(grant).await).await;
            }
        }
    }
    assert_eq!(standing(&server), 0);
}

/// Backends test 55: the process that serves the batch is ended in the middle of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_broken_off_is_settled() {
    let server = server().await;
    let node = patient(&server).await;
    server
        .psql(
            DATABASE,
            "CREATE TABLE public.slow (one boolean);
             CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
               IF EXISTS (SELECT FROM public.slow)
                  AND current_query() LIKE '%try_insert_many_1%' THEN
                 PERFORM pg_sleep(60);
               END IF;
               RETURN NULL;
             END $$;
             CREATE TRIGGER slow AFTER UPDATE ON dlock.locks
               FOR EACH ROW EXECUTE FUNCTION public.slow();
             INSERT INTO public.slow VALUES (true)",
        )
        .unwrap();
    let sleeps = "wait_event = 'PgSleep' AND query LIKE '%try_insert_many_1%'";
    for round in 0.. {
        let wishes = wishes(&format!("broken off {round}"));
        let mut inserts = pin!(insert_all(&node, &wishes));
        let asleep = eventually("a batch is under way", || {
            stage::backends(&server, sleeps) > 0
        });
        let gone_alone = tokio::select! {
            biased;
            first = &mut inserts => Some(first),
            () = asleep => None,
        };
        let cut = gone_alone.is_none();
        let first = match gone_alone {
            // On a machine this busy no batch set out in time.
            Some(first) => first,
            None => {
                server.psql(DATABASE, "DELETE FROM public.slow").unwrap();
                assert!(end_backends(&server, sleeps) > 0);
                inserts.await
            }
        };
        for grant in settle(&node, &server, &wishes, first).await {
            assert!(insist(async || node.release(&grant).await).await);
        }
        if cut {
            return;
        }
        assert!(round < 20, "there is never a batch");
    }
}

/// ABANDON-1, INV-09: calls whose callers have gone run to their ends, and what nobody accounts for
/// is ended by the next renewal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dropped_callers_had_asked_for_leaves_nothing() {
    let server = server().await;
    let node = patient(&server).await;
    for patience in [0, 100, 300, 1000, 3000] {
        let wishes = wishes(&format!("dropped after {patience}"));
        let inserts = insert_all(&node, &wishes);
        let patience = Duration::from_micros(patience);
        // Whether some of them were done in time does not matter.
        runtime().timeout(patience, inserts).await.ok();
        let abandon = wishes
            .iter()
            .map(|(key, attempt)| node.store.abandon(key, node.session, *attempt));
        for abandoned in join_all(abandon).await {
            abandoned.unwrap();
        }
        assert_eq!(standing(&server), 0);
    }
    // None of them comes late.
    node.renew(&[]).await.unwrap();
    assert_eq!(standing(&server), 0);
}

/// INSERT-4, INV-08: among many calls at once, the one for a key that somebody else holds is told
/// so, and a release wakes who waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_key_and_a_waiter_are_served_beside_a_batch() {
    let server = server().await;
    let (node, other) = (patient(&server).await, patient(&server).await);
    let mut wishes = wishes("beside");
    let held = other.acquire(&wishes[7].0).await;
    let outcomes = insert_all(&node, &wishes).await;
    let mut mine = Vec::new();
    for (place, outcome) in outcomes.into_iter().enumerate() {
        match (place, outcome.unwrap()) {
            (7, InsertOutcome::Held(Some(holder))) => assert_eq!(holder.token, held.token),
            (7, outcome) => panic!("{outcome:?}"),
            (_, outcome) => mine.push(grant(outcome)),
        }
    }
    let waiting = other.enqueue(&wishes.swap_remove(0).0).await;
    let woken = other.store.await_release(waiting.clone());
    let releases = join_all(mine.iter().map(|grant| node.release(grant)));
    let (woken, released) = tokio::join!(biased; woken, releases);
    woken.unwrap();
    assert!(released.into_iter().all(|released| released.unwrap()));
    let next = other
        .insert(&waiting.key, waiting.attempt, Queue::Join)
        .await;
    grant(next.unwrap());
}

/// A runtime that ends in the midst of batches ends: nobody hands the next one on for ever.
#[test]
fn a_runtime_may_end_in_the_midst_of_batches() {
    let executor = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    };
    let outer = executor();
    let server = outer.block_on(server());
    for round in 0..20_u64 {
        let inner = executor();
        inner.block_on(async {
            let node = patient(&server).await;
            let wishes = wishes(&format!("ended {round}"));
            let limit = Duration::from_millis(round % 5);
            let cut_off = runtime().timeout(limit, insert_all(&node, &wishes)).await;
            drop(cut_off);
        });
        drop(inner);
    }
    let settled = async {
        let node = patient(&server).await;
        let again = grants(&node, "afterwards").await;
        let released = join_all(again.iter().map(|grant| node.release(grant))).await;
        assert!(released.into_iter().all(|released| released.unwrap()));
    };
    outer.block_on(settled);
}
