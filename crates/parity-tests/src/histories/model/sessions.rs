//! What sessions promise.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_spi::{Effect, ErrorKind};

use super::super::answer::Answer;
use super::super::call::{Lists, Wish};
use super::world::{Fate, Lease, Session, World};
use super::{Judged, Rules};

impl Rules<'_> {
    pub(super) fn expect_refusal(&self, kind: ErrorKind) -> Judged {
        let expected = Answer::Refused(kind, Effect::None);
        self.expect(*self.answer == expected, || format!("{expected:?}"))
    }

    /// What is renewed by this call, with so much left at its answer.
    pub(super) fn renewed(&self, remaining: Duration, ttl: Duration) -> Lease {
        Lease {
            earliest: self.window.begin + remaining,
            latest: self.window.end + ttl + self.capabilities.hand_over_bound,
        }
    }
}

/// The later of each.
fn prolong(before: Lease, renewed: Lease) -> Lease {
    Lease {
        earliest: before.earliest.max(renewed.earliest),
        latest: before.latest.max(renewed.latest),
    }
}

impl World {
    pub(super) fn done(rules: &Rules<'_>) -> Judged {
        let done = *rules.answer == Answer::Done;
        rules.expect(done, || "to be done".to_owned())
    }

    pub(super) fn open(&mut self, session: u8, rules: &Rules<'_>) -> Judged {
        let before = self.sessions.get(&session);
        if before == Some(&Session::Gone) {
            return rules.expect_refusal(ErrorKind::SessionGone);
        }
        let &Answer::Open { ttl, remaining } = rules.answer else {
            return Err("the open session".to_owned());
        };
        rules.expect(remaining <= ttl, || format!("at most {ttl:?} left"))?;
        let renewed = rules.renewed(remaining, ttl);
        let lease = match before {
            Some(Session::Open(before)) => prolong(*before, renewed),
            _ => renewed,
        };
        self.sessions.insert(session, Session::Open(lease));
        Ok(())
    }

    pub(super) fn open_elsewhere(rules: &Rules<'_>) -> Judged {
        rules.expect_refusal(ErrorKind::InvalidRequest)
    }

    pub(super) fn close(&mut self, session: u8, rules: &Rules<'_>) -> Judged {
        Self::done(rules)?;
        self.end_session(session, rules.window.begin);
        Ok(())
    }

    pub(super) fn keep(&mut self, session: u8, lists: Lists, rules: &Rules<'_>) -> Judged {
        let Some(Session::Open(before)) = self.sessions.get(&session) else {
            let gone = *rules.answer == Answer::Gone;
            return rules.expect(gone, || "that the session is gone".to_owned());
        };
        let before = *before;
        let (grants, attempts) = match lists {
            Lists::Everything => (true, true),
            Lists::Grants => (true, false),
            Lists::Attempts => (false, true),
            Lists::Nothing => (false, false),
        };
        let expected = self.gone_of(session, grants);
        let Answer::Kept {
            remaining,
            gone,
            late,
        } = rules.answer
        else {
            return Err(format!("kept, with {expected:?} gone"));
        };
        rules.expect(*gone == expected, || format!("{expected:?} gone"))?;
        let ttl = before
            .latest
            .saturating_since(before.earliest)
            .max(*remaining);
        let renewed = rules.renewed(*remaining, ttl);
        let lease = prolong(before, renewed);
        self.sessions.insert(session, Session::Open(lease));
        let own = self
            .fates
            .iter()
            .filter(|(wish, _)| wish.session == session);
        let own: Vec<_> = own.map(|(wish, fate)| (*wish, fate.clone())).collect();
        for (wish, fate) in own {
            match fate {
                Fate::Holds(before) if grants && !late.contains(&wish) => {
                    let fate = Fate::Holds(prolong(before, renewed));
                    self.fates.insert(wish, fate);
                }
                Fate::Holds(_) if grants || attempts => {}
                Fate::Waits { .. } if attempts => {}
                Fate::Holds(_) | Fate::Waits { .. } => self.end(wish, rules.window.begin),
                Fate::Refused | Fate::Over => {}
            }
        }
        Ok(())
    }

    /// Those of a session's grants that do not stand, and which of them were revoked.
    fn gone_of(&self, session: u8, listed: bool) -> BTreeMap<Wish, bool> {
        let own = self.tokens.iter();
        let own = own.filter(|(wish, _)| listed && wish.session == session);
        let gone = own.filter(|(wish, _)| !matches!(self.fates.get(wish), Some(Fate::Holds(_))));
        gone.map(|(wish, token)| {
            let records = self.keys.get(&wish.key).map(|key| &key.records);
            let mut records = records.into_iter().flatten();
            let revoked = records.any(|(_, done)| done.previous_token == Some(*token));
            (*wish, revoked)
        })
        .collect()
    }
}
