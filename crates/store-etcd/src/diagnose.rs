//! Looking for what an operator should know.

use std::collections::BTreeMap;

use etcd_kv::{KeyValue, MetadataStore, RangeRequest};
use lock_spi::{FencingToken, Finding, Result, Severity};

use crate::codec::{
    LockEntry, Name, RevocationValue, SessionValue, TicketValue, Value, decode_floor, range_after,
    token,
};
use crate::core::Core;
use crate::meta::Meta;

/// So many keys are read at once.
const KEYS_AT_ONCE: u32 = 1000;
/// So many names of one kind of finding are told; the rest is counted.
const NAMES_TOLD: usize = 5;

/// A kind of finding about stored keys.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Trouble {
    FloorAhead,
    Immortal,
    OtherTerm,
    Unreadable,
}

pub(crate) async fn diagnose<M: MetadataStore>(core: &Core<M>) -> Result<Vec<Finding>> {
    let limit = core.config.request_timeout();
    let (meta, header) = core.read_meta(limit).await?;
    let counter = token(meta.value.term, header.revision)?;
    let mut findings = of_namespace(&meta, header.cluster_id, counter);
    let mut troubles: BTreeMap<Trouble, Vec<String>> = BTreeMap::new();
    let below = core.keys.root();
    let mut after = None;
    loop {
        let request = RangeRequest {
            limit: Some(KEYS_AT_ONCE),
            ..RangeRequest::new(range_after(&below, after.as_deref()))
        };
        // What a cluster that went back holds is worth a look as well.
        let found = core.call(limit, core.kv.range(request)).await?;
        for kv in &found.kvs {
            if let Some(trouble) = trouble(core.keys.name(&kv.key), kv, counter) {
                let name = String::from_utf8_lossy(&kv.key).into_owned();
                troubles.entry(trouble).or_default().push(name);
            }
        }
        after = found.kvs.last().map(|kv| kv.key.clone());
        if !found.more {
            break;
        }
    }
    findings.extend(
        troubles
            .into_iter()
            .map(|(trouble, names)| told(trouble, &names)),
    );
    Ok(findings)
}

/// What the state of the namespace shows.
fn of_namespace(meta: &Meta, cluster_id: u64, counter: FencingToken) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !meta.is_open() {
        findings.push(finding(
            "namespace_closed",
            Severity::Warning,
            "the namespace is closed for recovery: nothing is opened or granted".into(),
            "repeat the recovery with its id until it is over",
        ));
    }
    if meta.value.cluster_id != cluster_id {
        findings.push(finding(
            "other_cluster",
            Severity::Critical,
            "the namespace was written for another cluster: this one holds a copy".into(),
            "recover the namespace, above the highest token that any resource has seen",
        ));
    }
    if let Some(watermark) = meta
        .value
        .watermark
        .filter(|watermark| *watermark >= counter)
    {
        findings.push(finding(
            "watermark_ahead",
            Severity::Critical,
            format!("the watermark {watermark} is not below {counter}: the cluster has gone back"),
            "recover the namespace, above the highest token that any resource has seen",
        ));
    }
    findings
}

/// What is wrong with a stored key.
fn trouble(name: Option<Name>, kv: &KeyValue, counter: FencingToken) -> Option<Trouble> {
    let unreadable = |readable: bool| (!readable).then_some(Trouble::Unreadable);
    let Some(name) = name else {
        return Some(Trouble::Unreadable);
    };
    match name {
        Name::Epoch(_) => None,
        Name::Meta => unreadable(Meta::read(Some(kv)).is_ok()),
        Name::Revocation(..) => unreadable(RevocationValue::decode(&kv.value).is_ok()),
        Name::Session(_) => unreadable(SessionValue::decode(&kv.value).is_ok()),
        Name::Ticket(..) => unreadable(TicketValue::decode(&kv.value).is_ok()),
        Name::Floor(_) => match decode_floor(&kv.value) {
            Ok(floor) => (floor > counter).then_some(Trouble::FloorAhead),
            Err(_) => Some(Trouble::Unreadable),
        },
        Name::Lock(_) => match LockEntry::read(kv) {
            Err(_) => Some(Trouble::Unreadable),
            Ok(entry) if !entry.leased => Some(Trouble::Immortal),
            Ok(entry) => (entry.token.term() != counter.term()).then_some(Trouble::OtherTerm),
        },
    }
}

fn told(trouble: Trouble, names: &[String]) -> Finding {
    let (id, severity, what, what_to_do) = match trouble {
        Trouble::FloorAhead => (
            "floor_ahead",
            Severity::Critical,
            "floors above the store's counter: nothing is granted for these keys",
            "recover the namespace, or lower a floor that was raised by hand",
        ),
        Trouble::Immortal => (
            "lock_without_lease",
            Severity::Critical,
            "locks that do not end with their session",
            "revoke them, and find out who writes below this prefix",
        ),
        Trouble::OtherTerm => (
            "lock_of_other_term",
            Severity::Critical,
            "locks of another term",
            "recover the namespace",
        ),
        Trouble::Unreadable => (
            "unreadable",
            Severity::Warning,
            "entries that this store did not write or cannot read",
            "find out who writes below this prefix, and remove them; a lock can be revoked",
        ),
    };
    let told = names.get(..NAMES_TOLD).unwrap_or(names).join(", ");
    let more = names.len().saturating_sub(NAMES_TOLD);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    finding(id, severity, format!("{what}: {told}{more}"), what_to_do)
}

fn finding(id: &'static str, severity: Severity, what: String, what_to_do: &str) -> Finding {
    Finding {
        id,
        severity,
        what,
        what_to_do: what_to_do.to_owned(),
    }
}
