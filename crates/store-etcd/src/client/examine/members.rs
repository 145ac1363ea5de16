//! The members of the cluster, each by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_kv::{Applied, KvError, KvErrorKind};
use lock_spi::{Elapsed, Finding, Result, Runtime, Severity};

use super::{finding, whole};
use crate::client::bugs::Version;
use crate::client::config::ClientConfig;
use crate::client::member::{Connector, Status};
use crate::client::version;

/// How long one member may take.
const LIMIT: Duration = Duration::from_secs(3);
/// Of its quota: fuller than this is worth a word.
const NEARLY_FULL: f64 = 0.8;

/// Whether any of them can be asked further.
pub(super) async fn look(
    config: &ClientConfig,
    runtime: &dyn Runtime,
    findings: &mut Vec<Finding>,
) -> Result<bool> {
    let lenient = ClientConfig {
        allow_unsafe_version: true,
        ..config.clone()
    };
    let connector = Connector::new(&lenient)?;
    let mut reached = BTreeMap::new();
    let mut refused = Vec::new();
    for host in &config.hosts {
        // Boxed: calls of gRPC are large.
        let status = Box::pin(status_of(&connector, host));
        let status = runtime.timeout(LIMIT, status).await;
        match status.unwrap_or_else(|Elapsed| Err(silent())) {
            Ok(status) => drop(reached.insert(host.clone(), status)),
            Err(error) => refused.push((host, error)),
        }
    }
    let one_answers = !reached.is_empty();
    let refused = refused.iter();
    findings.extend(refused.map(|(host, error)| unusable(host, error, one_answers)));
    findings.extend(of_versions(&reached, config.allow_unsafe_version));
    findings.extend(reached.iter().flat_map(|(host, status)| of(host, status)));
    Ok(reached.values().any(|status| status.leader != Some(0)))
}

async fn status_of(connector: &Connector, host: &str) -> Result<Status, KvError> {
    let member = connector.connect(host).await?;
    member.status().await
}

fn silent() -> KvError {
    let message = "no answer within the time limit";
    KvError::new(KvErrorKind::Unavailable, Applied::No, message)
}

fn unusable(host: &str, error: &KvError, one_answers: bool) -> Finding {
    let told = whole(error);
    match error.kind() {
        KvErrorKind::Denied => finding(
            "denied",
            Severity::Critical,
            format!("{host} does not let us in: {told}"),
            "check user and password, and the certificates on both sides",
        ),
        _ => finding(
            "unreachable",
            match one_answers {
                true => Severity::Warning,
                false => Severity::Critical,
            },
            format!("{host} cannot be reached: {told}"),
            "check that the server runs, its address in the URL, whether it speaks TLS (etcds://), \
             and what stands in between",
        ),
    }
}

fn of_versions(reached: &BTreeMap<String, Status>, allows_unsafe: bool) -> Vec<Finding> {
    let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (host, status) in reached {
        let version = status.version.as_deref().unwrap_or("of unknown version");
        hosts.entry(version).or_default().push(host);
    }
    let mut findings = Vec::new();
    for (version, hosts) in &hosts {
        findings.push(finding(
            "server",
            Severity::Note,
            format!("etcd {version} at {}", hosts.join(", ")),
            "nothing",
        ));
        findings.extend(of_version(version, allows_unsafe));
    }
    if hosts.len() > 1 {
        findings.push(finding(
            "mixed_versions",
            Severity::Note,
            "the members are of several versions; the cluster does what the oldest can",
            "finish the upgrade",
        ));
    }
    findings
}

fn of_version(version: &str, allows_unsafe: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    if version::check(version).is_err() {
        findings.push(finding(
            "unsafe_version",
            Severity::Critical,
            format!(
                "etcd {version} can lose data in a crash and cannot release locks when full{}",
                match allows_unsafe {
                    true => "; the URL says that this is put up with",
                    false => "",
                }
            ),
            "upgrade to the newest 3.5 or 3.6",
        ));
    }
    let Some(known) = Version::parse(version) else {
        return findings;
    };
    let bugs: Vec<_> = known
        .bugs()
        .map(|bug| format!("{} (#{})", bug.what, bug.report))
        .collect();
    if !bugs.is_empty() {
        findings.push(finding(
            "known_bugs",
            Severity::Warning,
            format!(
                "etcd {version} has bugs that locks can meet: {}",
                bugs.join("; ")
            ),
            "upgrade to the newest 3.5 or 3.6; tokens protect a resource that checks them all the \
             same",
        ));
    }
    if known.is_past_its_end() {
        findings.push(finding(
            "end_of_life",
            Severity::Warning,
            format!("etcd {version} is no longer mended"),
            "upgrade to the newest 3.5 or 3.6",
        ));
    }
    findings
}

fn of(host: &str, status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    if status.leader == Some(0) {
        findings.push(finding(
            "no_leader",
            Severity::Critical,
            format!("{host} knows of no leader: nothing can be locked through it"),
            "bring a majority of the members up, and see whether they reach each other",
        ));
    }
    for told in &status.errors {
        // It stands there as well.
        if told.contains("no leader") {
            continue;
        }
        let (id, what_to_do) = match told {
            full if full.contains("NOSPACE") => (
                "store_full",
                "compact, defragment and etcdctl alarm disarm, or raise --quota-backend-bytes; \
                 until then no lock is granted",
            ),
            corrupt if corrupt.contains("CORRUPT") => (
                "store_corrupt",
                "replace this member by one with the data of the others",
            ),
            _ => ("alarm", "etcdctl alarm list, and the documentation of etcd"),
        };
        let what = format!("{host} reports: {told}");
        findings.push(finding(id, Severity::Critical, what, what_to_do));
    }
    if status.fullness.is_some_and(|part| part > NEARLY_FULL) {
        findings.push(finding(
            "store_nearly_full",
            Severity::Warning,
            format!("the database of {host} has filled most of its quota"),
            "compact and defragment, or raise --quota-backend-bytes: a full store grants no lock",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id).collect()
    }

    fn status(version: &str) -> Status {
        Status {
            version: Some(version.into()),
            leader: Some(7),
            errors: Vec::new(),
            fullness: None,
        }
    }

    #[test]
    fn a_version_is_told_with_all_that_is_known_of_it() {
        let found = |version| {
            let reached = BTreeMap::from([("a:1".to_owned(), status(version))]);
            of_versions(&reached, false)
        };
        assert_eq!(ids(&found("3.6.9")), ["server"]);
        assert_eq!(ids(&found("3.5.16")), ["server", "known_bugs"]);
        let old = ["server", "known_bugs", "end_of_life"];
        assert_eq!(ids(&found("3.4.23")), old);
        let bad = ["server", "unsafe_version", "known_bugs"];
        assert_eq!(ids(&found("3.5.4")), bad);
        assert_eq!(ids(&found("not one")), ["server"]);
    }

    #[test]
    fn several_versions_are_one_finding_more() {
        let of = |host: &str, version| (host.to_owned(), status(version));
        let reached = BTreeMap::from([of("a:1", "3.6.9"), of("b:1", "3.6.10"), of("c:1", "3.6.9")]);
        let found = of_versions(&reached, false);
        assert_eq!(ids(&found), ["server", "server", "mixed_versions"]);
        assert!(found[1].what.ends_with("a:1, c:1"), "{}", found[1].what);
    }

    #[test]
    fn what_a_member_complains_about_is_told() {
        let mut ill = status("3.6.9");
        assert_eq!(of("a:1", &ill), []);
        ill.leader = Some(0);
        ill.fullness = Some(0.9);
        ill.errors = ["etcdserver: no leader", "memberID:7 alarm:NOSPACE "]
            .map(str::to_owned)
            .to_vec();
        let all = ["no_leader", "store_full", "store_nearly_full"];
        assert_eq!(ids(&of("a:1", &ill)), all);
    }
}
