//! What is known to be wrong with some versions of the servers, and why a scenario fails there.

/// A bug of a server that a scenario meets.
#[derive(Debug)]
pub(crate) struct KnownBug {
    /// The scenario that fails; empty for all of them.
    pub(crate) scenario: &'static str,
    /// Where it is told.
    pub(crate) upstream: &'static str,
    /// In each line of versions, the first that has the bug and the first that has it no more.
    pub(crate) versions: &'static [(Version, Version)],
}

/// Major, minor and patch.
pub(crate) type Version = [u32; 3];

/// Bugs of etcd. The store refuses to connect to those servers, so that every scenario fails.
pub(crate) const ETCD: &[KnownBug] = &[KnownBug {
    scenario: "",
    upstream: "etcd-io/etcd#13766 and the refusal of every transaction by a full server",
    versions: &[([3, 5, 0], [3, 5, 7])],
}];

/// The bug that explains why this scenario fails on this version.
pub(crate) fn known<'a>(
    bugs: &'a [KnownBug],
    version: &str,
    scenario: &str,
) -> Option<&'a KnownBug> {
    let version = parse(version)?;
    bugs.iter().find(|bug| {
        let meets = bug.scenario.is_empty() || bug.scenario == scenario;
        let mut lines = bug.versions.iter();
        meets && lines.any(|(first, fixed)| (first..fixed).contains(&&version))
    })
}

fn parse(text: &str) -> Option<Version> {
    let mut numbers = text.split('.').map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUGS: &[KnownBug] = &[KnownBug {
        scenario: "a_grant_is_released_once",
        upstream: "planted",
        versions: &[([3, 4, 0], [3, 4, 31]), ([3, 5, 0], [3, 5, 13])],
    }];

    #[test]
    fn a_bug_explains_its_scenario_on_its_versions_only() {
        let explains = |version, scenario| known(BUGS, version, scenario).is_some();
        for version in ["3.4.23", "3.4.30", "3.5.0", "3.5.12"] {
            assert!(explains(version, "a_grant_is_released_once"), "{version}");
            assert!(!explains(version, "a_wrong_token_releases_nothing"));
        }
        for version in ["3.4.31", "3.5.13", "3.6.0", "3.3.27", "no version"] {
            assert!(!explains(version, "a_grant_is_released_once"), "{version}");
        }
        assert!(known(ETCD, "3.5.4", "anything").is_some());
        assert!(known(ETCD, "3.4.23", "anything").is_none());
    }
}
