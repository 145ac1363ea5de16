use std::future::{Future, pending};
use std::pin::pin;
use std::slice;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use lock_spi::{FencingToken, LockKey};

use crate::error::Result;
use crate::guard::{Guard, Release};
use crate::lost::Lost;

/// Several locks that are held together, each with a token of its own; made by
/// [`Client::acquire_all`](crate::Client::acquire_all).
///
/// Dropped, all are given back soon, as [`Guard`] tells of one.
#[derive(Debug, Default)]
#[must_use = "the locks are given back when the guards are dropped"]
pub struct Guards {
    /// In the order of their keys.
    guards: Vec<Guard>,
}

impl Guards {
    /// Takes in the guard of a key that comes after all the others'.
    pub(crate) fn push(&mut self, guard: Guard) {
        self.guards.push(guard);
    }

    /// The guards, in the byte order of their keys.
    pub fn iter(&self) -> slice::Iter<'_, Guard> {
        self.guards.iter()
    }

    /// The guard of a key, if it was one of them.
    #[must_use]
    pub fn get(&self, key: impl AsRef<str>) -> Option<&Guard> {
        let key = key.as_ref();
        let found = self
            .guards
            .binary_search_by(|guard| guard.key().as_str().cmp(key));
        found.ok().and_then(|at| self.guards.get(at))
    }

    /// The token of each key, in the order of the keys, while all of them are held. Ask it before
    /// every write, and hand each resource the token of its own key.
    ///
    /// # Errors
    ///
    /// [`Lost`] once one of them is no longer held.
    pub fn check(&self) -> Result<Vec<(LockKey, FencingToken)>, Lost> {
        let checked = self.iter().map(|guard| {
            let token = guard.check()?;
            Ok((guard.key().clone(), token))
        });
        checked.collect()
    }

    /// How long all of them are held without a further renewal; zero when one is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.iter().map(Guard::remaining).min().unwrap_or_default()
    }

    /// Resolves when one of them is lost; at once when one is so already.
    ///
    /// # Errors
    ///
    /// None: the answer is which was lost first, and how.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn lost(&self) -> Lost {
        let mut each: Vec<_> = self.iter().map(|guard| Box::pin(guard.lost())).collect();
        if each.is_empty() {
            return pending().await;
        }
        let (first, ..) = select_all(each.drain(..)).await;
        first
    }

    /// Runs `work` while all of them are held; when one is lost the work is dropped where it
    /// stands.
    ///
    /// # Errors
    ///
    /// [`Lost`] when one was lost before the work was done, also when the work came to its end
    /// without noticing.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: the work is dropped, the locks are kept. Queue
    /// place: none.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let work = pin!(work);
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost),
            output = work => self.check().map(|_| output),
        }
    }

    /// Gives all of them back, side by side; `Released` if all were held until now.
    ///
    /// However it ends, the guards are over: nothing renews them any more.
    ///
    /// # Errors
    ///
    /// The first that one of them met, as [`Guard::release`] tells it; the others are given back
    /// all the same, and the client goes on trying in the background.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: the releases go on in the background.
    /// Queue place: none.
    pub async fn release(self) -> Result<Release> {
        let found = join_all(self.guards.into_iter().map(Guard::release)).await;
        let found: Vec<_> = found.into_iter().collect::<Result<_>>()?;
        match found.contains(&Release::AlreadyGone) {
            true => Ok(Release::AlreadyGone),
            false => Ok(Release::Released),
        }
    }
}

impl<'g> IntoIterator for &'g Guards {
    type Item = &'g Guard;
    type IntoIter = slice::Iter<'g, Guard>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
