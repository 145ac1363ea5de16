//! Keys are compared byte for byte, and know nothing of each other.

use std::collections::BTreeSet;

use lock_spi::{ErrorKind, KeyPrefix, LockKey, PageRequest, PageToken, Queue};

use crate::scenario::{Stop, Verdict};
use crate::scene::{Node, Scene};
use crate::session::refused;

/// Keys that some store somewhere has confused with another, cut, folded, quoted or lost.
fn corpus() -> Vec<String> {
    let mut texts: Vec<String> = [
        "a",
        "a_lock",
        "a/lock",
        "a.lock",
        "a%2Fb",
        "a/b",
        "a/",
        "/a",
        "A",
        "K",
        "k",
        "a:b",
        "a\"b",
        "a'b",
        "a\\b",
        "sel ect",
        "a ",
        " a",
        "a+b",
        "a*",
        "a?",
        "[a]",
        "{a}",
        "$a",
        "~",
        ".",
        "..",
        "-",
        "_",
        "%",
        "%25",
        "%41",
        "path/1",
        "path/10",
        "path/1/wait",
        "wait/a",
        "lock/a",
        "floor/a",
        "meta",
        "null",
        "0",
        "日本",
        "ß",
        "ss",
        "🔒",
        "émile",
        "\u{e9}",
        "e\u{301}",
        "\u{130}",
        "i\u{307}",
        "\u{feff}a",
        "\u{200b}",
        "\u{ffff}",
        "\u{10ffff}",
        "ab",
        "abc",
        "bc",
        "c",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(LockKey::MAX_BYTES));
    texts.push("x".repeat(LockKey::MAX_BYTES - 1));
    texts.push("é".repeat(LockKey::MAX_BYTES / 2));
    texts.push("/".repeat(LockKey::MAX_BYTES));
    texts
}

async fn listed(node: &Node, prefix: &str, limit: u32) -> Result<Vec<String>, Stop> {
    let prefix = KeyPrefix::new(prefix)?;
    let mut page = PageRequest { after: None, limit };
    let mut keys = Vec::new();
    loop {
        let answer = node.store.list(&prefix, page.clone()).await?;
        assert!(answer.entries.len() <= limit.try_into().unwrap_or(usize::MAX));
        keys.extend(
            answer
                .entries
                .iter()
                .map(|info| info.key.as_str().to_owned()),
        );
        match answer.next {
            Some(next) => page.after = Some(next),
            None => return Ok(keys),
        }
    }
}

fn once_each(keys: Vec<String>) -> BTreeSet<String> {
    let count = keys.len();
    let set: BTreeSet<_> = keys.into_iter().collect();
    assert_eq!(set.len(), count, "each once");
    set
}

/// INSERT-1, LIST-1, B127, B128, B130, B134, B136, B137: every key of the corpus is a lock of its
/// own: held, queued for, extended, revoked and released without touching another; nothing is left.
pub(crate) async fn keys_know_nothing_of_each_other(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let (session, other) = (node.session("holder").await?, node.session("other").await?);
    let mut holdings = Vec::new();
    for text in corpus() {
        let key = LockKey::new(&text)?;
        assert_eq!(node.holder(&key).await?, None, "{text:?} is free");
        holdings.push(session.acquire(&key).await?);
    }
    for holding in &holdings {
        holding.stands().await?;
        let read = node.store.read(holding.key()).await?;
        assert_eq!(read.key, *holding.key());
        assert_eq!(
            read.holder.map(|holder| holder.token),
            Some(holding.token())
        );
    }
    let mut waiters = Vec::new();
    for holding in holdings.iter().step_by(3) {
        waiters.push(other.enqueue(holding.key()).await?);
    }
    for holding in &holdings {
        assert!(holding.release().await?, "{:?}", holding.key());
    }
    for waiter in waiters {
        let next = waiter.take().await?;
        assert_eq!(*next.key(), waiter.key);
        assert!(next.release().await?);
    }
    scene.nothing_is_left_but(2).await
}

/// LIST-1, B128, B136: a listing shows exactly the user's keys that start with the prefix, byte for
/// byte.
pub(crate) async fn a_listing_shows_exactly_the_keys_with_the_prefix(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let texts = corpus();
    for text in &texts {
        session.acquire(&LockKey::new(text)?).await?;
    }
    // Not a lock that is held: it only has a floor.
    node.revoke(&LockKey::new("a/free")?).await?;
    for prefix in [
        "", "a", "a/", "a_", "A", "path/1", "é", "e", "\u{e9}", "日", "x", "%", "%2", "wait/", "~",
        "none",
    ] {
        let expected: BTreeSet<_> = texts
            .iter()
            .filter(|text| text.starts_with(prefix))
            .cloned()
            .collect();
        let told = once_each(listed(&node, prefix, 1_000).await?);
        assert_eq!(told, expected, "prefix {prefix:?}");
    }
    Ok(())
}

/// LIST-2: whatever the page size, and whatever comes and goes meanwhile, what stands throughout is
/// listed once, in the same order.
pub(crate) async fn what_stands_throughout_is_listed_once(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let standing: Vec<_> = (0..25).map(|at| format!("standing/{at}")).collect();
    for text in &standing {
        session.acquire(&LockKey::new(text)?).await?;
    }
    let in_order = listed(&node, "", 100).await?;
    for limit in [1, 2, 7, 25, 26, u32::MAX] {
        assert_eq!(listed(&node, "", limit).await?, in_order);
    }
    let mut page = PageRequest {
        after: None,
        limit: 3,
    };
    let mut told = Vec::new();
    for round in 0.. {
        let passing = session
            .acquire(&LockKey::new(format!("passing/{round}"))?)
            .await?;
        let later = session
            .acquire(&LockKey::new(format!("z/{round}"))?)
            .await?;
        let answer = node.store.list(&KeyPrefix::default(), page.clone()).await?;
        told.extend(
            answer
                .entries
                .into_iter()
                .map(|info| info.key.as_str().to_owned()),
        );
        assert!(passing.release().await?);
        assert!(later.release().await?);
        match answer.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    told.retain(|text| text.starts_with("standing/"));
    assert_eq!(told, in_order);
    Ok(())
}

/// LIST-1: what a listing tells of a lock is what its holder shows.
pub(crate) async fn a_listing_tells_who_holds_what(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let (first, second) = (LockKey::new("one")?, LockKey::new("two")?);
    let holdings = [
        session.acquire(&first).await?,
        session.acquire(&second).await?,
    ];
    let page = node
        .store
        .list(&KeyPrefix::default(), PageRequest::default())
        .await?;
    assert_eq!(page.next, None);
    assert_eq!(page.entries.len(), holdings.len());
    for info in page.entries {
        let held = holdings.iter().find(|holding| *holding.key() == info.key);
        let token = info.holder.as_ref().map(|holder| holder.token);
        assert_eq!(token, held.map(crate::session::Holding::token));
        let owner = info.holder.map(|holder| holder.owner);
        assert_eq!(owner.as_ref(), Some(session.owner()));
    }
    Ok(())
}

/// LIST-2, RECORDS-1: a page token of another's making, and a page of nothing, are refused.
pub(crate) async fn pages_that_make_no_sense_are_refused(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let key = LockKey::new("nightly")?;
    node.session("holder").await?.acquire(&key).await?;
    node.revoke(&key).await?;
    let nothing = PageRequest {
        after: None,
        limit: 0,
    };
    let forged = PageRequest {
        after: Some(PageToken("not \u{1f512} one of mine / %".to_owned())),
        limit: 10,
    };
    for page in [nothing, forged] {
        let listing = node.store.list(&KeyPrefix::default(), page.clone()).await;
        refused(listing, ErrorKind::InvalidRequest);
        let records = node.store.revocations(&key, page).await;
        refused(records, ErrorKind::InvalidRequest);
    }
    Ok(())
}

/// INSERT-1, B131: what is no key in one store is none in any: it is refused before any store sees
/// it, by an error that names it.
pub(crate) async fn what_is_no_key_reaches_no_store(scene: Scene) -> Verdict {
    let node = scene.node().await;
    let session = node.session("holder").await?;
    let too_long = "x".repeat(LockKey::MAX_BYTES + 1);
    for text in ["", "\0", "a\0b", "a\nb", "\u{7f}", "\u{85}", &too_long] {
        let Err(refusal) = LockKey::new(text) else {
            panic!("{text:?} was taken");
        };
        assert!(refusal.to_string().starts_with("key "), "{refusal}");
    }
    session.acquire(&LockKey::new("a key")?).await?;
    scene.nothing_is_left_but(2).await
}

/// INSERT-1: namespaces aside, a key is the same lock in every process.
pub(crate) async fn every_process_means_the_same_lock_by_a_key(scene: Scene) -> Verdict {
    let (here, there) = (scene.node().await, scene.node().await);
    let (session, other) = (here.session("holder").await?, there.session("other").await?);
    for text in corpus() {
        let key = LockKey::new(&text)?;
        let holding = session.acquire(&key).await?;
        let refusal = other.insert(&key, other.attempt(), Queue::Never).await?;
        crate::session::held_by(&refusal, &holding);
        assert!(holding.release().await?);
    }
    Ok(())
}
