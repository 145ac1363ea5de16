use etcd_kv::{Applied, KvError, KvErrorKind};

/// Refuses the versions that must not be used: 3.5.0 to 3.5.6 refuse every transaction when the
/// store is full, releases among them, and can lose data in a crash.
pub(super) fn check(version: &str) -> Result<(), KvError> {
    let mut numbers = version.split(['.', '-', '+']).map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(3)), Some(Ok(5)), Some(Ok(0..=6))) => {
            let message = format!(
                "etcd {version} can lose data and cannot release locks when full; upgrade it, or \
                 say allow_unsafe_version=true"
            );
            Err(KvError::new(
                KvErrorKind::Incompatible,
                Applied::No,
                message,
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(version: &str) -> bool {
        let checked = check(version);
        let kind = checked.as_ref().err().map(KvError::kind);
        assert!(kind.is_none_or(|kind| kind == KvErrorKind::Incompatible));
        checked.is_err()
    }

    #[test]
    fn only_the_versions_with_known_harm_are_refused() {
        for version in ["3.5.0", "3.5.1", "3.5.6", "3.5.0-rc.1", "3.5.6+git"] {
            assert!(is_refused(version), "{version}");
        }
        for version in [
            "3.4.23", "3.5.7", "3.5.16", "3.6.0", "3.6.5", "4.5.0", "", "not one",
        ] {
            assert!(!is_refused(version), "{version}");
        }
    }
}
