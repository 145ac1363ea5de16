/// A running hash of everything that happened.
#[derive(Debug, Default)]
pub(crate) struct Trace(u64);

impl Trace {
    pub(crate) const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(crate) fn add_text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.add(u64::from(byte));
        }
        self.add(u64::MAX);
    }

    pub(crate) const fn hash(&self) -> u64 {
        crate::chance::mix(self.0)
    }
}
