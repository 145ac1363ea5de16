/// Numbers from a seed (SplitMix64): as cheap as they come, and good enough to choose by.
#[derive(Debug)]
pub(crate) struct Chance(u64);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far apart.
        Self(mix(seed))
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }
}

/// Turns numbers that are alike into numbers that are not; no two into the same.
pub(crate) const fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_differ_from_seed_to_seed() {
        let mut heads = 0;
        let mut first = BTreeSet::new();
        for seed in 0..1000 {
            let mut chance = Chance::new(seed);
            first.insert(chance.draw());
            heads += chance.draw() % 2;
        }
        assert_eq!(first.len(), 1000);
        assert!((400..600).contains(&heads), "{heads}");
    }
}
