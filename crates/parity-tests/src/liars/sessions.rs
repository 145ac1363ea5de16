//! Lies about sessions.

use std::collections::BTreeMap;

use lock_spi::{
    Effect, Error, ErrorKind, Gone, GoneReason, GrantRef, KeepAliveRequest, KeptAlive, LockStore,
    OpenSessionRequest, Owner, Result, SessionId, SessionLease, Ttl,
};

use super::memory::Opened;
use super::{Lie, Lying};

impl<S: LockStore> Lying<S> {
    pub(super) async fn open(&self, request: OpenSessionRequest) -> Result<SessionLease> {
        let OpenSessionRequest {
            session,
            owner,
            ttl,
        } = request.clone();
        let known = self.memory().sessions.contains_key(&session);
        if known && self.tells(Lie::RefusesRepeatedOpenings) {
            return Err(refused(ErrorKind::InvalidRequest, "this id is taken"));
        }
        if self.is_closed_in_name(session) {
            return Err(refused(ErrorKind::SessionGone, "it was closed"));
        }
        let whole = SessionLease {
            session,
            ttl,
            remaining: ttl.as_duration(),
        };
        let asked = match self.tells(Lie::ShortensTtls) {
            true => OpenSessionRequest {
                ttl: self.store.descriptor().capabilities.min_ttl,
                ..request
            },
            false => request,
        };
        let lease = match self.store.open_session(asked).await {
            Ok(_) if self.tells(Lie::ShortensTtls) => Ok(whole),
            Err(error) => match error.kind() {
                ErrorKind::SessionGone if self.tells(Lie::ReopensClosedSessions) => Ok(whole),
                ErrorKind::InvalidRequest if self.tells(Lie::SharesSessions) => Ok(whole),
                _ => Err(error),
            },
            answer => answer,
        }?;
        let ttl = lease.ttl;
        self.memory()
            .sessions
            .insert(session, Opened { owner, ttl });
        Ok(lease)
    }

    pub(super) async fn adopt(&self, session: SessionId) -> Result<Option<SessionLease>> {
        let again = !self.memory().adopted.insert(session);
        if again && self.tells(Lie::AdoptsOnce) {
            return Err(refused(ErrorKind::InvalidRequest, "it was adopted before"));
        }
        if self.tells(Lie::EmptiesAdoptedSessions) {
            self.release_all_of(session).await?;
        }
        let ttl = self.ttl(session);
        match self.store.adopt_session(session).await {
            Ok(None) if self.tells(Lie::AdoptsWhatIsGone) => Ok(Some(SessionLease {
                session,
                ttl,
                remaining: ttl.as_duration(),
            })),
            answer => answer,
        }
    }

    pub(super) async fn keep(&self, mut request: KeepAliveRequest) -> Result<Option<KeptAlive>> {
        let session = request.session;
        if self.is_closed_in_name(session) {
            return Ok(None);
        }
        let asked = std::mem::take(&mut request.grants);
        request.grants = asked.iter().map(|grant| self.own_grant(grant)).collect();
        if self.tells(Lie::KeepsWhatIsNotListed) {
            let memory = self.memory();
            let known = memory.attempts.get(&session).into_iter().flatten();
            request.attempts.extend(known);
        }
        // By the store's own names, those of the caller.
        let names: BTreeMap<_, _> = request.grants.iter().cloned().zip(asked.clone()).collect();
        let named = |key, token| {
            let own = GrantRef { key, token };
            names.get(&own).cloned().unwrap_or(own)
        };
        let kept = match self.store.keep_alive(request).await {
            Err(_) if self.tells(Lie::TakesSilenceForAnEnd) => None,
            Ok(None) if self.tells(Lie::RevivesSessions) => Some(KeptAlive {
                remaining: self.ttl(session).as_duration(),
                ..KeptAlive::default()
            }),
            answer => answer?,
        };
        let Some(mut kept) = kept else {
            return Ok(None);
        };
        for gone in &mut kept.gone {
            let GrantRef { key, token } = named(gone.key.clone(), gone.token);
            (gone.key, gone.token) = (key, token);
        }
        for (late, _) in &mut kept.late {
            *late = named(late.key.clone(), late.token);
        }
        if self.tells(Lie::HidesWhatIsGone) {
            kept.gone.clear();
        }
        if self.tells(Lie::NamesWhatStands) {
            kept.gone = asked.into_iter().map(as_gone).collect();
        }
        if self.tells(Lie::StretchesDeadlines) {
            kept.remaining += kept.remaining / 2;
        }
        Ok(Some(kept))
    }

    pub(super) async fn close(&self, session: SessionId) -> Result<()> {
        let again = !self.memory().closed.insert(session);
        if again && self.tells(Lie::ClosesOnce) {
            return Err(refused(ErrorKind::SessionGone, "it is not open"));
        }
        if self.tells(Lie::LeavesPlacesBehind) {
            self.release_all_of(session).await?;
        }
        match self.is_closed_in_name(session) {
            true => Ok(()),
            false => self.store.close_session(session).await,
        }
    }

    /// Whether a session was closed and stands all the same.
    pub(super) fn is_closed_in_name(&self, session: SessionId) -> bool {
        let lies = self.tells(Lie::LeavesGrantsBehind) || self.tells(Lie::LeavesPlacesBehind);
        lies && self.memory().closed.contains(&session)
    }

    async fn release_all_of(&self, session: SessionId) -> Result<()> {
        let granted = self.memory().granted.clone();
        for ((key, _), token) in granted {
            if self.memory().granted_to.get(&token) == Some(&session) {
                self.store.delete_if_owner(&self.key(&key), token).await?;
            }
        }
        Ok(())
    }

    /// A session that nobody asked for.
    pub(super) async fn open_hidden(&self) -> Result<SessionId> {
        let session = SessionId::random(&*self.runtime);
        let request = OpenSessionRequest {
            session,
            owner: Owner::default(),
            ttl: Ttl::DEFAULT,
        };
        self.store.open_session(request).await?;
        Ok(session)
    }

    pub(super) fn ttl(&self, session: SessionId) -> Ttl {
        let memory = self.memory();
        let known = memory.sessions.get(&session);
        known.map_or(Ttl::DEFAULT, |opened| opened.ttl)
    }

    pub(super) async fn reap(&self, limit: u32) -> Result<u32> {
        if self.tells(Lie::ReapsTheLiving) {
            let sessions: Vec<_> = self.memory().sessions.keys().copied().collect();
            for session in sessions {
                self.store.close_session(session).await?;
            }
        }
        self.store.reap_expired(limit).await
    }
}

fn as_gone(grant: GrantRef) -> Gone {
    Gone {
        key: grant.key,
        token: grant.token,
        why: GoneReason::Ended,
    }
}

pub(super) fn refused(kind: ErrorKind, message: &'static str) -> Error {
    Error::new(kind, Effect::None, message)
}
