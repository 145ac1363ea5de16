//! What a failure of Postgres means to the users of a lock store, and to the connection it came by.

use std::io;

use lock_spi::{Effect, Elapsed, Error, ErrorKind, TaskLost};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) effect: Effect,
    pub(crate) fate: Fate,
    source: sqlx::Error,
}

/// What becomes of the connection on which something failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    /// The server refused one statement; the connection is as good as ever.
    Keep,
    /// This connection is of no use any more.
    Discard,
    /// This server is of no use now, by whatever connection.
    SearchAgain,
}

/// What was being done when it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// Nothing had been asked of the server yet.
    Connecting,
    /// A statement was on its way.
    Calling,
}

impl Failure {
    pub(crate) fn new(phase: Phase, source: sqlx::Error) -> Self {
        let (kind, effect, fate) = judge(phase, &source);
        let effect = match phase {
            Phase::Connecting => Effect::None,
            Phase::Calling => effect,
        };
        Self {
            kind,
            effect,
            fate,
            source,
        }
    }

    /// Whether another connection may do better at once.
    pub(crate) fn is_of_connection(&self) -> bool {
        let transient = matches!(self.kind, ErrorKind::NotLeader | ErrorKind::Unavailable);
        transient && self.fate != Fate::Keep
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let message = match failure.source.as_database_error().and_then(|e| e.code()) {
            Some(code) => format!("PostgreSQL refused with {code}"),
            None => "the call to PostgreSQL failed".into(),
        };
        Self::new(failure.kind, failure.effect, message).with_source(failure.source)
    }
}

type Judgement = (ErrorKind, Effect, Fate);

fn judge(phase: Phase, error: &sqlx::Error) -> Judgement {
    match error {
        sqlx::Error::Database(error) => {
            let message = error.message();
            let code = error.code().unwrap_or_default();
            let severity = error
                .try_downcast_ref::<PgDatabaseError>()
                .map(PgDatabaseError::severity);
            let fatal = matches!(severity, Some(PgSeverity::Fatal | PgSeverity::Panic));
            match (of_sqlstate(&code), phase) {
                // What a pooler says to startup parameters that it does not pass on.
                _ if phase == Phase::Connecting && is_refusal_of_options(&code, message) => {
                    (ErrorKind::Incompatible, Effect::None, Fate::Discard)
                }
                // It ends the connection, so that nobody can tell what became of the statement.
                ((kind, _, Fate::Keep), _) if fatal => (kind, Effect::Unknown, Fate::Discard),
                (judgement, _) => judgement,
            }
        }
        // A certificate that does not fit; a handshake that breaks off is of another kind.
        sqlx::Error::Io(error)
            if phase == Phase::Connecting && error.kind() == io::ErrorKind::InvalidData =>
        {
            (ErrorKind::Denied, Effect::None, Fate::Discard)
        }
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => {
            (ErrorKind::Unavailable, Effect::Unknown, Fate::Discard)
        }
        sqlx::Error::Tls(_) => (ErrorKind::Denied, Effect::Unknown, Fate::Discard),
        sqlx::Error::Configuration(_) | sqlx::Error::InvalidArgument(_) => {
            (ErrorKind::InvalidRequest, Effect::None, Fate::Discard)
        }
        // Arguments are encoded before anything is sent.
        sqlx::Error::Encode(_) => (ErrorKind::InvalidRequest, Effect::None, Fate::Keep),
        _ => (ErrorKind::Protocol, Effect::Unknown, Fate::Discard),
    }
}

fn is_refusal_of_options(code: &str, message: &str) -> bool {
    code == "08P01" && message.contains("startup parameter")
}

/// The mapping table: what a statement that was refused with this code means.
///
/// A statement in autocommit that the server refuses is undone, so its effect is `None`. Where the
/// server breaks off, it may have been done.
fn of_sqlstate(code: &str) -> Judgement {
    use Effect::{None, Unknown};
    use ErrorKind::{
        Denied, Exhausted, Incompatible, InvalidRequest, NotLeader, Protocol, Unavailable,
    };
    use Fate::{Discard, Keep, SearchAgain};
    let class = code.get(..2).unwrap_or_default();
    match (code, class) {
        // A standby, or a transaction that began while it was one.
        ("25006", _) => (NotLeader, None, SearchAgain),
        // Shut down, crashed, or not up yet.
        ("57P01" | "57P02", _) => (Unavailable, Unknown, SearchAgain),
        ("57P03", _) => (Unavailable, None, SearchAgain),
        // The database was dropped, or the session ended for being idle.
        ("57P04" | "57P05", _) => (Unavailable, Unknown, Discard),
        // Cancelled, waited too long for a row, deadlocked, or the row was moved away.
        ("57014" | "55P03" | "40P01" | "40001", _) => (Unavailable, None, Keep),
        ("53300", _) => (Unavailable, None, Discard),
        ("53000" | "53100" | "53200" | "53400", _) => (Exhausted, None, Keep),
        // The sequence or the term is at its end.
        ("2200H", _) | (_, "54") => (Exhausted, None, Keep),
        ("42501", _) => (Denied, None, Keep),
        ("3D000", _) | (_, "28") => (Denied, None, Discard),
        // Another isolation level than the one asked for at startup.
        ("DL001", _) => (Incompatible, None, Discard),
        // Statements that were prepared are gone, or there are others: a pooler is in between.
        ("26000" | "42P05" | "08P01", _) => (Incompatible, Unknown, Discard),
        (_, "3F" | "42") => (Incompatible, None, Keep),
        (_, "22" | "23") => (InvalidRequest, None, Keep),
        (_, "08") => (Unavailable, Unknown, Discard),
        // The connection was left inside a transaction, or its plans are of another schema.
        ("0A000", _) | (_, "25" | "40") => (Unavailable, None, Discard),
        (_, "58") => (Unavailable, Unknown, Discard),
        _ => (Protocol, Unknown, Discard),
    }
}

/// No answer within the limit.
pub(crate) fn timed_out(effect: Effect) -> Error {
    let message = "PostgreSQL did not answer in time";
    Error::new(ErrorKind::Unavailable, effect, message).with_source(Elapsed)
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
    Error::new(ErrorKind::Protocol, Effect::Unknown, message)
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

pub(crate) fn incompatible(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Incompatible, Effect::None, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Effect::{None, Unknown};
    use ErrorKind::{
        Denied, Exhausted, Incompatible, InvalidRequest, NotLeader, Protocol, Unavailable,
    };
    use Fate::{Discard, Keep, SearchAgain};

    /// The rows of P38, and what has come to them since.
    #[test]
    fn every_code_has_its_row() {
        for (code, kind, effect, fate) in [
            ("25006", NotLeader, None, SearchAgain),
            ("57P01", Unavailable, Unknown, SearchAgain),
            ("57P02", Unavailable, Unknown, SearchAgain),
            ("57P03", Unavailable, None, SearchAgain),
            ("57P04", Unavailable, Unknown, Discard),
            ("57P05", Unavailable, Unknown, Discard),
            ("57014", Unavailable, None, Keep),
            ("55P03", Unavailable, None, Keep),
            ("40P01", Unavailable, None, Keep),
            ("40001", Unavailable, None, Keep),
            ("40003", Unavailable, None, Discard),
            ("53300", Unavailable, None, Discard),
            ("53000", Exhausted, None, Keep),
            ("53100", Exhausted, None, Keep),
            ("53200", Exhausted, None, Keep),
            ("53400", Exhausted, None, Keep),
            ("2200H", Exhausted, None, Keep),
            ("54000", Exhausted, None, Keep),
            ("42501", Denied, None, Keep),
            ("28000", Denied, None, Discard),
            ("28P01", Denied, None, Discard),
            ("3D000", Denied, None, Discard),
            ("DL001", Incompatible, None, Discard),
            ("42P01", Incompatible, None, Keep),
            ("42883", Incompatible, None, Keep),
            ("3F000", Incompatible, None, Keep),
            ("26000", Incompatible, Unknown, Discard),
            ("42P05", Incompatible, Unknown, Discard),
            ("08P01", Incompatible, Unknown, Discard),
            ("22021", InvalidRequest, None, Keep),
            ("22008", InvalidRequest, None, Keep),
            ("23514", InvalidRequest, None, Keep),
            ("08000", Unavailable, Unknown, Discard),
            ("08006", Unavailable, Unknown, Discard),
            ("0A000", Unavailable, None, Discard),
            ("25P02", Unavailable, None, Discard),
            ("25P03", Unavailable, None, Discard),
            ("58030", Unavailable, Unknown, Discard),
            ("XX000", Protocol, Unknown, Discard),
            ("P0001", Protocol, Unknown, Discard),
            ("", Protocol, Unknown, Discard),
        ] {
            assert_eq!(of_sqlstate(code), (kind, effect, fate), "{code:?}");
        }
    }

    #[test]
    fn what_comes_without_a_code_has_its_row_too() {
        let told = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let boxed = || Box::<dyn std::error::Error + Send + Sync>::from("planted");
        for (error, kind, effect) in [
            (sqlx::Error::Io(told()), Unavailable, Unknown),
            (sqlx::Error::WorkerCrashed, Unavailable, Unknown),
            (sqlx::Error::Tls(boxed()), Denied, Unknown),
            (sqlx::Error::Configuration(boxed()), InvalidRequest, None),
            (sqlx::Error::Encode(boxed()), InvalidRequest, None),
            (sqlx::Error::Decode(boxed()), Protocol, Unknown),
            (sqlx::Error::RowNotFound, Protocol, Unknown),
            (sqlx::Error::Protocol("planted".into()), Protocol, Unknown),
        ] {
            let shown = format!("{error:?}");
            let failure = Failure::new(Phase::Calling, error);
            assert_eq!((failure.kind, failure.effect), (kind, effect), "{shown}");
        }
    }

    #[test]
    fn while_connecting_nothing_can_have_happened() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let failure = Failure::new(Phase::Connecting, sqlx::Error::Io(refused));
        assert!(failure.is_of_connection());
        let error = Error::from(failure);
        assert_eq!((error.kind(), error.effect()), (Unavailable, None));
        assert!(is_refusal_of_options(
            "08P01",
            "unsupported startup parameter: options"
        ));
        assert!(!is_refusal_of_options(
            "08P01",
            "invalid frontend message type"
        ));
    }

    /// P33: silence proves nothing.
    #[test]
    fn silence_is_never_definite() {
        let errors = [timed_out(Unknown), task_lost(TaskLost)];
        for error in errors {
            assert_eq!((error.kind(), error.effect()), (Unavailable, Unknown));
        }
    }
}
