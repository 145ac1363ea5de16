//! What time does: ttls, expiry, waiting.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lock_spi::{InsertOutcome, Queue, Ttl, WaitRequest};

use super::Ledger;
use super::client::{Client, key};

/// How often it is looked.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Longer than anything takes here that happens at all.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn ttl(place: &dyn Ledger) -> Result<String> {
    let asked = Ttl::new(Duration::from_millis(2_500))?;
    let client = Client::of(place, asked).await?;
    let least = client.store.descriptor().capabilities.min_ttl;
    Ok(format!(
        "asked for {:?}, got {:?}; the least is {:?}",
        asked.as_duration(),
        client.lease.ttl.as_duration(),
        least.as_duration()
    ))
}

/// Two grants of a session that nobody renews.
pub(super) async fn expiry(place: &dyn Ledger) -> Result<String> {
    let observer = Client::new(place).await?;
    let least = observer.store.descriptor().capabilities.min_ttl;
    let dying = Client::of(place, least).await?;
    let (a, b) = (key("a")?, key("b")?);
    dying.grant(&a).await?;
    dying.grant(&b).await?;
    let until = place.runtime().now() + PATIENCE;
    while observer.store.read(&a).await?.holder.is_some() {
        ensure!(place.runtime().now() < until, "it does not expire");
        place.runtime().sleep(LOOK_AGAIN).await;
    }
    let both = observer.store.read(&b).await?.holder.is_none();
    let left = place.stored().await?.len();
    let cleared = observer.store.reap_expired(100).await?;
    let after = place.stored().await?.len();
    let together = match both {
        true => "both grants of a session end in one look",
        false => "one grant of a session ends before the other",
    };
    Ok(format!(
        "{together}; clearing up answers {cleared} and takes {} of {left} stored entries",
        left - after
    ))
}

pub(super) async fn remaining_of_others(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let a = key("a")?;
    holder.grant(&a).await?;
    let observer = Client::new(place).await?;
    let seen = observer.store.read(&a).await?.holder.context("not held")?;
    Ok(match seen.remaining {
        Some(_) => "told",
        None => "not told",
    }
    .to_owned())
}

/// A waiter while the holder releases, and while another dies.
pub(super) async fn wake_up(place: &dyn Ledger) -> Result<String> {
    let waiter = Client::new(place).await?;
    let holder = Client::new(place).await?;
    let least = holder.store.descriptor().capabilities.min_ttl;
    let dying = Client::of(place, least).await?;
    let (a, b) = (key("a")?, key("b")?);
    let held = holder.grant(&a).await?;
    dying.grant(&b).await?;
    for (key, released) in [(&a, true), (&b, false)] {
        let attempt = waiter.attempt();
        let taken = waiter.enqueue(key, attempt).await?;
        let request = WaitRequest {
            key: key.clone(),
            session: waiter.lease.session,
            attempt,
            place: Some(taken),
        };
        let store = std::sync::Arc::clone(&waiter.store);
        let wait = place.runtime();
        let woken = wait.run_to_end(async move { store.await_release(request).await });
        if released {
            place.runtime().sleep(LOOK_AGAIN * 10).await;
            holder.release(&held).await?;
        }
        let woken = place.runtime().timeout(PATIENCE, woken).await;
        woken.context("not woken")??.context("not woken")?;
    }
    Ok("woken by a release and by an expiry".to_owned())
}

/// The first in line keeps its session and does not come.
pub(super) async fn sleeping_head(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let sleeping = Client::new(place).await?;
    let ready = Client::new(place).await?;
    let a = key("a")?;
    let held = holder.grant(&a).await?;
    let (asleep, awake) = (sleeping.attempt(), ready.attempt());
    sleeping.enqueue(&a, asleep).await?;
    ready.enqueue(&a, awake).await?;
    holder.release(&held).await?;
    let begun = place.runtime().now();
    loop {
        let outcome = ready.insert(&a, awake, Queue::Join).await?;
        if matches!(outcome, InsertOutcome::Granted(_)) {
            break;
        }
        let waited = place.runtime().now().saturating_since(begun);
        ensure!(waited < PATIENCE, "never passed over");
        place.runtime().sleep(LOOK_AGAIN * 10).await;
    }
    let waited = place.runtime().now().saturating_since(begun);
    let again = sleeping.insert(&a, asleep, Queue::Join).await?;
    ensure!(again == InsertOutcome::Ended, "not over: {again:?}");
    Ok(match waited >= Duration::from_secs(12) {
        true => "passed over after 12 s or more; its attempt is over",
        false => "passed over sooner than after 12 s; its attempt is over",
    }
    .to_owned())
}
