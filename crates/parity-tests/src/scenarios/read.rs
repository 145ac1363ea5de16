//! What readers are told.

use lock_spi::{LockKey, Payload, Queue};

use crate::scenario::Verdict;
use crate::scene::{PATIENCE, Scene};
use crate::session::granted;

/// READ-1, B148: reading and listing move no tokens and change nothing, however often.
pub(crate) async fn reading_changes_nothing(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let key = LockKey::new("nightly")?;
    let holding = here.session("holder").await?.acquire(&key).await?;
    let waiter = there.session("waiter").await?.enqueue(&key).await?;
    let before = scene.operator().residue().await;
    for node in [&here, &there] {
        for _ in 0..10 {
            let read = node.holder(&key).await?.map(|holder| holder.token);
            assert_eq!(read, Some(holding.token()));
            let page = node
                .store
                .list(
                    &lock_spi::KeyPrefix::default(),
                    lock_spi::PageRequest::default(),
                )
                .await?;
            assert_eq!(page.entries.len(), 1);
        }
    }
    assert_eq!(scene.operator().residue().await, before);
    holding.stands().await?;
    assert!(holding.release().await?);
    let next = waiter.take().await?;
    assert!(next.token() > holding.token());
    Ok(())
}

/// READ-1: of a key that nobody ever held nothing is known, and it is no error.
pub(crate) async fn a_key_never_held_reads_as_free(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("never held")?;
    let info = node.store.read(&key).await?;
    assert_eq!(info.key, key);
    assert_eq!(info.holder, None);
    assert_eq!(info.floor, None);
    assert_eq!(info.waiter_count.unwrap_or(0), 0);
    scene.nothing_is_left_but(0).await
}

/// READ-1: a reader sees how many wait, as they come and go.
pub(crate) async fn a_reader_sees_how_many_wait(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    let holding = node.session("holder").await?.acquire(&key).await?;
    let session = node.session("waiting").await?;
    let shows = async |count: u32| {
        scene
            .eventually("the number of waiters", PATIENCE, async || {
                let told = node.store.read(&key).await?.waiter_count;
                Ok(told.unwrap_or(count) == count)
            })
            .await
    };
    shows(0).await?;
    let first = session.enqueue(&key).await?;
    shows(1).await?;
    let second = session.enqueue(&key).await?;
    shows(2).await?;
    second.abandon().await?;
    shows(1).await?;
    assert!(holding.release().await?);
    first.take().await?;
    shows(0).await
}

/// READ-1: the longest payload comes back as it was, byte for byte, and so does an empty one.
pub(crate) async fn payloads_come_back_as_they_were(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let all_bytes: Vec<u8> = (0..=u8::MAX).cycle().take(Payload::MAX_BYTES).collect();
    for (at, bytes) in [
        all_bytes,
        Vec::new(),
        vec![0],
        b"{\"json\":\"\\u0000\"}".to_vec(),
    ]
    .into_iter()
    .enumerate()
    {
        let key = LockKey::new(format!("payload {at}"))?;
        let mut request = session.insert_request(&key, session.attempt(), Queue::Never);
        request.payload = Payload::new(bytes.clone())?;
        let grant = granted(node.store.try_insert(request).await?);
        let read = node.holder(&key).await?;
        let Some(holder) = read else {
            panic!("{} is held", grant.token);
        };
        assert_eq!(holder.payload.as_bytes(), bytes);
    }
    Ok(())
}

/// READ-1: owners are told as they are, in whatever script, empty and at their longest.
pub(crate) async fn owners_come_back_as_they_are(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let longest = "é".repeat(lock_spi::Owner::MAX_BYTES / 2);
    for owner in ["", "host:4711", "日本 \"quoted\" \\ '%", &longest] {
        let session = node.session(owner).await?;
        let key = LockKey::new("nightly")?;
        let holding = session.acquire(&key).await?;
        let read = node.holder(&key).await?.map(|holder| holder.owner);
        assert_eq!(read.as_ref(), Some(session.owner()));
        let outcome = node.revoke(&key).await?;
        assert_eq!(outcome.previous_owner.as_ref(), Some(session.owner()));
        assert_eq!(outcome.previous_token, Some(holding.token()));
    }
    Ok(())
}
