//! What etcd's errors mean, and whether the call may have been applied.
//!
//! Definite answers are listed. Everything else, known or not, is `Unavailable` and may have been
//! applied. A code alone decides nothing: each of them stands for both kinds.

use std::error::Error as _;

use etcd_client::Error;
use etcd_kv::{Applied, KvError, KvErrorKind};
use tonic::{Code, ConnectError, Status};

use super::tls;

/// One definite answer: an error with this code, and these words in its message.
struct Row(Code, &'static str, KvErrorKind, Applied);

/// The mapping table. Its order matters: the first row that fits decides.
#[rustfmt::skip]
const DEFINITE: &[Row] = {
    use Applied::{No, Unknown};
    use KvErrorKind as Kind;
    &[
        // Nobody leads, or not this member.
        Row(Code::Unavailable, "etcdserver: no leader", Kind::NoLeader, No),
        Row(Code::FailedPrecondition, "etcdserver: not leader", Kind::NoLeader, No),
        Row(Code::FailedPrecondition, "etcdserver: rpc not supported for learner", Kind::NoLeader, No),
        Row(Code::Unavailable, "etcdserver: rpc not supported for learner", Kind::NoLeader, No),
        // Not now.
        Row(Code::Unavailable, "dns error", Kind::Unavailable, No),
        Row(Code::Unavailable, "tcp connect error", Kind::Unavailable, No),
        Row(Code::ResourceExhausted, "etcdserver: too many requests", Kind::Unavailable, No),
        Row(Code::InvalidArgument, "etcdserver: revision of auth store is old", Kind::Unavailable, No),
        Row(Code::Unknown, "auth: revision in header is old", Kind::Unavailable, No),
        // Servers apply, and refuse afterwards.
        Row(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded", Kind::NoSpace, Unknown),
        // Leases.
        Row(Code::NotFound, "etcdserver: requested lease not found", Kind::LeaseNotFound, No),
        Row(Code::FailedPrecondition, "etcdserver: lease already exists", Kind::LeaseExists, No),
        Row(Code::OutOfRange, "etcdserver: too large lease TTL", Kind::InvalidArgument, No),
        // Revisions.
        Row(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted", Kind::Compacted { compact_revision: 0 }, No),
        Row(Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision", Kind::FutureRevision, No),
        // Who may not.
        Row(Code::PermissionDenied, "etcdserver: permission denied", Kind::Denied, No),
        Row(Code::Unauthenticated, "etcdserver: invalid auth token", Kind::Denied, No),
        Row(Code::InvalidArgument, "etcdserver: authentication failed", Kind::Denied, No),
        Row(Code::InvalidArgument, "etcdserver: user name is empty", Kind::Denied, No),
        Row(Code::FailedPrecondition, "etcdserver: authentication is not enabled", Kind::Denied, No),
        // What is never right.
        Row(Code::InvalidArgument, "etcdserver: key is not provided", Kind::InvalidArgument, No),
        Row(Code::InvalidArgument, "etcdserver: key not found", Kind::InvalidArgument, No),
        Row(Code::InvalidArgument, "etcdserver: duplicate key given in txn request", Kind::InvalidArgument, No),
        Row(Code::InvalidArgument, "etcdserver: too many operations in txn request", Kind::InvalidArgument, No),
        Row(Code::InvalidArgument, "etcdserver: request is too large", Kind::InvalidArgument, No),
        Row(Code::InvalidArgument, "etcdserver: mvcc: watcher range is empty", Kind::InvalidArgument, No),
        Row(Code::ResourceExhausted, "grpc: received message larger than max", Kind::InvalidArgument, No),
        Row(Code::OutOfRange, "decoded message length too large", Kind::Protocol, Unknown),
        Row(Code::DataLoss, "etcdserver: corrupt cluster", Kind::Protocol, Unknown),
    ]
};

/// What an error of the client means.
pub(super) fn from_client(error: Error) -> KvError {
    if let Error::GRpcStatus(status) = &error
        && let Some(refusal) = tls::refusal(status)
    {
        return refusal;
    }
    let (kind, applied) = match &error {
        Error::GRpcStatus(status) if was_never_sent(status) => {
            (KvErrorKind::Unavailable, Applied::No)
        }
        Error::GRpcStatus(status) => classify(status.code(), status.message()),
        // Of transport when a connection is prepared: certificates that will not do.
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::TransportError(_) => {
            (KvErrorKind::InvalidArgument, Applied::No)
        }
        _ => INDEFINITE,
    };
    let message = match &error {
        Error::GRpcStatus(status) if tls::was_cut_short(status) => format!(
            "the server hung up in the handshake of TLS, which it may not speak: {}",
            status.message()
        ),
        Error::GRpcStatus(status) => status.message().to_owned(),
        // It says no more than that it is one.
        Error::TransportError(error) => root_cause(error).to_string(),
        other => other.to_string(),
    };
    KvError::new(kind, applied, message).with_source(error)
}

/// What the reason means that a server gives when it ends a watch.
pub(super) fn from_reason(reason: &str) -> KvError {
    let row = DEFINITE.iter().find(|row| says(reason, row.1));
    let (kind, applied) = row.map_or(INDEFINITE, |row| (row.2, row.3));
    KvError::new(kind, applied, format!("the watch was ended: {reason:?}"))
}

const INDEFINITE: (KvErrorKind, Applied) = (KvErrorKind::Unavailable, Applied::Unknown);

fn classify(code: Code, message: &str) -> (KvErrorKind, Applied) {
    let fits = |row: &&Row| row.0 == code && message.contains(row.1);
    let row = DEFINITE.iter().find(fits);
    row.map_or(INDEFINITE, |row| (row.2, row.3))
}

/// Reasons come with the prefix of the server or without it.
fn says(reason: &str, words: &str) -> bool {
    reason.contains(words.strip_prefix("etcdserver: ").unwrap_or(words))
}

fn root_cause<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> &'a dyn std::error::Error {
    while let Some(cause) = error.source() {
        error = cause;
    }
    error
}

/// Whether there was no connection to send it on.
fn was_never_sent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether the token that the call was made with is older than the rights of the cluster, or of a
/// watch, is not known any more: for all other calls the client sees to that itself. Nothing was
/// done, and with a new token it can be.
pub(super) fn wants_new_token(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => is_about_rights(status.message()),
        Error::WatchError(reason) => is_about_the_token(reason),
        _ => false,
    }
}

/// Whether a watch was refused over the token.
pub(super) fn is_about_the_token(reason: &str) -> bool {
    reason.contains("invalid auth token") || is_about_rights(reason)
}

fn is_about_rights(message: &str) -> bool {
    message.contains("revision of auth store is old")
        || message.contains("auth: revision in header is old")
}

/// Whether it is said that the lease does not exist; everything else of that variant is a broken
/// stream.
pub(super) fn is_unknown_lease(error: &Error) -> bool {
    matches!(error, Error::LeaseKeepAliveError(text) if text == "lease not found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_situation_has_its_meaning() {
        use Applied::{No, Unknown};
        use Code as C;
        use KvErrorKind as K;
        let compacted = K::Compacted {
            compact_revision: 0,
        };
        let too_large = "Error, decoded message length too large: found 5000000 bytes";
        let larger = "grpc: received message larger than max (3000000 vs. 2097152)";
        #[rustfmt::skip]
        let table = [
            // A port that is closed; a name that is unknown.
            (C::Unavailable, "tcp connect error", K::Unavailable, No),
            (C::Unavailable, "dns error", K::Unavailable, No),
            // Out of time.
            (C::Cancelled, "Timeout expired", K::Unavailable, Unknown),
            (C::DeadlineExceeded, "context deadline exceeded", K::Unavailable, Unknown),
            // A member killed during the call.
            (C::Unknown, "transport error", K::Unavailable, Unknown),
            (C::Unknown, "h2 protocol error: error reading a body from connection", K::Unavailable, Unknown),
            (C::Unavailable, "http2 error", K::Unavailable, Unknown),
            // No quorum: just lost, lost long ago, and with a leader required.
            (C::Unavailable, "etcdserver: request timed out", K::Unavailable, Unknown),
            (C::Unavailable, "etcdserver: request timed out, possibly due to previous leader failure", K::Unavailable, Unknown),
            (C::Unknown, "context deadline exceeded", K::Unavailable, Unknown),
            (C::Unavailable, "etcdserver: no leader", K::NoLeader, No),
            // Leaders come and go.
            (C::Unavailable, "etcdserver: leader changed", K::Unavailable, Unknown),
            (C::Unavailable, "etcdserver: server stopped", K::Unavailable, Unknown),
            (C::FailedPrecondition, "etcdserver: not leader", K::NoLeader, No),
            (C::FailedPrecondition, "etcdserver: rpc not supported for learner", K::NoLeader, No),
            (C::Unavailable, "etcdserver: rpc not supported for learner", K::NoLeader, No),
            // Too much, for now or for ever.
            (C::ResourceExhausted, "etcdserver: too many requests", K::Unavailable, No),
            (C::ResourceExhausted, "etcdserver: mvcc: database space exceeded", K::NoSpace, Unknown),
            (C::InvalidArgument, "etcdserver: request is too large", K::InvalidArgument, No),
            (C::ResourceExhausted, larger, K::InvalidArgument, No),
            (C::OutOfRange, too_large, K::Protocol, Unknown),
            (C::ResourceExhausted, "anything else", K::Unavailable, Unknown),
            // Leases.
            (C::NotFound, "etcdserver: requested lease not found", K::LeaseNotFound, No),
            (C::FailedPrecondition, "etcdserver: lease already exists", K::LeaseExists, No),
            (C::OutOfRange, "etcdserver: too large lease TTL", K::InvalidArgument, No),
            // Revisions.
            (C::OutOfRange, "etcdserver: mvcc: required revision has been compacted", compacted, No),
            (C::OutOfRange, "etcdserver: mvcc: required revision is a future revision", K::FutureRevision, No),
            // Who it is, and what they may.
            (C::Unauthenticated, "etcdserver: invalid auth token", K::Denied, No),
            (C::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password", K::Denied, No),
            (C::InvalidArgument, "etcdserver: user name is empty", K::Denied, No),
            (C::FailedPrecondition, "etcdserver: authentication is not enabled", K::Denied, No),
            (C::PermissionDenied, "etcdserver: permission denied", K::Denied, No),
            (C::InvalidArgument, "etcdserver: revision of auth store is old", K::Unavailable, No),
            (C::Unknown, "auth: revision in header is old", K::Unavailable, No),
            // What is never right.
            (C::InvalidArgument, "etcdserver: key is not provided", K::InvalidArgument, No),
            (C::InvalidArgument, "etcdserver: key not found", K::InvalidArgument, No),
            (C::InvalidArgument, "etcdserver: duplicate key given in txn request", K::InvalidArgument, No),
            (C::InvalidArgument, "etcdserver: too many operations in txn request", K::InvalidArgument, No),
            // Broken, and unheard of.
            (C::DataLoss, "etcdserver: corrupt cluster", K::Protocol, Unknown),
            (C::Internal, "anything", K::Unavailable, Unknown),
            (C::NotFound, "anything else", K::Unavailable, Unknown),
            (C::InvalidArgument, "anything else", K::Unavailable, Unknown),
        ];
        for (code, message, kind, applied) in table {
            let error = from_client(Status::new(code, message).into());
            let found = (error.kind(), error.applied());
            assert_eq!(found, (kind, applied), "{code:?} {message:?}");
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn what_found_no_connection_was_not_sent_whatever_it_says() {
        let cause = ConnectError("the certificate is for somebody else".into());
        let status = Status::from_error(Box::new(cause));
        let error = from_client(status.into());
        assert_eq!(error.kind(), KvErrorKind::Unavailable);
        assert_eq!(error.applied(), Applied::No);
    }

    #[test]
    fn only_the_exact_words_speak_of_a_lease() {
        let lease = |text: &str| Error::LeaseKeepAliveError(text.into());
        assert!(is_unknown_lease(&lease("lease not found")));
        assert!(!is_unknown_lease(&lease("channel closed")));
        let broken = from_client(lease("channel closed"));
        assert_eq!((broken.kind(), broken.applied()), INDEFINITE);
    }

    #[test]
    fn an_old_token_is_told_from_a_wrong_one() {
        let status = |code, message: &str| Error::from(Status::new(code, message));
        let old = "etcdserver: revision of auth store is old";
        assert!(wants_new_token(&status(Code::InvalidArgument, old)));
        let old = "auth: revision in header is old";
        assert!(wants_new_token(&status(Code::Unknown, old)));
        let wrong = "etcdserver: invalid auth token";
        assert!(!wants_new_token(&status(Code::Unauthenticated, wrong)));
        let watch = |reason: &str| wants_new_token(&Error::WatchError(reason.into()));
        assert!(watch(wrong) && !watch("etcdserver: permission denied"));
    }

    #[test]
    fn a_watch_that_was_ended_says_why_as_far_as_it_is_known() {
        for words in ["etcdserver: permission denied", "permission denied"] {
            assert_eq!(from_reason(words).kind(), KvErrorKind::Denied, "{words}");
        }
        let empty = from_reason("mvcc: watcher range is empty");
        assert_eq!(empty.kind(), KvErrorKind::InvalidArgument);
        let leaderless = from_reason("etcdserver: no leader");
        assert_eq!(leaderless.kind(), KvErrorKind::NoLeader);
        assert_eq!(from_reason("").kind(), KvErrorKind::Unavailable);
    }
}
