/// How a mock store is set up.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The cluster id in every header.
    pub cluster_id: u64,
    /// When leases end whose time is over.
    pub expiry: Expiry,
    /// How much of the past can be read and watched.
    pub retention: Retention,
    /// The least ttl of a lease in seconds; shorter ones are raised to it.
    pub min_lease_ttl: i64,
    /// The raft term in every header, until it is set anew.
    pub raft_term: u64,
}

/// When a lease ends whose time is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expiry {
    /// At once.
    Exact,
    /// As on a real server: it looks for such leases every 500 ms and ends 500 at most each time, those
    /// first whose time was over first. Until then the lease stands. Its remaining time shows as 0,
    /// its keys can be read, and puts on it succeed; but nothing renews it, and a keepalive is not
    /// answered before it has ended.
    Scanned,
}

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retention {
    /// Everything that nobody has compacted.
    All,
    /// About so many revisions: what is older is compacted from time to time, by itself.
    Last(u32),
}

impl Options {
    /// For a store that lives as long as its process: the last 10,000 revisions are kept.
    #[must_use]
    pub fn embedded() -> Self {
        Self::default().with_retention(Retention::Last(10_000))
    }

    /// The same with another cluster id.
    #[must_use]
    pub const fn with_cluster_id(mut self, cluster_id: u64) -> Self {
        self.cluster_id = cluster_id;
        self
    }

    /// The same with another expiry.
    #[must_use]
    pub const fn with_expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// The same with another retention.
    #[must_use]
    pub const fn with_retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// The same with another least ttl, in seconds.
    #[must_use]
    pub const fn with_min_lease_ttl(mut self, seconds: i64) -> Self {
        self.min_lease_ttl = seconds;
        self
    }

    /// The same, starting in another raft term.
    #[must_use]
    pub const fn with_raft_term(mut self, raft_term: u64) -> Self {
        self.raft_term = raft_term;
        self
    }
}

impl Default for Options {
    /// All of the past is kept; leases last at least a second and end at once when their time is
    /// over; the term is 2, as after the first election of a fresh cluster.
    fn default() -> Self {
        Self {
            cluster_id: 0xfe2c_e10c,
            expiry: Expiry::Exact,
            retention: Retention::All,
            min_lease_ttl: 1,
            raft_term: 2,
        }
    }
}
