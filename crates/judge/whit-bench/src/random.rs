//! Random numbers that are the same in each run.

/// Marsaglia's xorshift64.
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of a seed. The state must not be 0.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// A whole number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// A number of at least 0, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 32) as f64 / (1u64 << 32) as f64
    }

    /// The remainder of the next number.
    pub(crate) fn remainder(&mut self, divisor: u64) -> u64 {
        self.next() % divisor
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
