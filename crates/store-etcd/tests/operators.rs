//! What operators see and do, and what is not ours below our prefix.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Node, granted, key, queued, simulate};
use etcd_kv::{MetadataStore, PutRequest};
use lock_spi::{
    Effect, ErrorKind, FencingToken, InsertOutcome, KeyPrefix, LockStore, Migration, PageRequest,
    Queue, Result, RevokeTarget, Severity,
};

async fn put(node: &Node, name: &str, value: &str) {
    let put = PutRequest::new(format!("/dlock/default/{name}"), value.to_owned());
    node.kv.put(put).await.unwrap();
}

async fn listed(node: &Node, prefix: &str) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    let mut page = PageRequest {
        after: None,
        limit: 2,
    };
    loop {
        let prefix = KeyPrefix::new(prefix).unwrap();
        let found = node.store.list(&prefix, page.clone()).await?;
        assert!(found.entries.len() <= 2);
        keys.extend(found.entries.iter().map(|info| info.key.to_string()));
        let Some(next) = found.next else {
            return Ok(keys);
        };
        page.after = Some(next);
    }
}

/// B127: junk is left out of listings, reported by `diagnose`, and waited for by nobody.
#[test]
fn junk_is_reported_and_waited_for_by_nobody() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        node.take(session, "a").await;
        node.take(session, "z").await;
        for (name, value) in [
            ("lock/path/1", "junk"),
            ("lock/%61", "junk"),
            ("lock/junk", "junk"),
            ("lock/b", "{\"format\":9}"),
            ("wait/z/junk", "junk"),
            ("session/junk", "junk"),
            ("floor/c", "junk"),
            ("other", "junk"),
        ] {
            put(&node, name, value).await;
        }
        assert_eq!(listed(&node, "").await?, ["a", "z"]);
        let admin = node.store.admin().unwrap();
        assert_eq!(admin.waiters(&key("z")).await?, []);
        let sessions = admin.sessions(PageRequest::default()).await?;
        assert_eq!(sessions.entries.len(), 1);
        let findings = admin.diagnose().await?;
        assert_eq!(findings.len(), 1, "{findings:?}");
        let finding = &findings[0];
        assert_eq!(
            (finding.id, finding.severity),
            ("unreadable", Severity::Warning)
        );
        assert!(finding.what.contains("and 3 more"), "{}", finding.what);
        // Of an exact key it is an error, and a revoke clears it.
        let attempt = node.attempt();
        let error = node
            .insert(session, "junk", attempt, Queue::Join)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Protocol, Effect::None)
        );
        let request = node.revoke_request("junk", RevokeTarget::Whoever);
        assert!(node.store.revoke(request).await?.revoked);
        granted(
            node.insert(session, "junk", node.attempt(), Queue::Never)
                .await?,
        );
        Ok(())
    });
}

#[test]
fn a_lock_without_a_lease_a_floor_ahead_and_another_term_are_found() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        node.take(session, "k").await;
        let admin = node.store.admin().unwrap();
        assert_eq!(admin.diagnose().await?, []);
        let lock = cluster.stored("lock/k").unwrap().value;
        put(&node, "lock/copy", std::str::from_utf8(&lock).unwrap()).await;
        let ahead = FencingToken::from_parts(3, 1).unwrap();
        put(&node, "floor/k", &format!("{:020}", ahead.as_u64())).await;
        let findings = admin.diagnose().await?;
        let ids: Vec<_> = findings.iter().map(|finding| finding.id).collect();
        assert_eq!(ids, ["floor_ahead", "lock_without_lease"]);
        assert!(findings[1].what.ends_with(": /dlock/default/lock/copy"));
        Ok(())
    });
}

/// B128, B136: byte-exact prefixes, in the order of the stored names, page by page.
#[test]
fn listings_have_exactly_the_keys_of_a_prefix() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        for text in [
            "a", "a_lock", "a/lock", "a.lock", "ab", "b", "é", "e\u{301}",
        ] {
            node.take(session, text).await;
        }
        assert_eq!(listed(&node, "").await?.len(), 8);
        assert_eq!(listed(&node, "a/").await?, ["a/lock"]);
        assert_eq!(
            listed(&node, "a").await?,
            ["a", "a/lock", "a.lock", "a_lock", "ab"]
        );
        assert_eq!(listed(&node, "é").await?, ["é"]);
        assert_eq!(listed(&node, "c").await?, Vec::<String>::new());
        Ok(())
    });
}

#[test]
fn page_tokens_of_other_listings_are_refused() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        for text in ["a1", "a2", "b1"] {
            node.take(session, text).await;
        }
        let page = |after, limit| PageRequest { after, limit };
        let a = KeyPrefix::new("a").unwrap();
        let b = KeyPrefix::new("b").unwrap();
        let next = node.store.list(&a, page(None, 1)).await?.next;
        assert!(next.is_some());
        let junk = Some(lock_spi::PageToken("junk".into()));
        for refused in [
            node.store.list(&b, page(next, 1)).await,
            node.store.list(&a, page(junk.clone(), 1)).await,
            node.store.list(&a, page(None, 0)).await,
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidRequest);
        }
        let refused = node.store.revocations(&key("a1"), page(junk, 1)).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidRequest);
        Ok(())
    });
}

#[test]
fn revocations_are_listed_newest_first_page_by_page() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        let mut ids = Vec::new();
        for _ in 0..5 {
            node.take(session, "k").await;
            let request = node.revoke_request("k", RevokeTarget::Whoever);
            ids.push(request.id);
            node.store.revoke(request).await?;
        }
        ids.reverse();
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = PageRequest { after, limit: 2 };
            let page = node.store.revocations(&key("k"), page).await?;
            found.extend(page.entries.iter().map(|record| record.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, ids);
        Ok(())
    });
}

#[test]
fn waiters_are_told_in_their_order() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let session = node.session().await;
        node.take(session, "k").await;
        let mut attempts = Vec::new();
        for _ in 0..4 {
            attempts.push(node.queue(session, "k").await.1);
        }
        let waiters = node.store.admin().unwrap().waiters(&key("k")).await?;
        let found: Vec<_> = waiters.iter().map(|waiter| waiter.attempt).collect();
        assert_eq!(found, attempts);
        assert_eq!(waiters[3].place.ahead, Some(3));
        let info = node.store.read(&key("k")).await?;
        assert_eq!(info.waiter_count, Some(4));
        Ok(())
    });
}

#[test]
fn one_format_needs_no_migration_and_a_later_one_is_refused() {
    simulate(async |cluster| {
        let node = cluster.node().await;
        let admin = node.store.admin().unwrap();
        let (found, wanted) = (Some(1), 1);
        assert_eq!(admin.migration().await?, Migration { found, wanted });
        assert_eq!(admin.migrate().await?, Migration { found, wanted });
        put(&node, "meta", "{\"format\":2}").await;
        assert_eq!(admin.migration().await?.found, Some(2));
        assert_eq!(
            admin.migrate().await.unwrap_err().kind(),
            ErrorKind::Incompatible
        );
        let config = store_etcd::EtcdConfig::default();
        let (kv, runtime) = (node.kv.clone(), node.runtime.clone());
        let later = store_etcd::EtcdLockStore::open(kv, runtime, config).await;
        assert_eq!(later.unwrap_err().kind(), ErrorKind::Incompatible);
        Ok(())
    });
}

/// A full store: what only deletes goes on, and nobody loses a place because of it.
#[test]
fn a_full_store_grants_nothing_and_gives_up_everything() {
    simulate(async |cluster| {
        let node = cluster.node_with_postman().await;
        let session = node.session().await;
        let (held, _) = node.take(session, "held").await;
        let (_, waits) = node.queue(session, "held").await;
        node.kv.fill(true);
        let attempt = node.attempt();
        let error = node
            .insert(session, "k", attempt, Queue::Never)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.effect()),
            (ErrorKind::Exhausted, Effect::Unknown)
        );
        assert!(node.store.extend(&key("held"), held.token).await?.is_some());
        node.store.abandon(&key("k"), session, attempt).await?;
        assert!(node.store.delete_if_owner(&key("held"), held.token).await?);
        let request = node.revoke_request("held", RevokeTarget::Whoever);
        let error = node.store.revoke(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exhausted);
        node.kv.fill(false);
        // The epoch went with the abandon; the next insert puts it anew.
        let taken = granted(node.insert(session, "held", waits, Queue::Join).await?);
        node.take(session, "k").await;
        let outcome = node
            .insert(session, "held", node.attempt(), Queue::Join)
            .await?;
        queued(outcome);
        let late = node.insert(session, "k", attempt, Queue::Never).await?;
        assert_eq!(late, InsertOutcome::Ended);
        assert_eq!(node.holder("held").await, Some(taken.token));
        cluster.assert_all_leased();
        Ok(())
    });
}
