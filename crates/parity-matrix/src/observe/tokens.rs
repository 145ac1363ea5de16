//! Where tokens come from, and what moves them.

use anyhow::{Context, Result};
use lock_spi::{ErrorKind, FencingToken, InsertOutcome, Queue, RecoverRequest, RecoveryId};

use super::Ledger;
use super::client::{Client, key, relative};

/// Grants of one key and of another, one after the other.
pub(super) async fn source(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let first = client.grant_and_release(&key("a")?).await?;
    let again = client.grant_and_release(&key("a")?).await?;
    let other = client.grant_and_release(&key("b")?).await?;
    let [again, other] = [again, other].map(|token| relative(token, first));
    Ok(format!(
        "`a` t, released, `a` {again}, released, `b` {other}"
    ))
}

pub(super) async fn across_keys(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let mut tokens = Vec::new();
    for round in 0..30 {
        let name = ["a", "b", "c"][round % 3];
        tokens.push(client.grant_and_release(&key(name)?).await?);
    }
    Ok(match tokens.is_sorted() {
        true => "30 grants of three keys, one after the other: their tokens rise",
        false => "30 grants of three keys, one after the other: their tokens do not rise",
    }
    .to_owned())
}

/// A revoke of one key while another is held.
pub(super) async fn floor(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let (a, b) = (key("a")?, key("b")?);
    let first = client.grant(&a).await?;
    let beside = client.grant(&b).await?;
    let outcome = client.revoke(&a).await?;
    let floor = outcome.new_token_floor.context("no floor")?;
    let kept = client.store.extend(&b, beside.token).await?;
    let kept = kept.context("the other key was lost")?.token;
    let anew = client.grant(&a).await?;
    client.release(&beside).await?;
    let other_anew = client.grant(&b).await?;
    let other_floor = client.store.read(&b).await?.floor;
    let told = |token| relative(token, first.token);
    Ok(format!(
        "`a` t, `b` {}; `a` revoked: its floor is {}, its next grant {}; `b` keeps {}, has {} \
         floor, and is {} when released and granted again",
        told(beside.token),
        told(floor),
        told(anew.token),
        told(kept),
        if other_floor.is_some() { "a" } else { "no" },
        told(other_anew.token),
    ))
}

pub(super) async fn gaps(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let a = key("a")?;
    let mut last = client.grant_and_release(&a).await?;
    let mut step = async || -> Result<u64> {
        let next = client.grant_and_release(&a).await?;
        let step = next.as_u64() - last.as_u64();
        last = next;
        Ok(step)
    };
    let plain = [step().await?, step().await?, step().await?];
    drop(Client::new(place).await?);
    let session = step().await?;
    let holder = Client::new(place).await?;
    let held = holder.grant(&key("b")?).await?;
    let grant = step().await?;
    for _ in 0..10 {
        let refused = client
            .insert(&held.key, client.attempt(), Queue::Never)
            .await?;
        anyhow::ensure!(matches!(refused, InsertOutcome::Held(_)), "{refused:?}");
    }
    let refusals = step().await?;
    client.enqueue(&held.key, client.attempt()).await?;
    let place_taken = step().await?;
    Ok(format!(
        "from one grant of a key to its next: {}; with another session opened between them \
         {session}, with one opened and another key granted {grant}, with ten refusals \
         {refusals}, with a place taken {place_taken}",
        plain.map(|step| step.to_string()).join(", "),
    ))
}

/// A recovery of the store.
pub(super) async fn term(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let before = client.grant(&key("a")?).await?.token;
    let admin = client.store.admin().context("no means for operators")?;
    let request = RecoverRequest {
        id: RecoveryId::random(&*client.runtime),
        above: None,
        hold_off: std::time::Duration::ZERO,
    };
    admin.recover(request).await?;
    let after = Client::new(place).await?;
    let after = after.grant(&key("a")?).await?.token;
    Ok(match after.term() > before.term() && after > before {
        true => "by `recover`: the next token is of a higher term",
        false => "not by `recover`",
    }
    .to_owned())
}

/// How far above the newest token the floor is raised.
const AHEAD: u64 = 40;

pub(super) async fn floor_by_hand(place: &dyn Ledger) -> Result<String> {
    let client = Client::new(place).await?;
    let a = key("a")?;
    let before = client.grant_and_release(&a).await?;
    let floor = FencingToken::new(before.as_u64() + AHEAD)?;
    place.raise_floor(&a, floor).await;
    let mut refusals = 0;
    loop {
        match client.insert(&a, client.attempt(), Queue::Never).await {
            Ok(InsertOutcome::Granted(grant)) => {
                anyhow::ensure!(grant.token > floor, "{} was undercut", floor);
                return Ok(match refusals {
                    0 => "granted at once, above the floor".to_owned(),
                    _ => "`FloorViolated`, until the counter has passed the floor".to_owned(),
                });
            }
            Err(error) if error.kind() == ErrorKind::FloorViolated => refusals += 1,
            other => anyhow::bail!("{other:?}"),
        }
    }
}
