use std::time::Duration;

/// One call, from its beginning to its end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call<C> {
    /// What was asked and answered.
    pub call: C,
    /// When it began.
    pub began: Duration,
    /// When it was answered. Of a call without an answer nobody knows whether it ever took effect.
    pub ended: Option<Duration>,
}

/// The calls of one object.
pub type History<C> = Vec<Call<C>>;
