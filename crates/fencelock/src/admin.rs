mod upkeep;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use futures_util::stream::{Stream, try_unfold};
use lock_spi::{
    FencingToken, Invalid, KeyPrefix, LockInfo, LockKey, LockOutcome, LockStore, Owner, Page,
    PageRequest, PageToken, Reason, Revocation, RevocationId, RevokeRequest, RevokeTarget, Runtime,
};

pub use self::upkeep::Recover;
use crate::error::{Error, Result};

/// What operators do with locks that others hold; made by [`Client::admin`](crate::Client::admin).
#[derive(Clone, Debug)]
pub struct Admin {
    store: Arc<dyn LockStore>,
    runtime: Arc<dyn Runtime>,
    owner: Owner,
}

impl Admin {
    pub(crate) fn new(store: Arc<dyn LockStore>, runtime: Arc<dyn Runtime>, owner: Owner) -> Self {
        Self {
            store,
            runtime,
            owner,
        }
    }

    /// Tells what is known of a key. It may be out of date when it arrives: decide nothing by it.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key, and those of the store.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn read<K>(&self, key: K) -> Result<LockInfo>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        Ok(self.store.read(&key.try_into()?).await?)
    }

    /// Lists the locks that are held and whose key starts with `prefix`, byte for byte, in the
    /// store's own stable order. The empty prefix lists all.
    ///
    /// # Errors
    ///
    /// Each item may be an error of the store; after one the list ends.
    pub fn list(
        &self,
        prefix: &KeyPrefix,
    ) -> impl Stream<Item = Result<LockInfo>> + Send + 'static + use<> {
        let (store, prefix) = (Arc::clone(&self.store), prefix.clone());
        entries(move |page| {
            let (store, prefix) = (Arc::clone(&store), prefix.clone());
            async move { store.list(&prefix, page).await }
        })
    }

    /// Ends a grant from outside; the next holder gets a higher token. Nothing happens before
    /// [`send`](Revoke::send).
    ///
    /// Name the grant by its token where you can: [`RevokeTarget::Whoever`] also ends a grant that
    /// began only after you looked.
    pub fn revoke<K>(&self, key: K, target: RevokeTarget) -> Revoke
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        let id = RevocationId::random(&*self.runtime);
        let by = self.owner.clone();
        let request = key.try_into().map(|key| RevokeRequest {
            key,
            target,
            id,
            by,
            reason: Reason::default(),
        });
        Revoke {
            store: Arc::clone(&self.store),
            request: request.map_err(|invalid| Arc::new(Error::from(invalid))),
        }
    }

    /// Releases a grant that somebody else holds, or held, in their stead; `true` when this call ended
    /// it. Only the grant that the token names is ended, and nothing is recorded: where its holder
    /// lives, [`revoke`](Self::revoke) is what tells it why.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key, and those of the store. When the effect is `Unknown`, ask
    /// again: `false` then means that the grant is gone, one way or the other.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    pub async fn release<K>(&self, key: K, token: FencingToken) -> Result<bool>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        Ok(self.store.delete_if_owner(&key.try_into()?, token).await?)
    }

    /// Lists the revocations of a key, newest first.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key. Each item may be an error of the store; after one the list
    /// ends.
    pub fn revocations<K>(
        &self,
        key: K,
    ) -> Result<impl Stream<Item = Result<Revocation>> + Send + 'static + use<K>>
    where
        K: TryInto<LockKey>,
        Error: From<K::Error>,
    {
        let (store, key) = (Arc::clone(&self.store), key.try_into()?);
        Ok(entries(move |page| {
            let (store, key) = (Arc::clone(&store), key.clone());
            async move { store.revocations(&key, page).await }
        }))
    }
}

/// A revoke that is being prepared; made by [`Admin::revoke`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before it is sent"]
pub struct Revoke {
    store: Arc<dyn LockStore>,
    request: Result<RevokeRequest, Arc<Error>>,
}

impl Revoke {
    /// Says who revokes, for the record; otherwise it is the client's owner.
    pub fn by<T: TryInto<Owner, Error = Invalid>>(self, by: T) -> Self {
        self.with(by.try_into(), |request, by| request.by = by)
    }

    /// Says why, for the record and for the holder.
    pub fn reason<T: TryInto<Reason, Error = Invalid>>(self, reason: T) -> Self {
        self.with(reason.try_into(), |request, reason| request.reason = reason)
    }

    fn with<T>(
        mut self,
        value: Result<T, Invalid>,
        set: impl FnOnce(&mut RevokeRequest, T),
    ) -> Self {
        self.request = self.request.and_then(|mut request| {
            set(
                &mut request,
                value.map_err(|invalid| Arc::new(invalid.into()))?,
            );
            Ok(request)
        });
        self
    }

    /// Revokes.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a bad key, name or reason; and those of the store. When the effect is
    /// `Unknown`, send a clone again: it is the same revoke, and answers the first outcome.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end; send a clone again to
    /// learn the outcome. Queue place: none.
    pub async fn send(self) -> Result<LockOutcome> {
        let request = self.request.map_err(|error| error.share())?;
        Ok(self.store.revoke(request).await?)
    }
}

/// The entries of all pages, one after the other.
fn entries<T, P, F>(page: P) -> impl Stream<Item = Result<T>> + Send + 'static + use<T, P, F>
where
    T: Send + 'static,
    P: Fn(PageRequest) -> F + Send + 'static,
    F: Future<Output = lock_spi::Result<Page<T>>> + Send + 'static,
{
    struct Reading<T, P> {
        page: P,
        entries: VecDeque<T>,
        next: Next,
    }
    enum Next {
        Page(Option<PageToken>),
        End,
    }
    let begin = Reading {
        page,
        entries: VecDeque::new(),
        next: Next::Page(None),
    };
    try_unfold(begin, |mut reading| async move {
        loop {
            if let Some(entry) = reading.entries.pop_front() {
                return Ok(Some((entry, reading)));
            }
            let after = match std::mem::replace(&mut reading.next, Next::End) {
                Next::Page(after) => after,
                Next::End => return Ok(None),
            };
            let request = PageRequest {
                after,
                ..PageRequest::default()
            };
            let page = (reading.page)(request).await?;
            reading.entries = page.entries.into();
            reading.next = match page.next {
                Some(token) => Next::Page(Some(token)),
                None => Next::End,
            };
        }
    })
}
