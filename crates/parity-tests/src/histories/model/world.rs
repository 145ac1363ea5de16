//! One state of the contract's world.

use std::collections::BTreeMap;

use lock_spi::{FencingToken, Instant, LockOutcome, SessionId};

use super::super::call::{Call, Target, Wish};
use super::{Judged, Rules};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct World {
    /// Those that were ever opened, or closed unopened.
    pub(super) sessions: BTreeMap<u8, Session>,
    pub(super) keys: BTreeMap<u8, Key>,
    /// What became of the attempts that were ever made, or given up unmade.
    pub(super) fates: BTreeMap<Wish, Fate>,
    /// Every grant that was ever told, by its attempt.
    pub(super) tokens: BTreeMap<Wish, FencingToken>,
    /// The highest token of any key.
    pub(super) highest: Option<FencingToken>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Session {
    Open(Lease),
    /// It was closed, or ended by an operator, or its time was over.
    Gone,
}

/// Something ends by itself: not before `earliest`, and by `latest`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lease {
    pub(super) earliest: Instant,
    pub(super) latest: Instant,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// It was refused, and may try again.
    Refused,
    /// It has a place.
    Waits {
        position: u64,
    },
    /// It holds the key; where grants have an end of their own, until then.
    Holds(Lease),
    Over,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Key {
    pub(super) holder: Option<Wish>,
    pub(super) queue: Vec<Wish>,
    /// The token of the newest grant.
    pub(super) last: Option<FencingToken>,
    pub(super) floor: Option<FencingToken>,
    /// Since when the first in line could have taken its turn.
    pub(super) turn: Option<Instant>,
    /// Newest first.
    pub(super) records: Vec<(u8, LockOutcome)>,
}

impl World {
    pub(super) fn means_something(&self, call: Call, now: Instant) -> bool {
        match call {
            Call::OpenElsewhere(session) | Call::Kill(session) => self.surely_open(session, now),
            Call::Extend(wish) | Call::Release(wish, _) => self.tokens.contains_key(&wish),
            Call::Revoke(_, _, Target::Grant(wish)) => self.tokens.contains_key(&wish),
            Call::Wait(wish) => self.surely_due(wish, now),
            // An attempt is remembered with its session.
            Call::Abandon(wish) => self.sessions.contains_key(&wish.session),
            _ => true,
        }
    }

    /// Judges an answer and becomes what is true after it.
    pub(super) fn follow(
        &mut self,
        call: Call,
        rules: &Rules<'_>,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Judged {
        match call {
            Call::Open(session) => self.open(session, rules),
            Call::OpenElsewhere(_) => Self::open_elsewhere(rules),
            Call::Keep(session, lists) => self.keep(session, lists, rules),
            Call::Close(session) | Call::Kill(session) => self.close(session, rules),
            Call::Insert(wish, queue) => self.insert(wish, queue, rules, session_id),
            Call::Wait(_) | Call::Pass(_) => Self::done(rules),
            Call::Extend(wish) => self.extend(wish, rules),
            Call::Release(wish, _) => self.release(wish, rules),
            Call::Abandon(wish) => self.abandon(wish, rules),
            Call::Revoke(key, number, target) => self.revoke((key, number), target, rules),
            Call::Read(key, _) => self.read(key, rules, session_id),
            Call::List(..) => self.list(rules, session_id),
            Call::Records(key, _) => self.records(key, rules),
            Call::Reap(_) => Self::reap(rules),
        }
    }

    pub(super) fn key(&mut self, key: u8) -> &mut Key {
        self.keys.entry(key).or_default()
    }

    pub(super) fn is_open(&self, session: u8) -> bool {
        matches!(self.sessions.get(&session), Some(Session::Open(_)))
    }

    fn surely_open(&self, session: u8, now: Instant) -> bool {
        match self.sessions.get(&session) {
            // Long enough for the call.
            Some(Session::Open(lease)) => {
                now + std::time::Duration::from_millis(500) < lease.earliest
            }
            _ => false,
        }
    }

    /// Whether a waiter has reason to try again, and keeps it.
    fn surely_due(&self, wish: Wish, now: Instant) -> bool {
        let Some(fate) = self.fates.get(&wish) else {
            return false;
        };
        let key = self.keys.get(&wish.key);
        let first = key.is_some_and(|key| key.holder.is_none() && key.queue.first() == Some(&wish));
        let gone = self.sessions.get(&wish.session) == Some(&Session::Gone);
        let waits = matches!(fate, Fate::Waits { .. });
        gone || (waits && first && self.surely_open(wish.session, now))
    }

    /// Ends whatever an attempt has, for good, as of `since` or later.
    pub(super) fn end(&mut self, wish: Wish, since: Instant) {
        self.fates.insert(wish, Fate::Over);
        let key = self.key(wish.key);
        let before = (key.holder, key.queue.first().copied());
        if key.holder == Some(wish) {
            key.holder = None;
        }
        key.queue.retain(|other| *other != wish);
        if before != (key.holder, key.queue.first().copied()) {
            key.turn = Some(since);
        }
    }

    /// Ends a session and all that it has.
    pub(super) fn end_session(&mut self, session: u8, since: Instant) {
        self.sessions.insert(session, Session::Gone);
        let own = self.fates.keys().filter(|wish| wish.session == session);
        let own: Vec<_> = own.copied().collect();
        for wish in own {
            self.end(wish, since);
        }
    }
}
