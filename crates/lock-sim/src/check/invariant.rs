use std::fmt;

/// The invariants of the contract.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Invariant {
    /// One grant of a key.
    OneGrant,
    /// Grants and places end with their session.
    Cascade,
    /// A grant keeps its token.
    SameToken,
    /// Tokens rise, above every floor.
    TokensRise,
    /// Nothing is called lost that is not.
    NoFalseLoss,
    /// What ends something ends that and nothing else.
    ExactEnd,
    /// What is gone stays gone.
    GoneForGood,
    /// Whoever waits is granted, in order and in time.
    Turns,
    /// What was given up leaves nothing.
    NoGhost,
    /// Nobody believes in what is not true.
    NoFalseHold,
    /// Nothing panics, hangs, or fails for a reason that it may not have.
    Sound,
    /// What the user of the simulator wants to hold.
    Own,
}

impl Invariant {
    /// Its id in the contract, where it has one.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneGrant => "INV-01",
            Self::Cascade => "INV-02",
            Self::SameToken => "INV-03",
            Self::TokensRise => "INV-04",
            Self::NoFalseLoss => "INV-05",
            Self::ExactEnd => "INV-06",
            Self::GoneForGood => "INV-07",
            Self::Turns => "INV-08",
            Self::NoGhost => "INV-09",
            Self::NoFalseHold => "INV-10",
            Self::Sound => "sound",
            Self::Own => "own",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
