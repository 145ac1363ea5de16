use tracing::{Level, Span};

use super::meters::{Meters, Operation};
use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::names::{event, field, metric};
use crate::outcome::{Grant, LockOutcome};
use crate::text::{LockKey, Namespace, Owner, Reason};
use crate::token::FencingToken;

/// Tells what happened in a store.
#[derive(Debug)]
pub(super) struct Events {
    store: &'static str,
    namespace: Namespace,
    meters: Meters,
}

/// What an operation was about, as far as its request says.
#[derive(Clone, Copy, Default)]
pub(super) struct Subject<'a> {
    pub(super) key: Option<&'a LockKey>,
    pub(super) session: Option<SessionId>,
}

impl<'a> Subject<'a> {
    pub(super) fn of_key(key: &'a LockKey) -> Self {
        Self {
            key: Some(key),
            session: None,
        }
    }

    pub(super) fn of_both(key: &'a LockKey, session: SessionId) -> Self {
        Self {
            key: Some(key),
            session: Some(session),
        }
    }

    pub(super) fn of_session(session: SessionId) -> Self {
        Self {
            key: None,
            session: Some(session),
        }
    }
}

/// Emits an event of this store; the name is the message as well, for output that shows no names.
/// Tokens are recorded as text: as numbers they would lose digits in JSON.
macro_rules! tell {
    ($events:expr, $level:expr, $name:expr, { $($fields:tt)* }) => {
        tell!($events, target: event::TARGET, $level, $name, { $($fields)* })
    };
    ($events:expr, target: $target:expr, $level:expr, $name:expr, { $($fields:tt)* }) => {
        tracing::event!(
            name: $name,
            target: $target,
            $level,
            {
                message = $name,
                { field::STORE } = $events.store,
                { field::NAMESPACE } = $events.namespace.as_str(),
                $($fields)*
            }
        )
    };
}

/// A span of this store, of the name of a metric.
macro_rules! span {
    ($events:expr, $subject:expr, $name:expr) => {
        tracing::span!(
            target: event::TARGET,
            Level::DEBUG,
            $name,
            { field::STORE } = $events.store,
            { field::NAMESPACE } = $events.namespace.as_str(),
            { field::KEY } = $subject.key.map(LockKey::as_str),
            { field::SESSION } = $subject.session.map(tracing::field::display)
        )
    };
}

impl Events {
    pub(super) fn new(store: &'static str, namespace: Namespace) -> Self {
        Self {
            store,
            meters: Meters::new(store, &namespace),
            namespace,
        }
    }

    pub(super) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Around one operation.
    pub(super) fn span(&self, operation: Operation, subject: Subject<'_>) -> Span {
        match operation {
            Operation::Acquire => span!(self, subject, metric::ACQUIRE),
            Operation::Release => span!(self, subject, metric::RELEASE),
            Operation::Renew => span!(self, subject, metric::RENEW),
            Operation::Revoke => span!(self, subject, metric::REVOKE),
            Operation::Wait => span!(self, subject, metric::WAIT),
        }
    }

    pub(super) fn granted(&self, grant: &Grant, owner: Option<&Owner>) {
        tell!(self, Level::INFO, event::LOCK_GRANTED, {
            { field::KEY } = grant.key.as_str(),
            { field::TOKEN } = %grant.token,
            { field::SESSION } = %grant.session,
            { field::OWNER } = owner.map(Owner::as_str)
        });
    }

    pub(super) fn queued(&self, key: &LockKey, session: SessionId, owner: Option<&Owner>) {
        tell!(self, Level::DEBUG, event::LOCK_QUEUED, {
            { field::KEY } = key.as_str(),
            { field::SESSION } = %session,
            { field::OWNER } = owner.map(Owner::as_str)
        });
    }

    pub(super) fn session_renewed(&self, session: SessionId, owner: Option<&Owner>) {
        tell!(self, Level::DEBUG, event::LOCK_RENEWED, {
            { field::SESSION } = %session,
            { field::OWNER } = owner.map(Owner::as_str)
        });
    }

    pub(super) fn grant_renewed(&self, grant: &Grant, owner: Option<&Owner>) {
        tell!(self, Level::DEBUG, event::LOCK_RENEWED, {
            { field::KEY } = grant.key.as_str(),
            { field::TOKEN } = %grant.token,
            { field::SESSION } = %grant.session,
            { field::OWNER } = owner.map(Owner::as_str)
        });
    }

    pub(super) fn released(&self, key: &LockKey, token: FencingToken) {
        tell!(self, Level::INFO, event::LOCK_RELEASED, {
            { field::KEY } = key.as_str(),
            { field::TOKEN } = %token
        });
    }

    pub(super) fn revoked(&self, key: &LockKey, done: &LockOutcome, by: &Owner, reason: &Reason) {
        tell!(self, Level::WARN, event::LOCK_REVOKED, {
            { field::KEY } = key.as_str(),
            { field::TOKEN } = done.previous_token.map(tracing::field::display),
            { field::FLOOR } = done.new_token_floor.map(tracing::field::display),
            { field::OWNER } = done.previous_owner.as_ref().map(Owner::as_str),
            { field::BY } = by.as_str(),
            { field::REASON } = reason.as_str()
        });
    }

    /// Tells an error that a person must look at; the others are in the metrics.
    pub(super) fn failed(&self, subject: Subject<'_>, error: &Error) {
        if error.kind() != ErrorKind::FloorViolated {
            return;
        }
        self.meters.floor_violated();
        let numbers = error.floor_violation();
        tell!(self, target: event::INCIDENT_TARGET, Level::ERROR, event::TOKEN_FLOOR_VIOLATED, {
            { field::KEY } = subject.key.map(LockKey::as_str),
            { field::TOKEN } = numbers.map(|numbers| tracing::field::display(numbers.token)),
            { field::FLOOR } = numbers.map(|numbers| tracing::field::display(numbers.floor)),
            { field::SESSION } = subject.session.map(tracing::field::display),
            { field::REASON } = %error
        });
    }
}
