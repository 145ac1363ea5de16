/// A running hash (FNV-1a) of everything that happened.
#[derive(Debug)]
pub(crate) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.0
    }
}
