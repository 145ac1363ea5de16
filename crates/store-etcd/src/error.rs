//! What an error of etcd means to the users of a lock store.

use etcd_kv::{Applied, KvError, KvErrorKind};
use lock_spi::{Effect, Elapsed, Error, ErrorKind, TaskLost};

/// The mapping table, one row per kind. Whether the call may have been applied is the adaptor's to
/// say, save for these: a full store may have applied what it refuses, and a refusal over a missing
/// lease applies nothing.
pub(crate) fn from_kv(error: KvError) -> Error {
    let (kind, effect) = match error.kind() {
        KvErrorKind::Compacted { .. } | KvErrorKind::FutureRevision => {
            (ErrorKind::Unavailable, Effect::None)
        }
        KvErrorKind::Denied => (ErrorKind::Denied, effect_of(&error)),
        KvErrorKind::Incompatible => (ErrorKind::Incompatible, effect_of(&error)),
        KvErrorKind::InvalidArgument => (ErrorKind::InvalidRequest, effect_of(&error)),
        // An answer to LeaseGrant alone, which goes on; anywhere else it makes no sense.
        KvErrorKind::LeaseExists => (ErrorKind::Protocol, effect_of(&error)),
        KvErrorKind::LeaseNotFound => (ErrorKind::SessionGone, Effect::None),
        KvErrorKind::NoLeader => (ErrorKind::NotLeader, effect_of(&error)),
        KvErrorKind::NoSpace => (ErrorKind::Exhausted, Effect::Unknown),
        KvErrorKind::Protocol => (ErrorKind::Protocol, effect_of(&error)),
        // What is not known to be definite is not definite.
        _ => (ErrorKind::Unavailable, effect_of(&error)),
    };
    Error::new(kind, effect, "the call to etcd failed").with_source(error)
}

fn effect_of(error: &KvError) -> Effect {
    match error.applied() {
        Applied::No => Effect::None,
        Applied::Unknown => Effect::Unknown,
    }
}

/// No answer within the limit of one call.
pub(crate) fn timed_out(elapsed: Elapsed) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        Effect::Unknown,
        "etcd did not answer",
    )
    .with_source(elapsed)
}

/// The task of an operation ended without an answer.
pub(crate) fn task_lost(lost: TaskLost) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        Effect::Unknown,
        "the operation was cut off",
    )
    .with_source(lost)
}

/// An answer that makes no sense.
pub(crate) fn nonsense(message: &'static str) -> Error {
    Error::new(ErrorKind::Protocol, Effect::None, message)
}

pub(crate) fn session_gone(message: &'static str) -> Error {
    Error::new(ErrorKind::SessionGone, Effect::None, message)
}

/// Nothing happened, and later it may.
pub(crate) fn not_now(message: &'static str) -> Error {
    Error::new(ErrorKind::Unavailable, Effect::None, message)
}

pub(crate) fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRequest, Effect::None, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        use KvErrorKind as Kv;
        let as_told = None;
        let compacted = Kv::Compacted {
            compact_revision: 3,
        };
        for (kv, kind, effect) in [
            (compacted, ErrorKind::Unavailable, Some(Effect::None)),
            (Kv::Denied, ErrorKind::Denied, as_told),
            (
                Kv::FutureRevision,
                ErrorKind::Unavailable,
                Some(Effect::None),
            ),
            (Kv::Incompatible, ErrorKind::Incompatible, as_told),
            (Kv::InvalidArgument, ErrorKind::InvalidRequest, as_told),
            (Kv::LeaseExists, ErrorKind::Protocol, as_told),
            (
                Kv::LeaseNotFound,
                ErrorKind::SessionGone,
                Some(Effect::None),
            ),
            (Kv::NoLeader, ErrorKind::NotLeader, as_told),
            (Kv::NoSpace, ErrorKind::Exhausted, Some(Effect::Unknown)),
            (Kv::Protocol, ErrorKind::Protocol, as_told),
            (Kv::Unavailable, ErrorKind::Unavailable, as_told),
        ] {
            for (applied, told) in [
                (Applied::No, Effect::None),
                (Applied::Unknown, Effect::Unknown),
            ] {
                let error = from_kv(KvError::new(kv, applied, "planted"));
                assert_eq!(error.kind(), kind, "{kv:?}");
                assert_eq!(error.effect(), effect.unwrap_or(told), "{kv:?} {applied:?}");
                assert!(!error.to_string().contains("planted"), "{error}");
            }
        }
    }

    #[test]
    fn silence_is_never_definite() {
        for error in [timed_out(Elapsed), task_lost(TaskLost)] {
            assert_eq!(
                (error.kind(), error.effect()),
                (ErrorKind::Unavailable, Effect::Unknown)
            );
        }
    }
}
