//! The refusals, in etcd's words.

use std::borrow::Cow;

use etcd_kv::{Applied, KvError, KvErrorKind};

/// What the state machine refuses, it has not applied.
fn refused(kind: KvErrorKind, message: impl Into<Cow<'static, str>>) -> KvError {
    KvError::new(kind, Applied::No, message)
}

pub(crate) fn invalid(message: &'static str) -> KvError {
    refused(KvErrorKind::InvalidArgument, message)
}

pub(crate) fn compacted(compact_revision: i64) -> KvError {
    refused(
        KvErrorKind::Compacted { compact_revision },
        "required revision has been compacted",
    )
}

pub(crate) fn future_revision() -> KvError {
    refused(
        KvErrorKind::FutureRevision,
        "required revision is a future revision",
    )
}

pub(crate) fn lease_exists() -> KvError {
    refused(KvErrorKind::LeaseExists, "lease already exists")
}

pub(crate) fn lease_not_found() -> KvError {
    refused(KvErrorKind::LeaseNotFound, "requested lease not found")
}

/// The server went away under an open stream.
pub(crate) fn stream_broken() -> KvError {
    KvError::new(
        KvErrorKind::Unavailable,
        Applied::Unknown,
        "the stream was broken off",
    )
}

/// The request or its answer was lost on the way.
pub(crate) fn lost() -> KvError {
    KvError::new(KvErrorKind::Unavailable, Applied::Unknown, "no answer came")
}

/// An answer to another question.
pub(crate) fn mismatched() -> KvError {
    KvError::new(
        KvErrorKind::Protocol,
        Applied::Unknown,
        "the answer is not one to this request",
    )
}
