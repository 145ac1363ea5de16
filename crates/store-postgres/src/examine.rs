//! Looking at a database before anything is known of it: whether it can be reached, and whether
//! locks can be kept in it. What [`StoreAdmin::diagnose`](lock_spi::StoreAdmin::diagnose) finds is
//! part of it, but that needs a store, and a store needs a database that is in order.

mod clock;
mod hosts;
mod rights;
mod schema;
mod version;

use std::sync::Arc;
use std::time::Duration;

use lock_spi::{Effect, Elapsed, Finding, Result, Severity};

use self::hosts::Reached;
use crate::client::PostgresClient;
use crate::error::{task_lost, timed_out};

/// How long the whole of it may take.
const LIMIT: Duration = Duration::from_secs(15);

/// Looks for whatever an operator should know of a database, whether or not locks can be kept in it.
///
/// Beside what [`diagnose`](lock_spi::StoreAdmin::diagnose) tells there is: hosts that cannot be
/// reached, a pooler in between, standbys alone, the server's version, its clock, the schema, and
/// what this role may not do. One finding is always there: the server, as a note.
///
/// # Errors
///
/// `InvalidRequest` for a configuration that makes no sense, and `Unavailable` when a server that was
/// reached ceased to answer. What can be found out is a finding, not an error.
///
/// # Cancel safety
///
/// Remote effect: cannot have happened. On drop: it runs to its end.
pub async fn examine(client: &PostgresClient) -> Result<Vec<Finding>> {
    let runtime = Arc::clone(client.runtime());
    let (client, clock) = (client.clone(), Arc::clone(&runtime));
    let task = runtime.run_to_end(async move {
        let done = clock.timeout(LIMIT, Box::pin(all_of(&client))).await;
        done.unwrap_or_else(|Elapsed| Err(timed_out(Effect::None)))
    });
    task.await.map_err(task_lost)?
}

async fn all_of(client: &PostgresClient) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let reached = hosts::reach(client, &mut findings).await?;
    let Some(Reached {
        host,
        mut connection,
    }) = reached
    else {
        return Ok(findings);
    };
    findings.extend(version::look(&mut connection, &host, &**client.runtime()).await?);
    findings.extend(clock::look(&mut connection, &**client.runtime()).await?);
    let Some(known) = rights::look(&mut connection, &mut findings).await? else {
        return Ok(findings);
    };
    findings.extend(schema::look(&mut connection, &known).await?);
    Ok(findings)
}

fn finding(
    id: &'static str,
    severity: Severity,
    what: impl Into<String>,
    what_to_do: impl Into<String>,
) -> Finding {
    Finding {
        id,
        severity,
        what: what.into(),
        what_to_do: what_to_do.into(),
    }
}
