//! What the engine did that unwinds stacks in the kernel.

use whit_types::{OpenFailure, StackEnd};

/// Stacks that BPF programs unwound, and the tables that they did it by. All zero where another engine
/// recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackLedger {
    /// User stacks that were walked.
    pub walks: u64,
    /// User stacks that were known to be the thread's last one again, and were not walked.
    pub known_again: u64,
    /// Frames of all walks.
    pub frames: u64,
    /// Binaries whose unwind tables were loaded into the kernel.
    pub tables: u64,
    /// Of these, tables that the cache on disk had; the others were made.
    pub cached_tables: u64,
    /// Binaries that have no unwind information.
    pub without_table: u64,
    /// Tables that found no room in the kernel.
    pub refused_tables: u64,
    /// Executable mappings beyond the number that the kernel side holds of a process.
    pub unknown_mappings: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Distinct rules, table by table.
    pub rules: u64,
    /// Memory that rows and their index take in the kernel.
    pub table_bytes: u64,
    /// Time to make tables, or to read them from the cache, summed over threads.
    pub build_ns: u64,
    /// Walks by how they ended, by the number of the [`StackEnd`]. Their sum is `walks`.
    pub ended: [u64; StackEnd::ALL.len()],
    /// Binaries that could not be opened, by the number of the [`OpenFailure`].
    pub unopened: [u64; OpenFailure::ALL.len()],
}

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
        let failures = OpenFailure::ALL.into_iter().zip(self.unopened);
        failures.filter(|(_, files)| *files > 0)
    }
}
