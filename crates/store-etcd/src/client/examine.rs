//! Looking at a cluster before anything is known of it: whether it can be reached, and whether locks
//! can be kept in it. What [`StoreAdmin::diagnose`](lock_spi::StoreAdmin::diagnose) finds is part of
//! it, but that needs a store, and a store needs a cluster that is in order.

mod members;
mod namespace;

use std::sync::Arc;

use etcd_kv::KvError;
use lock_spi::{Finding, Result, Runtime, Severity, Ttl};

use super::config::ClientConfig;
use crate::config::EtcdConfig;

/// Looks for whatever an operator should know of a cluster and of one namespace in it, whether or
/// not locks can be kept there.
///
/// Beside what [`diagnose`](lock_spi::StoreAdmin::diagnose) tells there is: members that cannot be
/// reached or have no leader, alarms, versions with bugs that locks can meet, what this user may not
/// do, and whether a session of this ttl would live longer here. One finding is always there: the
/// servers, as a note. A namespace that nobody has used is not made by it.
///
/// # Errors
///
/// `InvalidRequest` for a configuration that makes no sense. What can be found out is a finding, not
/// an error.
///
/// # Cancel safety
///
/// Remote effect: a lease that ends by itself within seconds. On drop: nothing to compensate.
pub async fn examine(
    config: ClientConfig,
    runtime: Arc<dyn Runtime>,
    store: EtcdConfig,
    ttl: Ttl,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if members::look(&config, &*runtime, &mut findings).await? {
        // Bad versions were told; they must not keep us from the rest.
        let config = ClientConfig {
            allow_unsafe_version: true,
            ..config
        };
        namespace::look(config, runtime, store, ttl, &mut findings).await;
    }
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

/// An error with what a call answered. What that came from repeats it, at length.
fn whole(error: &dyn std::error::Error) -> String {
    match error.source().filter(|source| source.is::<KvError>()) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
