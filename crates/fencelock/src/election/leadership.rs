use std::future::Future;

use lock_spi::{FencingToken, LockKey};

use crate::error::Result;
use crate::guard::{Guard, Release};
use crate::held::Held;
use crate::lost::Lost;

/// A reign as leader: renewed in the background, ended by [`resign`](Self::resign); made by
/// [`Election::campaign`](crate::Election::campaign).
///
/// Dropped, it is resigned soon, by a task of the client.
///
/// # Examples
///
/// ```
/// # use fencelock::spi::{FencingToken, Payload};
/// # async fn schedule(_: FencingToken) {}
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "memory")] {
/// # let locks = fencelock::Client::connect("memory:").await?;
/// let election = locks.election("scheduler")?;
/// loop {
///     let leadership = election.campaign("10.0.0.7:8080").await?;
///     match leadership.run(schedule(leadership.token())).await {
///         Ok(()) => break, // the work is done
///         Err(lost) => eprintln!("stepped down: {lost}"),
///     }
/// }
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropped, it is resigned"]
pub struct Leadership {
    guard: Guard,
}

impl Leadership {
    pub(super) fn new(guard: Guard) -> Self {
        Self { guard }
    }

    /// What was campaigned for.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        self.guard.key()
    }

    /// The fencing token of this reign, whether or not it is over; see [`check`](Self::check).
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.guard.token()
    }

    /// The token while the reign lasts. Ask it before every write, and hand it to the resource.
    ///
    /// # Errors
    ///
    /// [`Lost`] once the reign is over.
    pub fn check(&self) -> Result<FencingToken, Lost> {
        self.guard.check()
    }

    /// A view for closures and other tasks; it does not keep the reign.
    #[must_use]
    pub fn held(&self) -> Held {
        self.guard.held()
    }

    /// Resolves when the reign is over; at once when it is so already.
    ///
    /// # Errors
    ///
    /// None: the answer is how it ended.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn lost(&self) -> Lost {
        self.guard.lost().await
    }

    /// Runs `work` while the reign lasts; when it ends, the work is dropped where it stands.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the reign ended before the work was done, also when the work came to its end
    /// without noticing.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: the work is dropped, the reign goes on. Queue
    /// place: none.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.guard.run(work).await
    }

    /// Ends the reign, so that the next may lead at once; tells whether it lasted until now.
    ///
    /// # Errors
    ///
    /// Those of [`Guard::release`]: the client goes on trying in the background.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it goes on in the background. Queue
    /// place: none.
    pub async fn resign(self) -> Result<Release> {
        self.guard.release().await
    }
}
