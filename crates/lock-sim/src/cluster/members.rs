//! Which members run, which are in touch with each other, and which one leads.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_kv::{Header, LeaseId};

/// All members of a cluster.
#[derive(Debug)]
pub(crate) struct Members {
    members: Vec<State>,
    leader: Option<usize>,
    /// Counts the times at which somebody began to look for a leader.
    searches: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    stopped: bool,
    cut_off: Option<Frozen>,
    /// How often its process ended, and streams with it.
    lives: u64,
    /// What it knew when it was out of touch, and until when it may still take it for the present.
    stale: Option<(i64, Duration)>,
    /// Until when renewals that it passes on go to a leader that is no more.
    misled_until: Duration,
}

/// What a member knows that is out of touch with the others.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    pub(crate) header: Header,
    /// With their ttl, and when they end as far as it knows.
    pub(crate) leases: BTreeMap<LeaseId, (i64, Duration)>,
    /// When it notices.
    pub(crate) notices_at: Duration,
    /// Until when it answers renewals as if it led, should it be the leader that was deposed.
    pub(crate) answers_until: Duration,
    pub(crate) led: bool,
}

/// What a member can do with a request at this moment.
#[derive(Clone, Debug)]
pub(crate) enum Touch {
    /// It is one of a majority that has a leader.
    Full,
    /// Its process does not run.
    Stopped,
    /// Nobody leads, as far as it can see.
    Lost {
        /// When it notices.
        notices_at: Option<Duration>,
    },
}

impl Members {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            members: vec![State::default(); count],
            leader: Some(0),
            searches: 0,
        }
    }

    pub(crate) const fn leader(&self) -> Option<usize> {
        self.leader
    }

    pub(crate) fn touch(&self, member: usize) -> Touch {
        let Some(state) = self.members.get(member) else {
            return Touch::Stopped;
        };
        match (&state.cut_off, self.leader) {
            _ if state.stopped => Touch::Stopped,
            (Some(frozen), _) => Touch::Lost {
                notices_at: Some(frozen.notices_at),
            },
            (None, Some(_)) => Touch::Full,
            (None, None) => Touch::Lost { notices_at: None },
        }
    }

    pub(crate) fn frozen(&self, member: usize) -> Option<&Frozen> {
        self.members.get(member)?.cut_off.as_ref()
    }

    pub(crate) fn lives(&self, member: usize) -> u64 {
        self.members.get(member).map_or(0, |state| state.lives)
    }

    /// The revision that the member may still take for the present.
    pub(crate) fn stale(&self, member: usize, now: Duration) -> Option<i64> {
        let stale = self.members.get(member)?.stale;
        stale.and_then(|(revision, until)| (now < until).then_some(revision))
    }

    /// Whether renewals that the member passes on reach nobody.
    pub(crate) fn is_misled(&self, member: usize, now: Duration) -> bool {
        let state = self.members.get(member);
        self.leader != Some(member) && state.is_some_and(|state| now < state.misled_until)
    }

    pub(crate) fn mislead(&mut self, until: Duration) {
        for state in &mut self.members {
            state.misled_until = until;
        }
    }

    pub(crate) fn cut_off(&mut self, member: usize, mut frozen: Frozen) {
        frozen.led = self.leader == Some(member);
        if let Some(state) = self.members.get_mut(member)
            && state.cut_off.is_none()
        {
            state.cut_off = Some(frozen);
        }
    }

    /// The member is well; answers with what it knew while it was not, if it led.
    pub(crate) fn reconnect(&mut self, member: usize, stale_until: Duration) -> Option<Frozen> {
        let state = self.members.get_mut(member)?;
        state.stopped = false;
        let frozen = state.cut_off.take()?;
        state.stale = Some((frozen.header.revision, stale_until));
        frozen.led.then_some(frozen)
    }

    pub(crate) fn stop(&mut self, member: usize) {
        if let Some(state) = self.members.get_mut(member)
            && !state.stopped
        {
            state.stopped = true;
            state.lives += 1;
        }
    }

    pub(crate) fn restart_all(&mut self) {
        for state in &mut self.members {
            state.stopped = false;
            state.lives += 1;
        }
    }

    /// Those that are in touch with each other.
    fn connected(&self) -> impl Iterator<Item = usize> + '_ {
        let members = self.members.iter().enumerate();
        members
            .filter(|(_, state)| !state.stopped && state.cut_off.is_none())
            .map(|(member, _)| member)
    }

    fn has_majority(&self) -> bool {
        2 * self.connected().count() > self.members.len()
    }

    /// Drops a leader that has no majority behind it; `true` if there was one.
    pub(crate) fn depose(&mut self) -> bool {
        let leads =
            |leader: usize| self.has_majority() && self.connected().any(|one| one == leader);
        let deposed = self.leader.is_some_and(|leader| !leads(leader));
        if deposed {
            self.leader = None;
        }
        deposed
    }

    /// Somebody begins to look for a leader, if one is missing and can be had.
    pub(crate) fn begin_search(&mut self) -> Option<u64> {
        if self.leader.is_some() || !self.has_majority() {
            return None;
        }
        self.searches += 1;
        Some(self.searches)
    }

    /// Of those who may lead, this one does; `None` if the search was overtaken by events.
    pub(crate) fn end_search(&mut self, search: u64, choice: usize) -> Option<usize> {
        if self.searches != search || self.leader.is_some() || !self.has_majority() {
            return None;
        }
        let candidates: Vec<usize> = self.connected().collect();
        self.leader = candidates.get(choice % candidates.len().max(1)).copied();
        self.leader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frozen() -> Frozen {
        Frozen {
            header: Header::default(),
            leases: BTreeMap::new(),
            notices_at: Duration::ZERO,
            answers_until: Duration::ZERO,
            led: false,
        }
    }

    #[test]
    fn a_leader_without_a_majority_is_deposed_and_the_majority_finds_another() {
        let mut members = Members::new(3);
        members.cut_off(0, frozen());
        assert!(members.frozen(0).is_some_and(|frozen| frozen.led));
        assert!(members.depose());
        let search = members.begin_search();
        assert_eq!(search, Some(1));
        assert_eq!(members.end_search(1, 1), Some(2));
        assert!(matches!(members.touch(1), Touch::Full));
        assert!(matches!(members.touch(0), Touch::Lost { .. }));
        assert!(members.reconnect(0, Duration::ZERO).is_some());
        assert!(matches!(members.touch(0), Touch::Full));
    }

    #[test]
    fn without_a_majority_nobody_leads() {
        let mut members = Members::new(3);
        members.stop(1);
        assert!(!members.depose(), "two of three are enough");
        members.cut_off(2, frozen());
        assert!(members.depose());
        assert_eq!(members.begin_search(), None);
        assert!(
            members.reconnect(2, Duration::ZERO).is_none(),
            "it did not lead"
        );
        let search = members.begin_search();
        members.stop(0);
        assert_eq!(
            search.and_then(|search| members.end_search(search, 0)),
            None
        );
    }
}
