//! What was answered is on the disk, and where it must be on another one as well, what waits for
//! that holds up nobody else.

use lock_spi::{Effect, LockStore};
use test_servers::Mode;
use test_servers::Postgres;

use crate::stage::{
    DATABASE, Node, backends, eventually, insist, key, server, unavailable, with_schema,
};

/// Backends test 46, P7, F-9: the role's commits do not wait for the disk, as a table of somebody
/// else shows; those of locks do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_survives_a_crash_although_the_role_does_not_wait_for_the_disk() {
    let builder = Postgres::builder().setting("wal_writer_delay", "10s");
    let mut server = with_schema(builder.start().unwrap()).await;
    let set_up = "ALTER ROLE postgres SET synchronous_commit = off; CREATE TABLE witness (id int)";
    server.psql(DATABASE, set_up).unwrap();
    let node = Node::at(&server.url(DATABASE)).await;
    let key = key("nightly");
    let mut witnesses_lost = 0;
    for round in 0..4 {
        let last = node.acquire(&key).await;
        let is_held = round % 2 == 0;
        if !is_held {
            assert!(node.release(&last).await.unwrap());
        }
        let witness = format!("INSERT INTO witness VALUES ({round})");
        server.psql(DATABASE, &witness).unwrap();
        server.restart(Mode::Immediate).unwrap();
        let witness = format!("SELECT count(*) FROM witness WHERE id = {round}");
        witnesses_lost += usize::from(server.psql(DATABASE, &witness).unwrap() == "0");
        let info = insist(async || node.store.read(&key).await).await;
        let holder = info.holder.map(|holder| holder.token);
        assert_eq!(holder, is_held.then_some(last.token), "round {round}");
        if is_held {
            assert!(insist(async || node.release(&last).await).await);
        }
        let next = node.acquire(&key).await;
        assert!(next.token > last.token);
        assert!(node.release(&next).await.unwrap());
    }
    assert!(witnesses_lost > 0, "nothing would have been noticed");
}

/// Backends test 61, P16, P17: each commit waits for itself alone. Nothing waits for a row or for
/// the queue of notifications, reading goes on, and so do other databases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_that_stalls_holds_up_each_commit_by_itself() {
    let server = server().await;
    let standby = server.standby().unwrap();
    server.create_database("other").unwrap();
    server
        .psql("other", "CREATE TABLE log (entry text)")
        .unwrap();
    let node = Node::at(&server.url(DATABASE)).await;
    let (one, two) = (
        node.acquire(&key("one")).await,
        node.acquire(&key("two")).await,
    );
    let kept = node.acquire(&key("kept")).await;
    node.enqueue(&one.key).await;
    standby.catch_up_with(&server).unwrap();
    let synchronous = "ALTER SYSTEM SET synchronous_standby_names = 'standby'";
    server.psql("postgres", synchronous).unwrap();
    server.psql("postgres", "SELECT pg_reload_conf()").unwrap();
    eventually("the standby is synchronous", || {
        let state = "SELECT sync_state FROM pg_stat_replication";
        server.psql("postgres", state).unwrap() == "sync"
    })
    .await;
    // From here on both know of it.
    assert!(node.stands(&kept).await);
    standby.cut_replication().unwrap();
    let (one_ends, two_ends) = tokio::join!(
        unavailable("release", node.release(&one)),
        unavailable("release", node.release(&two)),
    );
    assert_eq!((one_ends, two_ends), (Effect::Unknown, Effect::Unknown));
    // One that goes with the other is held up with it.
    let held_up = backends(&server, "wait_event = 'SyncRep'");
    assert!((1..=2).contains(&held_up), "{held_up} commits");
    assert_eq!(backends(&server, "wait_event_type = 'Lock'"), 0);
    let info = node.store.read(&kept.key).await.unwrap();
    assert_eq!(info.holder.map(|holder| holder.token), Some(kept.token));
    let notify = "SET synchronous_commit = local; SET lock_timeout = '5s'; BEGIN; \
                  INSERT INTO log VALUES ('entry'); NOTIFY somebody; COMMIT";
    server.psql("other", notify).unwrap();
    standby.heal_replication().unwrap();
    for grant in [&one, &two] {
        insist(async || node.release(grant).await).await;
        assert!(node.store.read(&grant.key).await.unwrap().holder.is_none());
    }
    assert!(node.stands(&kept).await);
}
