//! What is written, and what stays.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lock_spi::{GrantRef, InsertOutcome, KeepAliveRequest, Queue};

use super::Ledger;
use super::client::{Client, key};

const MANY: usize = 100;
const GRANTS: usize = 10;

pub(super) async fn held(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let a = key("a")?;
    holder.grant(&a).await?;
    let asking = Client::new(place).await?;
    let mark = place.mark().await?;
    for _ in 0..MANY {
        let refused = asking.insert(&a, asking.attempt(), Queue::Never).await?;
        ensure!(matches!(refused, InsertOutcome::Held(_)), "{refused:?}");
    }
    let written = place.written_since(mark).await?;
    let moved = place.mark().await? - mark;
    Ok(format!(
        "{MANY} refusals write {written} entries and make {moved} entries in the store's log"
    ))
}

pub(super) async fn keeping(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let mut grants = Vec::new();
    let mut attempts = Vec::new();
    for number in 0..GRANTS {
        let key = key(&format!("lock {number}"))?;
        let attempt = holder.attempt();
        let outcome = holder.insert(&key, attempt, Queue::Never).await?;
        let InsertOutcome::Granted(grant) = outcome else {
            anyhow::bail!("not granted: {outcome:?}");
        };
        let token = grant.token;
        grants.push(GrantRef { key, token });
        attempts.push(attempt);
    }
    let mark = place.mark().await?;
    let request = KeepAliveRequest {
        session: holder.lease.session,
        grants,
        attempts,
    };
    let kept = holder.store.keep_alive(request).await?;
    ensure!(
        kept.context("the session is gone")?.gone.is_empty(),
        "not kept"
    );
    let written = place.written_since(mark).await?;
    Ok(format!(
        "{GRANTS} grants kept by one call, {written} entries written"
    ))
}

pub(super) async fn stored_after_release(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    holder.grant_and_release(&key("a")?).await?;
    let open = named(place).await?;
    holder.store.close_session(holder.lease.session).await?;
    Ok(format!(
        "{open}; its session closed: {}",
        named(place).await?
    ))
}

pub(super) async fn stored_after_revoke(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let a = key("a")?;
    holder.grant(&a).await?;
    holder.revoke(&a).await?;
    let open = named(place).await?;
    holder.store.close_session(holder.lease.session).await?;
    Ok(format!(
        "{open}; its session closed: {}",
        named(place).await?
    ))
}

/// What is stored, the same counted.
async fn named(place: &dyn Ledger) -> Result<String> {
    let mut counts = BTreeMap::new();
    for name in place.stored().await? {
        *counts.entry(name).or_insert(0) += 1;
    }
    let names = counts.into_iter().map(|(name, count)| match count {
        1 => name,
        _ => format!("{name} ({count})"),
    });
    Ok(names.collect::<Vec<_>>().join(", "))
}
