//! The work of the engine that unwinds stacks in the kernel.

use whit_types::{OpenFailure, StackEnd};

use super::StackLedger;

impl StackLedger {
    /// Walks that ended so.
    pub fn ended(&self, end: StackEnd) -> u64 {
        self.ended[end as usize]
    }

    /// Walks that ended so, for each end that there was, in the order of their numbers.
    pub fn ends(&self) -> impl Iterator<Item = (StackEnd, u64)> {
        let ends = StackEnd::ALL.into_iter().map(|end| (end, self.ended(end)));
        ends.filter(|(_, walks)| *walks > 0)
    }

    /// Binaries that could not be opened, for each reason that there was, in the order of their numbers.
    pub fn failures(&self) -> impl Iterator<Item = (OpenFailure, u64)> {
        let failures = OpenFailure::ALL.into_iter().zip(self.not_opened);
        failures.filter(|(_, files)| *files > 0)
    }
}
