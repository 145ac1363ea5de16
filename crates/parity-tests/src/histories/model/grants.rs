//! What attempts and grants promise.

use lock_spi::{ErrorKind, LockOutcome, Queue, SessionId, TokenSource};

use super::super::answer::{Answer, Held};
use super::super::call::{Target, Wish};
use super::super::performer::owner;
use super::world::{Fate, Lease, Session, World};
use super::{Judged, Rules};

impl World {
    pub(super) fn insert(
        &mut self,
        wish: Wish,
        queue: Queue,
        rules: &Rules<'_>,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Judged {
        let fate = self.fates.get(&wish).cloned();
        if !self.is_open(wish.session) {
            if fate == Some(Fate::Over) && *rules.answer == Answer::Ended {
                return Ok(());
            }
            return rules.expect_refusal(ErrorKind::SessionGone);
        }
        let key = self.key(wish.key).clone();
        let first_in_line = match key.queue.first() {
            Some(first) => *first == wish,
            None => true,
        };
        match fate {
            Some(Fate::Over) => {
                let ended = *rules.answer == Answer::Ended;
                rules.expect(ended, || "that the attempt is over".to_owned())
            }
            Some(Fate::Holds(_)) => self.granted_again(wish, rules),
            _ if key.holder.is_none() && first_in_line => self.granted(wish, rules),
            Some(Fate::Waits { position }) => {
                let ahead = key.queue.iter().position(|other| *other == wish);
                let still = still_waits(rules.answer, position, ahead.unwrap_or_default());
                let never = queue == Queue::Never && matches!(rules.answer, Answer::Held(_));
                rules.expect(still || never, || format!("the place {position}"))
            }
            Some(Fate::Refused) | None if queue == Queue::Never => {
                self.fates.insert(wish, Fate::Refused);
                self.refused(wish, rules, session_id)
            }
            Some(Fate::Refused) | None => self.queued(wish, rules),
        }
    }

    fn granted_again(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        let known = self.tokens.get(&wish).copied();
        let told = match rules.answer {
            Answer::Granted { token, .. } => Some(*token),
            _ => None,
        };
        rules.expect(told.is_some() && told == known, || {
            format!("the grant {known:?}")
        })
    }

    fn granted(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        let key = self.key(wish.key).clone();
        let mut above = key.last.max(key.floor);
        if rules.capabilities.token_source == TokenSource::ClusterRevision {
            above = above.max(self.highest);
        }
        let Answer::Granted { token, remaining } = *rules.answer else {
            return Err(format!("a grant above {above:?}"));
        };
        rules.expect(Some(token) > above, || format!("a grant above {above:?}"))?;
        let Some(Session::Open(of_session)) = self.sessions.get(&wish.session).cloned() else {
            return Err("nothing".to_owned());
        };
        let earliest = match remaining {
            Some(remaining) => rules.window.begin + remaining,
            None => of_session.earliest,
        };
        rules.expect(earliest <= of_session.latest, || {
            "no more left than of the session".to_owned()
        })?;
        let latest = of_session.latest;
        self.fates
            .insert(wish, Fate::Holds(Lease { earliest, latest }));
        self.tokens.insert(wish, token);
        self.highest = self.highest.max(Some(token));
        let key = self.key(wish.key);
        key.queue.retain(|other| *other != wish);
        key.holder = Some(wish);
        key.last = Some(token);
        key.turn = None;
        Ok(())
    }

    fn refused(
        &self,
        wish: Wish,
        rules: &Rules<'_>,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Judged {
        let holder = self.held(wish.key, session_id);
        let fits = match rules.answer {
            Answer::Held(None) => true,
            Answer::Held(Some(told)) => Some(told) == holder.as_ref(),
            _ => false,
        };
        rules.expect(fits, || format!("held, by {holder:?}"))
    }

    /// Who holds a key, as a store tells it.
    pub(super) fn held(
        &self,
        key: u8,
        session_id: &mut dyn FnMut(u8) -> SessionId,
    ) -> Option<Held> {
        let wish = self.keys.get(&key)?.holder?;
        Some(Held {
            token: *self.tokens.get(&wish)?,
            session: session_id(wish.session),
            owner: owner(wish.session),
        })
    }

    fn queued(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        let queue = self.key(wish.key).queue.clone();
        let last = queue.last().and_then(|last| self.fates.get(last));
        let after = match last {
            Some(Fate::Waits { position }) => Some(*position),
            _ => None,
        };
        let Answer::Queued { position, .. } = *rules.answer else {
            return Err(format!("a place after {after:?}"));
        };
        let still = still_waits(rules.answer, position, queue.len());
        rules.expect(still && Some(position) > after, || {
            format!("a place after {after:?}, behind {}", queue.len())
        })?;
        self.fates.insert(wish, Fate::Waits { position });
        let key = self.key(wish.key);
        key.queue.push(wish);
        Ok(())
    }

    pub(super) fn extend(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        let Some(Fate::Holds(before)) = self.fates.get(&wish).cloned() else {
            let gone = *rules.answer == Answer::Gone;
            return rules.expect(gone, || "that the grant is gone".to_owned());
        };
        self.granted_again(wish, rules)?;
        let Answer::Granted { remaining, .. } = *rules.answer else {
            return Err("the grant".to_owned());
        };
        let Some(Session::Open(session)) = self.sessions.get(&wish.session).cloned() else {
            return Err("nothing".to_owned());
        };
        let left = remaining.unwrap_or_default();
        let ttl = session.latest.saturating_since(session.earliest).max(left);
        let renewed = rules.renewed(left, ttl);
        let later = |lease: Lease| Lease {
            earliest: lease.earliest.max(renewed.earliest),
            latest: lease.latest.max(renewed.latest),
        };
        self.sessions
            .insert(wish.session, Session::Open(later(session)));
        self.fates.insert(wish, Fate::Holds(later(before)));
        Ok(())
    }

    pub(super) fn release(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        let stands = matches!(self.fates.get(&wish), Some(Fate::Holds(_)));
        let told = *rules.answer == Answer::Released(stands);
        rules.expect(told, || format!("released: {stands}"))?;
        if stands {
            self.end(wish, rules.window.begin);
        }
        Ok(())
    }

    pub(super) fn abandon(&mut self, wish: Wish, rules: &Rules<'_>) -> Judged {
        Self::done(rules)?;
        self.end(wish, rules.window.begin);
        Ok(())
    }

    pub(super) fn revoke(
        &mut self,
        (key, number): (u8, u8),
        target: Target,
        rules: &Rules<'_>,
    ) -> Judged {
        let Answer::Revoked(told) = rules.answer else {
            return Err("an outcome".to_owned());
        };
        let known = self.key(key).clone();
        let before = known.records.iter().find(|(known, _)| *known == number);
        if let Some((_, first)) = before {
            return rules.expect(told == first, || format!("as before: {first:?}"));
        }
        let meant = match target {
            Target::Whoever => known.holder,
            Target::Grant(wish) => known.holder.filter(|holder| *holder == wish),
        };
        let ended = meant.and_then(|wish| self.tokens.get(&wish).copied());
        let above = known.last.max(known.floor).max(ended);
        let changes = meant.is_some() || target == Target::Whoever;
        let expected = LockOutcome {
            revoked: meant.is_some(),
            previous_token: ended,
            previous_owner: meant.and_then(|wish| lock_spi::Owner::new(owner(wish.session)).ok()),
            new_token_floor: match changes {
                true => told.new_token_floor,
                false => known.floor,
            },
        };
        let rises = told.new_token_floor >= above && told.new_token_floor > ended;
        rules.expect(*told == expected && (!changes || rises), || {
            format!("{expected:?}, the floor above {above:?}")
        })?;
        if changes {
            if let Some(wish) = meant {
                self.end(wish, rules.window.begin);
            }
            let key = self.key(key);
            key.floor = told.new_token_floor;
            key.records.insert(0, (number, told.clone()));
        }
        Ok(())
    }
}

/// Whether an answer is this place with so many before it.
fn still_waits(answer: &Answer, wanted: u64, before: usize) -> bool {
    let Answer::Queued { position, ahead } = answer else {
        return false;
    };
    let told = ahead.map(usize::try_from);
    *position == wanted && told.is_none_or(|told| told == Ok(before))
}
