//! Makes histories out of seeds.

use lock_spi::Queue;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::call::{Call, Lists, NODES, Target, Wish, wish};

/// Which histories are drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mix {
    /// Sessions last, and time does not matter: for real time.
    Timeless,
    /// Half of the sessions live for the least ttl, and time passes: for virtual time.
    Timed,
}

const CALLS: usize = 60;
const SESSIONS: u8 = 6;
const KEYS: u8 = 2;
const NUMBERS: u8 = 3;
const REVOKES: u8 = 3;
/// Long enough for anything to have happened.
const LONG: u32 = 13_000;

/// The history of this seed.
#[must_use]
pub fn draw(seed: u64, mix: Mix) -> Vec<Call> {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed), mix);
    let opened = (0..SESSIONS).filter(|session| mix == Mix::Timed || session % 2 == 0);
    let mut history: Vec<_> = opened.map(Call::Open).collect();
    history.retain(|_| dice.below(5) > 0);
    let calls = (0..CALLS).map(|_| dice.call());
    history.extend(calls);
    history
}

struct Dice(ChaCha8Rng, Mix);

impl Dice {
    fn below(&mut self, limit: u8) -> u8 {
        let drawn = self.0.next_u64() % u64::from(limit.max(1));
        u8::try_from(drawn).unwrap_or(0)
    }

    fn session(&mut self) -> u8 {
        match self.1 {
            Mix::Timeless => self.below(SESSIONS / 2) * 2,
            Mix::Timed => self.below(SESSIONS),
        }
    }

    fn wish(&mut self) -> Wish {
        wish(self.session(), self.below(KEYS), self.below(NUMBERS))
    }

    fn call(&mut self) -> Call {
        let timed = if self.1 == Mix::Timed { 8 } else { 0 };
        match self.below(92 + timed) {
            0..=3 => Call::Open(self.session()),
            4 => Call::OpenElsewhere(self.session()),
            5..=12 => Call::Keep(self.session(), self.lists()),
            13..=14 => Call::Close(self.session()),
            15 => Call::Kill(self.session()),
            16..=42 => Call::Insert(self.wish(), self.queue()),
            43..=46 => Call::Wait(self.wish()),
            47..=55 => Call::Extend(self.wish()),
            56..=68 => Call::Release(self.wish(), self.below(NODES)),
            69..=73 => Call::Abandon(self.wish()),
            74..=79 => self.revoke(),
            80..=84 => Call::Read(self.below(KEYS), self.below(NODES)),
            85..=87 => Call::List(u32::from(self.below(3)) + 1, self.below(NODES)),
            88..=90 => Call::Records(self.below(KEYS), self.below(NODES)),
            91 => Call::Reap(self.below(NODES)),
            _ => Call::Pass(self.pause()),
        }
    }

    fn lists(&mut self) -> Lists {
        match self.below(8) {
            0 => Lists::Nothing,
            1 => Lists::Grants,
            2 => Lists::Attempts,
            _ => Lists::Everything,
        }
    }

    fn queue(&mut self) -> Queue {
        match self.below(3) {
            0 => Queue::Never,
            _ => Queue::Join,
        }
    }

    /// A number has one target, as a wish that is repeated has.
    fn revoke(&mut self) -> Call {
        let (key, number) = (self.below(KEYS), self.below(REVOKES));
        let target = match number {
            0 => Target::Whoever,
            _ => Target::Grant(wish((number - 1) * 2, key, 0)),
        };
        Call::Revoke(key, number, target)
    }

    fn pause(&mut self) -> u32 {
        match self.below(8) {
            0 => LONG,
            tenths => u32::from(tenths) * 250,
        }
    }
}
