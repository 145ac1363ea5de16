use lock_spi::{Finding, Migration};

use crate::connect::{self, Duty, StoreUrl};
use crate::error::Result;

/// A store as an operator finds it: before locks are kept in it, or when none can be.
///
/// [`Client::connect`](crate::Client::connect) needs a store that is in order;
/// [`Client::admin`](crate::Client::admin) has what is done to one that is.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> fencelock::Result<()> {
/// # #[cfg(feature = "memory")] {
/// let here = fencelock::Installation::at("memory:")?;
/// for finding in here.examine().await? {
///     println!("{}: {}; {}", finding.id, finding.what, finding.what_to_do);
/// }
/// assert!(here.script().is_none(), "only Postgres has a schema");
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Installation {
    url: StoreUrl,
}

impl Installation {
    /// Names a store by the URL that [`Client::connect`](crate::Client::connect) takes. Nothing is
    /// connected to yet.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a URL that cannot be understood.
    pub fn at(url: &str) -> Result<Self> {
        Ok(Self { url: url.parse()? })
    }

    /// The statements that make everything that the store needs, as one transaction; `None` where a
    /// store needs nothing made.
    #[must_use]
    pub fn script(&self) -> Option<String> {
        connect::script(&self.url)
    }

    /// The statements that let a role of the database use the locks; `None` where a store has no
    /// such statements.
    #[must_use]
    pub fn rights(&self, role: &str) -> Option<String> {
        connect::rights(&self.url, role, Duty::Locks)
    }

    /// The statements that let a role of the database clear away what is dead
    /// ([`Admin::reap_expired`](crate::Admin::reap_expired)), and nothing else; `None` where a store
    /// has no such statements.
    #[must_use]
    pub fn reaper_rights(&self, role: &str) -> Option<String> {
        connect::rights(&self.url, role, Duty::ClearingUp)
    }

    /// Looks for whatever an operator should know, whether or not locks can be kept here. It includes
    /// what [`Admin::diagnose`](crate::Admin::diagnose) tells.
    ///
    /// # Errors
    ///
    /// `InvalidRequest` for a URL that makes no sense. What can be found out is a finding, not an
    /// error; that the store cannot be reached as well.
    ///
    /// # Cancel safety
    ///
    /// Remote effect: none that lasts. On drop: nothing to compensate. Queue place: none.
    pub async fn examine(&self) -> Result<Vec<Finding>> {
        connect::examine(&self.url).await
    }

    /// Compares the stored format with the one that this build speaks. A namespace of etcd is made by
    /// being looked at.
    ///
    /// # Errors
    ///
    /// Those of [`Client::connect`](crate::Client::connect).
    ///
    /// # Cancel safety
    ///
    /// Remote effect: cannot have happened. On drop: nothing to compensate. Queue place: none.
    pub async fn migration(&self) -> Result<Migration> {
        connect::migration(&self.url).await
    }

    /// Makes what the store needs, or brings it up to this build's format. Repeated, and by several
    /// at once, it is fine.
    ///
    /// # Errors
    ///
    /// `Incompatible` when the stored format is newer than this build's; `Denied` without the rights
    /// of an owner; and those of [`Client::connect`](crate::Client::connect).
    ///
    /// # Cancel safety
    ///
    /// Remote effect: may already have happened. On drop: it runs to its end. Queue place: none.
    pub async fn migrate(&self) -> Result<Migration> {
        connect::migrate(&self.url).await
    }
}
