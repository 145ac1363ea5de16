//! One namespace, by the means that a store has.

use std::sync::Arc;
use std::time::Duration;

use etcd_kv::{
    Compare, Consistency, DeleteRequest, KeyRange, KvError, KvErrorKind, LeaseId, MetadataStore,
    RangeRequest, Txn,
};
use lock_spi::{ErrorKind, Finding, Result, Runtime, SessionId, Severity, StoreAdmin, Ttl};

use super::{finding, whole};
use crate::client::config::ClientConfig;
use crate::client::store::EtcdClient;
use crate::codec::KeySpace;
use crate::config::EtcdConfig;
use crate::store::EtcdLockStore;

pub(super) async fn look(
    config: ClientConfig,
    runtime: Arc<dyn Runtime>,
    store: EtcdConfig,
    ttl: Ttl,
    findings: &mut Vec<Finding>,
) {
    let etcd = match EtcdClient::connect(config, Arc::clone(&runtime)).await {
        Ok(etcd) => etcd,
        Err(error) => {
            findings.push(unusable(&error));
            return;
        }
    };
    findings.extend(least_ttl(&etcd, &*runtime, ttl).await);
    let keys = KeySpace::new(store.namespace());
    match rights(&etcd, &keys, &store).await {
        Ok(None) => {}
        Ok(denied) => {
            findings.extend(denied);
            return;
        }
        Err(error) => {
            findings.push(unusable(&lock_error(error)));
            return;
        }
    }
    match etcd.get(keys.meta(), Consistency::Linearizable).await {
        Ok(found) if found.kv.is_none() => findings.push(finding(
            "unused_namespace",
            Severity::Note,
            format!("nobody has used the namespace {} yet", store.namespace()),
            "nothing; the first client makes it",
        )),
        Ok(_) => match of_store(etcd, runtime, store).await {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(unusable(&error)),
        },
        Err(error) => findings.push(unusable(&lock_error(error))),
    }
}

async fn of_store(
    etcd: EtcdClient,
    runtime: Arc<dyn Runtime>,
    config: EtcdConfig,
) -> Result<Vec<Finding>> {
    let store = EtcdLockStore::open(etcd, runtime, config).await?;
    store.diagnose().await
}

/// Whether a session of this ttl would live longer here; found out by a lease of one second.
async fn least_ttl(etcd: &EtcdClient, runtime: &dyn Runtime, ttl: Ttl) -> Option<Finding> {
    let id = LeaseId(SessionId::random(runtime).as_i64());
    let granted = etcd.lease_grant(id, 1).await.ok()?;
    // Unless this succeeds it ends by itself.
    drop(etcd.lease_revoke(id).await);
    let least = Duration::from_secs(granted.ttl.unsigned_abs());
    (ttl.as_duration() < least).then(|| {
        finding(
            "ttl_lengthened",
            Severity::Warning,
            format!("sessions live for at least {least:?} here, not for {ttl}"),
            "choose a longer ttl, or lower --election-timeout of the servers: the least is one and a \
             half of it",
        )
    })
}

/// Whether all of the namespace may be read and written; nothing is changed by asking.
async fn rights(
    etcd: &EtcdClient,
    keys: &KeySpace,
    store: &EtcdConfig,
) -> Result<Option<Finding>, KvError> {
    let all = KeyRange::prefix(keys.root());
    let read = RangeRequest {
        limit: Some(1),
        keys_only: true,
        ..RangeRequest::new(all.clone())
    };
    // No revision is below zero; but rights are looked at before anything is compared.
    let never = Compare::create_revision(keys.nothing(), -1);
    let write = Txn::when([never]).then([DeleteRequest::new(all).into()]);
    let mut denied = Vec::new();
    if is_denied(etcd.range(read).await.map(drop))? {
        denied.push("read");
    }
    let written = match etcd.txn(write).await {
        // That is told as an alarm.
        Err(error) if error.kind() == KvErrorKind::NoSpace => Ok(()),
        answer => answer.map(drop),
    };
    if is_denied(written)? {
        denied.push("write");
    }
    if denied.is_empty() {
        return Ok(None);
    }
    let root = keys.root();
    let root = String::from_utf8_lossy(&root);
    Ok(Some(finding(
        "missing_grants",
        Severity::Critical,
        format!(
            "this user may not {} what begins with {root}, which is all of the namespace {}",
            denied.join(" nor "),
            store.namespace()
        ),
        format!("etcdctl role grant-permission ROLE --prefix=true readwrite {root}"),
    )))
}

fn is_denied(answer: Result<(), KvError>) -> Result<bool, KvError> {
    match answer {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == KvErrorKind::Denied => Ok(true),
        Err(error) => Err(error),
    }
}

fn lock_error(error: KvError) -> lock_spi::Error {
    crate::error::from_kv(error)
}

/// Why no store can be opened.
fn unusable(error: &lock_spi::Error) -> Finding {
    let (id, what_to_do) = match error.kind() {
        ErrorKind::Denied => ("denied", "check user, password and certificates"),
        ErrorKind::Incompatible => ("other_format", "update this program, or whoever wrote it"),
        ErrorKind::NotLeader => ("no_leader", "bring a majority of the members up"),
        _ => (
            "unusable",
            "see what the servers have written to their logs",
        ),
    };
    let what = format!("locks cannot be kept here: {}", whole(error));
    finding(id, Severity::Critical, what, what_to_do)
}
