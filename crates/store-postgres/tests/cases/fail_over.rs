//! Servers that take over from others: whatever the others handed out is outranked.

use std::fs;

use lock_spi::{ErrorKind, InsertOutcome, LockStore, Queue};
use test_servers::{Mode, Postgres};

use super::support::{Way, take, take_often};
use crate::stage::{DATABASE, Node, attempt, backends, eventually, insist, key, server, url_of};

/// P9, P10: the later one knows nothing of the earlier one, and comes to the same timeline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_standbys_promoted_one_after_the_other_the_later_one_is_ahead() {
    let mut primary = server().await;
    let mut earlier = primary.standby().unwrap();
    let later = primary.standby().unwrap();
    let addresses = [&primary, &earlier, &later].map(Postgres::address);
    let node = Node::at(&url_of(&addresses)).await;
    for standby in [&earlier, &later] {
        standby.catch_up_with(&primary).unwrap();
        standby.cut_replication().unwrap();
    }
    let key = key("nightly");
    let of_primary = take_often(&node, &key, 20).await;
    primary.kill().unwrap();
    earlier.promote().unwrap();
    let first = take(&node, &key).await;
    let stamped = seconds(&earlier);
    assert!(first.token > of_primary.token);
    assert!(node.release(&first).await.unwrap());
    let of_earlier = take_often(&node, &key, 200).await;
    let timeline = timeline(&earlier);
    earlier.kill().unwrap();
    // So that more time has passed than the earlier one granted for.
    eventually("a second has passed", || seconds(&later) > stamped).await;
    later.promote().unwrap();
    let of_later = take(&node, &key).await;
    assert_eq!(self::timeline(&later), timeline);
    assert!(of_later.token > of_earlier.token);
}

fn timeline(server: &Postgres) -> String {
    let timeline = "SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)";
    server.psql(DATABASE, timeline).unwrap()
}

fn seconds(server: &Postgres) -> u64 {
    let seconds = "SELECT floor(extract(epoch FROM clock_timestamp()))";
    server.psql(DATABASE, seconds).unwrap().parse().unwrap()
}

/// P18, B193: nobody has ended the old primary. What the new one never saw is told as gone, and
/// whoever stays at the old one is outranked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_primaries_the_new_one_outranks_the_old_one() {
    let old = server().await;
    let new = old.standby().unwrap();
    let way = Way::to(&old).await;
    let (moves, stays) = (
        Node::at(&way.url()).await,
        Node::at(&old.url(DATABASE)).await,
    );
    let replicated = moves.acquire(&key("replicated")).await;
    new.catch_up_with(&old).unwrap();
    new.cut_replication().unwrap();
    let unseen = moves.acquire(&key("unseen")).await;
    new.promote().unwrap();
    way.lead_to(&new);
    assert!(moves.stands(&replicated).await);
    let kept = insist(async || moves.renew(&[&replicated, &unseen]).await)
        .await
        .unwrap();
    let gone: Vec<_> = kept.gone.iter().map(|gone| gone.token).collect();
    assert_eq!(gone, [unseen.token]);
    let key = key("nightly");
    let newer = take(&moves, &key).await;
    // Later, and nevertheless below.
    let stale = take_often(&stays, &key, 50).await;
    assert!(newer.token > stale.token);
    assert!(newer.token.term() > stale.token.term());
}

/// Backends test 58: a standby is an error that says so, and no connection to it is kept; once it
/// is promoted, the same address serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_moves_to_a_standby_serves_again_once_that_is_promoted() {
    let mut primary = server().await;
    let standby = primary.standby().unwrap();
    let way = Way::to(&primary).await;
    let node = Node::at(&way.url()).await;
    let grant = node.acquire(&key("nightly")).await;
    standby.catch_up_with(&primary).unwrap();
    way.lead_to(&standby);
    for _ in 0..3 {
        let error = node
            .store
            .extend(&grant.key, grant.token)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotLeader, "{error:?}");
        assert!(error.is_retryable());
    }
    eventually("no connection is kept", || backends(&standby, "true") == 0).await;
    primary.kill().unwrap();
    standby.promote().unwrap();
    assert!(node.stands(&grant).await);
    assert!(node.release(&grant).await.unwrap());
    assert!(take(&node, &grant.key).await.token > grant.token);
}

/// F-4, P10: what the old server granted after the dump is outranked; what the dump has stays held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_that_is_restored_elsewhere_goes_on_with_rising_tokens() {
    let old = server().await;
    let node = Node::at(&old.url(DATABASE)).await;
    let dumped = node.acquire(&key("dumped")).await;
    let dump = old.run_program("pg_dump", &[DATABASE]).unwrap();
    let last = take_often(&node, &key("nightly"), 50).await;
    let new = of_another_cluster();
    new.create_database(DATABASE).unwrap();
    new.psql(DATABASE, &dump).unwrap();
    let node = Node::at(&new.url(DATABASE)).await;
    let first = node.acquire(&last.key).await;
    assert!(first.token > last.token);
    assert!(first.token.term() > last.token.term());
    let refused = node.insert(&dumped.key, attempt(), Queue::Never).await;
    let Ok(InsertOutcome::Held(Some(holder))) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(holder.token, dumped.token);
}

/// A server of its own making: all others are copies of one another, and take themselves for the
/// same.
fn of_another_cluster() -> Postgres {
    let mut server = Postgres::start().unwrap();
    server.stop(Mode::Fast).unwrap();
    let file = server.data().join("postgresql.conf");
    let settings = fs::read_to_string(&file).unwrap();
    fs::remove_dir_all(server.data()).unwrap();
    let data = format!("--pgdata={}", server.data().display());
    let initdb = [
        &*data,
        "--username=postgres",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ];
    server.run_program("initdb", &initdb).unwrap();
    fs::write(file, settings).unwrap();
    server.start_again().unwrap();
    server
}

/// F-4, P10: neither system identifier nor timeline tell of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_that_is_restored_in_the_same_cluster_goes_on_with_rising_tokens() {
    let server = server().await;
    let node = Node::at(&server.url(DATABASE)).await;
    let dump = server.run_program("pg_dump", &[DATABASE]).unwrap();
    let last = take_often(&node, &key("nightly"), 50).await;
    let drop = format!("DROP DATABASE {DATABASE} WITH (FORCE)");
    server.psql("postgres", &drop).unwrap();
    server.create_database(DATABASE).unwrap();
    server.psql(DATABASE, &dump).unwrap();
    let node = Node::at(&server.url(DATABASE)).await;
    let first = node.acquire(&last.key).await;
    assert!(first.token > last.token);
    assert!(first.token.term() > last.token.term());
}
