//! Bugs of etcd that locks can meet, and the versions that have them.

/// A version as far as bugs depend on it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

/// A bug, by the number of its report to etcd.
#[derive(Debug)]
pub(super) struct Bug {
    pub(super) report: u32,
    pub(super) what: &'static str,
    /// The first version that has it, where that is known.
    since: Option<Version>,
    /// The first of each minor version that has it no more.
    mended: &'static [Version],
}

const fn version(major: u32, minor: u32, patch: u32) -> Version {
    Version {
        major,
        minor,
        patch,
    }
}

/// From the change logs of etcd.
const BUGS: [Bug; 6] = [
    Bug {
        report: 15247,
        what: "a leader that was deposed and does not know it yet can end leases",
        since: None,
        mended: &[version(3, 4, 31), version(3, 5, 13)],
    },
    Bug {
        report: 18089,
        what: "a watch can miss a deletion when the store is compacted at it",
        since: None,
        mended: &[version(3, 4, 34), version(3, 5, 16)],
    },
    Bug {
        report: 19179,
        what: "a watch that begins where the store is compacted can miss a deletion",
        since: None,
        mended: &[version(3, 4, 36), version(3, 5, 18)],
    },
    Bug {
        report: 15220,
        what: "a watch can tell of its progress before the events that it stands for",
        since: None,
        mended: &[version(3, 4, 25), version(3, 5, 8)],
    },
    Bug {
        report: 14758,
        what: "a lease can be renewed that was revoked",
        since: None,
        mended: &[version(3, 4, 38), version(3, 5, 23)],
    },
    Bug {
        report: 20418,
        what: "a linearizable read can be stale after the server was paused",
        since: Some(version(3, 4, 20)),
        mended: &[version(3, 4, 42), version(3, 5, 28), version(3, 6, 9)],
    },
];

impl Version {
    /// Of the first three numbers; `None` for what is no version.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', '+']).map(|part| part.parse().ok());
        Some(version(
            numbers.next()??,
            numbers.next()??,
            numbers.next()??,
        ))
    }

    /// The bugs that it has.
    pub(super) fn bugs(self) -> impl Iterator<Item = &'static Bug> {
        BUGS.iter().filter(move |bug| bug.is_in(self))
    }

    /// Whether nobody mends it any more.
    pub(super) fn is_past_its_end(self) -> bool {
        (self.major, self.minor) < (3, 5)
    }
}

impl Bug {
    fn is_in(&self, found: Version) -> bool {
        let line = |version: &Version| (version.major, version.minor);
        let of_line = self
            .mended
            .iter()
            .find(|mended| line(mended) == line(&found));
        let newest = self.mended.iter().max();
        let mended = match of_line {
            Some(mended) => found >= *mended,
            // Lines that came later have what the newest of them has.
            None => newest.is_some_and(|newest| found > *newest),
        };
        !mended && self.since.is_none_or(|since| found >= since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports(text: &str) -> Vec<u32> {
        let version = Version::parse(text).unwrap();
        version.bugs().map(|bug| bug.report).collect()
    }

    #[test]
    fn each_version_has_the_bugs_that_were_not_mended_before_it() {
        for (version, bugs) in [
            ("3.3.27", vec![15247, 18089, 19179, 15220, 14758]),
            ("3.4.19", vec![15247, 18089, 19179, 15220, 14758]),
            ("3.4.23", vec![15247, 18089, 19179, 15220, 14758, 20418]),
            ("3.4.36", vec![14758, 20418]),
            ("3.4.42", vec![]),
            ("3.5.16", vec![19179, 14758, 20418]),
            ("3.5.28", vec![]),
            ("3.6.5", vec![20418]),
            ("3.6.9", vec![]),
            ("3.7.0", vec![]),
            ("4.0.0-rc.1", vec![]),
        ] {
            assert_eq!(reports(version), bugs, "{version}");
        }
    }

    #[test]
    fn what_is_no_version_is_none() {
        for text in ["", "3", "3.4", "three.four.five"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
        assert!(Version::parse("3.4.45").unwrap().is_past_its_end());
        assert!(!Version::parse("3.5.0").unwrap().is_past_its_end());
    }
}
