use std::fmt;
use std::sync::Arc;

/// Who did something, or to whom it happened: a lane of the timeline.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Lane {
    /// A process with a client in it. Started again under the same name it is another incarnation.
    Client {
        /// The owner's name.
        name: Arc<str>,
        /// 0 at first, and one more after each crash.
        incarnation: u32,
    },
    /// One member of the cluster.
    Member(u32),
    /// All that is between clients and members.
    Network,
    /// Whoever revokes, restarts and restores by hand.
    Operator,
    /// What a lock protects.
    Resource(Arc<str>),
    /// The cluster as a whole: what it has committed is true.
    Server,
    /// The run itself.
    World,
}

impl Lane {
    /// A client's lane.
    #[must_use]
    pub fn client(name: impl Into<Arc<str>>, incarnation: u32) -> Self {
        Self::Client {
            name: name.into(),
            incarnation,
        }
    }

    /// Whether it is a client's, of whichever incarnation.
    #[must_use]
    pub const fn is_client(&self) -> bool {
        matches!(self, Self::Client { .. })
    }

    /// Whether both are incarnations of one client, or the same lane.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Client { name, .. }, Self::Client { name: other, .. }) => name == other,
            _ => self == other,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client {
                name,
                incarnation: 0,
            } => write!(f, "client {name}"),
            Self::Client { name, incarnation } => {
                write!(f, "client {name}, start {}", incarnation + 1)
            }
            Self::Member(member) => write!(f, "member {member}"),
            Self::Network => f.write_str("network"),
            Self::Operator => f.write_str("operator"),
            Self::Resource(name) => write!(f, "resource {name}"),
            Self::Server => f.write_str("cluster"),
            Self::World => f.write_str("world"),
        }
    }
}
