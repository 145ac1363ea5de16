//! Calls in the middle of which their connection or the server ends.

use std::fmt::Debug;
use std::time::Duration;

use lock_spi::{InsertOutcome, KeyPrefix, LockStore, Queue, Result, SessionId};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use test_servers::{Mode, Postgres};

use crate::stage::{
    DATABASE, Node, TTL, attempt, backends, config, end_backends, eventually, insist, key, opening,
    page, revoking, runtime, server,
};

/// So long that a server can be restarted while calls wait.
const PATIENT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
enum End {
    /// The server ends the sessions that wait.
    Backends,
    Restart(Mode),
    /// Power fails.
    Kill,
}

/// Backends test 55, during: every kind of call is in the middle of its work at once. Each is
/// answered truly or fails as one that may be repeated, and repeated it comes to what it was for,
/// once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_broken_off_are_settled_by_repeating_them() {
    let mut server = server().await;
    let config = config().with_request_timeout(PATIENT);
    let node = Node::with(&server.url(DATABASE), config, TTL).await;
    let restarts = [Mode::Fast, Mode::Immediate].map(End::Restart);
    for end in [End::Backends, restarts[0], restarts[1], End::Kill] {
        break_off(&mut server, &node, end).await;
    }
}

async fn break_off(server: &mut Postgres, node: &Node, end: End) {
    let store = &node.store;
    let held = node.acquire(&key("held")).await;
    let released = node.acquire(&key("released")).await;
    let revoked = node.acquire(&key("revoked")).await;
    let (given_up, abandoned) = (attempt(), key("abandoned"));
    let insert = node.insert(&abandoned, given_up, Queue::Never).await;
    let Ok(InsertOutcome::Granted(surplus)) = insert else {
        panic!("{insert:?}");
    };
    let (wanted, free) = (attempt(), key("free"));
    let opened = SessionId::random(&*runtime());
    let closed = SessionId::random(&*runtime());
    store.open_session(opening(closed, TTL)).await.unwrap();
    let wish = revoking(&revoked.key);
    let all = KeyPrefix::default();
    let named = [&held, &released, &revoked, &surplus];

    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    let everything = "BEGIN; LOCK TABLE dlock.sessions, dlock.locks, dlock.revocations";
    sqlx::raw_sql(everything).execute(&mut other).await.unwrap();
    let calls = async {
        tokio::join!(
            store.open_session(opening(opened, TTL)),
            store.close_session(closed),
            node.renew(&named),
            node.insert(&free, wanted, Queue::Never),
            store.extend(&held.key, held.token),
            node.release(&released),
            store.abandon(&abandoned, node.session, given_up),
            store.revoke(wish.clone()),
            store.read(&held.key),
            store.list(&all, page()),
            store.revocations(&held.key, page()),
        )
    };
    let cut = async {
        eventually("all of them wait", || {
            backends(server, "wait_event_type = 'Lock'") == 11
        })
        .await;
        match end {
            End::Backends => {
                assert_eq!(end_backends(server, "wait_event_type = 'Lock'"), 11);
                sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
            }
            End::Restart(mode) => server.restart(mode).unwrap(),
            End::Kill => {
                server.kill().unwrap();
                server.start_again().unwrap();
            }
        }
    };
    let (broken_off, ()) = tokio::join!(calls, cut);
    let (open, close, renew, insert, extend, release, abandon, revoke, read, list, records) =
        broken_off;

    true_or_repeatable("open_session", &open, |lease| lease.session == opened);
    true_or_repeatable("close_session", &close, |()| true);
    true_or_repeatable("keep_alive", &renew, Option::is_some);
    true_or_repeatable("try_insert", &insert, |outcome| {
        matches!(outcome, InsertOutcome::Granted(_))
    });
    true_or_repeatable("extend", &extend, |grant| {
        grant
            .as_ref()
            .is_some_and(|grant| grant.token == held.token)
    });
    true_or_repeatable("delete_if_owner", &release, |released| *released);
    true_or_repeatable("abandon", &abandon, |()| true);
    true_or_repeatable("revoke", &revoke, |outcome| outcome.revoked);
    true_or_repeatable("read", &read, |info| info.holder.is_some());
    true_or_repeatable("list", &list, |page| !page.entries.is_empty());
    true_or_repeatable("revocations", &records, |page| page.entries.is_empty());

    let lease = insist(async || store.open_session(opening(opened, TTL)).await).await;
    assert_eq!(lease.session, opened);
    insist(async || store.close_session(closed).await).await;
    assert!(store.open_session(opening(closed, TTL)).await.is_err());
    let again = insist(async || node.insert(&free, wanted, Queue::Never).await).await;
    let InsertOutcome::Granted(grant) = again else {
        panic!("{end:?}: {again:?}");
    };
    if let Ok(InsertOutcome::Granted(first)) = insert {
        assert_eq!(first.token, grant.token, "granted once");
    }
    assert!(node.stands(&held).await);
    insist(async || node.release(&released).await).await;
    insist(async || store.abandon(&abandoned, node.session, given_up).await).await;
    let ended = node.insert(&abandoned, given_up, Queue::Never).await;
    assert!(matches!(ended, Ok(InsertOutcome::Ended)), "{ended:?}");
    let outcome = insist(async || store.revoke(wish.clone()).await).await;
    assert_eq!(outcome.previous_token, Some(revoked.token));
    let records = store.revocations(&revoked.key, page()).await.unwrap();
    let of_this_wish = records.entries.iter().filter(|record| record.id == wish.id);
    assert_eq!(of_this_wish.count(), 1);
    let standing = server.psql(DATABASE, "SELECT lock_key FROM dlock.grants ORDER BY 1");
    assert_eq!(standing.unwrap(), "free\nheld");
    for grant in [&held, &grant] {
        assert!(insist(async || node.release(grant).await).await);
    }
    insist(async || store.close_session(opened).await).await;
}

fn true_or_repeatable<T: Debug>(what: &str, answer: &Result<T>, is_true: impl FnOnce(&T) -> bool) {
    match answer {
        Ok(outcome) => assert!(is_true(outcome), "{what}: {outcome:?}"),
        Err(error) => assert!(error.is_retryable(), "{what}: {error:?}"),
    }
}

/// Backends test 68, P8: the process that revokes is killed between its steps. Grant, floor and
/// record are those of before; repeated, the revoke is done once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoke_whose_process_is_killed_between_its_steps_is_done_as_a_whole_or_not_at_all() {
    const STATE: &str = "SELECT held, floor IS NOT NULL, (SELECT count(*) FROM dlock.revocations) \
                         FROM dlock.locks WHERE lock_key = 'nightly'";
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let grant = node.acquire(&key("nightly")).await;
    let wish = revoking(&grant.key);
    // It can be read, so that the revoke gets as far as writing its record.
    let mut other = PgConnection::connect(&server.url(DATABASE)).await.unwrap();
    let records = "BEGIN; LOCK TABLE dlock.revocations IN SHARE MODE";
    sqlx::raw_sql(records).execute(&mut other).await.unwrap();
    let kill = async {
        let waiting = "SELECT max(pid) FROM pg_stat_activity \
                       WHERE application_name = 'fencelock' AND wait_event_type = 'Lock'";
        let mut pid = String::new();
        eventually("it waits", || {
            pid = server.psql("postgres", waiting).unwrap();
            !pid.is_empty()
        })
        .await;
        server.kill_backend(pid.parse().unwrap()).unwrap();
        server.await_ready().unwrap();
        server.psql(DATABASE, STATE).unwrap()
    };
    let (revoked, state) = tokio::join!(node.store.revoke(wish.clone()), kill);
    match revoked {
        // It was repeated as soon as the server was back.
        Ok(outcome) => assert_eq!(outcome.previous_token, Some(grant.token)),
        Err(error) => {
            assert!(error.is_retryable(), "{error:?}");
            assert_eq!(state, "t|f|0", "nothing of it");
        }
    }
    let outcome = insist(async || node.store.revoke(wish.clone()).await).await;
    assert!(outcome.revoked);
    assert_eq!(outcome.previous_token, Some(grant.token));
    assert_eq!(server.psql(DATABASE, STATE).unwrap(), "f|t|1");
    assert!(!node.stands(&grant).await);
}
