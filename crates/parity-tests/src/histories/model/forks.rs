//! What may have happened by itself before a call was answered.

use std::time::Duration;

use lock_spi::{Expiry, Instant};

use super::world::{Fate, Session, World};
use super::{Model, Window};

/// No sooner is somebody passed over that does not take its turn.
const CLAIM: Duration = Duration::from_secs(12);

impl Model {
    /// Every world that may be by this moment.
    pub(super) fn possible(&self, window: Window) -> Vec<World> {
        let own_ends = self.capabilities.expiry != Expiry::ByItself;
        let mut worlds = Vec::new();
        for world in &self.worlds {
            let mut possible = vec![world.clone()];
            possible = fork_all(possible, &sessions_of(world), |world, session| {
                world.expire(session, window)
            });
            if own_ends {
                let wishes: Vec<_> = world.fates.keys().copied().collect();
                possible = fork_all(possible, &wishes, |world, wish| {
                    world.expire_grant(wish, window)
                });
            }
            let keys: Vec<_> = world.keys.keys().copied().collect();
            possible = fork_all(possible, &keys, |world, key| world.pass_over(key, window));
            worlds.extend(possible);
        }
        worlds
    }
}

fn sessions_of(world: &World) -> Vec<u8> {
    world.sessions.keys().copied().collect()
}

fn fork_all<T: Copy>(
    worlds: Vec<World>,
    things: &[T],
    fork: impl Fn(World, T) -> Vec<World>,
) -> Vec<World> {
    things.iter().fold(worlds, |worlds, &thing| {
        let forked = worlds.into_iter().flat_map(|world| fork(world, thing));
        forked.collect()
    })
}

/// What may have become of something that ends by itself.
struct May {
    stand: bool,
    end: bool,
}

fn may(earliest: Instant, latest: Instant, window: Window) -> May {
    May {
        stand: window.begin <= latest,
        end: window.end >= earliest,
    }
}

impl World {
    fn expire(self, session: u8, window: Window) -> Vec<Self> {
        let Some(Session::Open(lease)) = self.sessions.get(&session) else {
            return vec![self];
        };
        let lease = *lease;
        let may = may(lease.earliest, lease.latest, window);
        let mut ended = self.clone();
        ended.end_session(session, lease.earliest);
        let stands = may.stand.then_some(self);
        stands.into_iter().chain(may.end.then_some(ended)).collect()
    }

    fn expire_grant(self, wish: super::super::call::Wish, window: Window) -> Vec<Self> {
        let Some(Fate::Holds(lease)) = self.fates.get(&wish) else {
            return vec![self];
        };
        let lease = *lease;
        let may = may(lease.earliest, lease.latest, window);
        let mut ended = self.clone();
        ended.end(wish, lease.earliest);
        let stands = may.stand.then_some(self);
        stands.into_iter().chain(may.end.then_some(ended)).collect()
    }

    /// Those who do not take their turn may have been passed over, the first in line first.
    fn pass_over(self, key: u8, window: Window) -> Vec<Self> {
        let mut worlds = vec![self];
        loop {
            let last = &worlds[worlds.len() - 1];
            let Some(known) = last.keys.get(&key) else {
                return worlds;
            };
            let sleeps = known.turn.is_some_and(|since| window.end >= since + CLAIM);
            let (None, Some(&first), true) = (known.holder, known.queue.first(), sleeps) else {
                return worlds;
            };
            let turn = known.turn;
            let mut next = last.clone();
            next.end(first, window.begin);
            // Whoever passes one may pass several.
            next.key(key).turn = turn;
            worlds.push(next);
        }
    }
}
