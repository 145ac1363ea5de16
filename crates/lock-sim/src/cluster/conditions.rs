use std::time::Duration;

/// What goes wrong at every member. Chances are per mille of the requests that they are about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Conditions {
    /// Nothing that writes keys or grants leases is taken; deletions are.
    pub(crate) full: bool,
    /// Of what a full store refuses: has been done all the same.
    pub(crate) refused_but_done: u16,
    /// What was done is answered with an error.
    pub(crate) errors_after_commit: u16,
    /// A renewal is answered with a ttl of zero, whatever it did.
    pub(crate) zero_ttls: u16,
    /// A renewal reaches the lease late, by up to so much.
    pub(crate) late_renewals: u16,
    /// How late.
    pub(crate) longest_lateness: Duration,
    /// A lease id that was chosen is said to be taken.
    pub(crate) taken_leases: u16,
    /// A watch keeps a message for itself.
    pub(crate) dropped_events: u16,
    /// A watch tells a message once more.
    pub(crate) repeated_events: u16,
    /// A watch ends because what it has to tell was compacted.
    pub(crate) compacted_watches: u16,
    /// A watch at a member that is out of touch is never told so.
    pub(crate) silent_watches: bool,
    /// Every request waits for up to so long before it is applied.
    pub(crate) slowness: Duration,
}
