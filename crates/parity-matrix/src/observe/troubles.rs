//! Answers that are lost while something else happens.

use anyhow::{Context, Result, ensure};
use lock_spi::{InsertOutcome, Queue};

use super::Ledger;
use super::client::{Client, key};

/// So many that the store cannot learn of its grant within the call.
const ALL: u32 = 1_000;

fn told_of(outcome: &InsertOutcome) -> String {
    match outcome {
        InsertOutcome::Granted(_) => "granted anew",
        InsertOutcome::Ended => "`Ended`",
        InsertOutcome::Held(_) => "`Held`",
        InsertOutcome::Queued(_) => "`Queued`",
    }
    .to_owned()
}

pub(super) async fn lost_and_revoked(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let other = Client::new(place).await?;
    let a = key("a")?;
    let attempt = holder.attempt();
    let faults = holder.faults.as_ref().context("no faults")?;
    faults.lose_next_replies(ALL);
    let unanswered = holder.insert(&a, attempt, Queue::Never).await;
    faults.heal();
    ensure!(unanswered.is_err(), "answered: {unanswered:?}");
    let granted = other.revoke(&a).await?;
    ensure!(granted.revoked, "it was not granted");
    let adopted = other.store.adopt_session(holder.lease.session).await?;
    ensure!(adopted.is_some(), "the session is gone");
    let request = holder.request(&a, attempt, Queue::Never);
    Ok(told_of(&other.store.try_insert(request).await?))
}

pub(super) async fn lost_and_deleted(place: &dyn Ledger) -> Result<String> {
    let holder = Client::new(place).await?;
    let a = key("a")?;
    let attempt = holder.attempt();
    let faults = holder.faults.as_ref().context("no faults")?;
    faults.lose_next_replies(ALL);
    let unanswered = holder.insert(&a, attempt, Queue::Never).await;
    faults.heal();
    ensure!(unanswered.is_err(), "answered: {unanswered:?}");
    place.delete_lock(&a).await;
    Ok(told_of(&holder.insert(&a, attempt, Queue::Never).await?))
}
