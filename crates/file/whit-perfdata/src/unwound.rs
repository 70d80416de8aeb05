//! How the unwinding went of stacks that a recording has as call chains alone (`WHIT_UNWOUND`).

use crate::bytes::Cursor;
use crate::feature::{Feature, Features};

/// Reasons for which unwinding ends that a reader takes; each has a number, and more are not read.
const MAX_REASONS: u64 = 1 << 10;

/// Counts of samples whose dumps were unwound when the recording was written again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwound {
    /// Samples that were left out, since they were shorter than their fields say.
    pub unreadable_samples: u64,
    /// Samples whose stack could not be unwound: of a 32-bit process, or of another machine.
    pub foreign_stacks: u64,
    /// Chains that branch records continue.
    pub continued_chains: u64,
    /// Chains by the number of the reason for which they end.
    pub ended: Vec<u64>,
}

impl Features {
    /// WHIT_UNWOUND.
    pub fn unwound(&self) -> Option<Unwound> {
        let mut c = Cursor::new(self.get(Feature::WHIT_UNWOUND)?);
        let [unreadable_samples, foreign_stacks, continued_chains] = [c.u64()?, c.u64()?, c.u64()?];
        let count = c.u64()?.min(MAX_REASONS);
        let ended = (0..count).map(|_| c.u64()).collect::<Option<_>>()?;
        Some(Unwound { unreadable_samples, foreign_stacks, continued_chains, ended })
    }

    /// Sets WHIT_UNWOUND.
    pub fn set_unwound(&mut self, unwound: &Unwound) {
        let Unwound { unreadable_samples, foreign_stacks, continued_chains, ended } = unwound;
        let head = [*unreadable_samples, *foreign_stacks, *continued_chains, ended.len() as u64];
        let words = head.iter().chain(ended);
        self.set(Feature::WHIT_UNWOUND, words.flat_map(|word| word.to_le_bytes()).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_are_read() {
        let mut features = Features::default();
        assert_eq!(features.unwound(), None);
        let unwound = Unwound {
            unreadable_samples: 1,
            foreign_stacks: 2,
            continued_chains: 3,
            ended: vec![4, 0, 5],
        };
        features.set_unwound(&unwound);
        assert_eq!(features.unwound(), Some(unwound));
        let bytes = features.get(Feature::WHIT_UNWOUND).unwrap().to_vec();
        for len in 0..bytes.len() {
            features.set(Feature::WHIT_UNWOUND, bytes[..len].to_vec());
            assert_eq!(features.unwound(), None, "{len}");
        }
        features.set(Feature::WHIT_UNWOUND, vec![0xff; 64]);
        assert_eq!(features.unwound(), None, "a count that nothing stands behind");
    }
}
