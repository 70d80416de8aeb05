//! Compact unwind tables: what a program in the kernel can look up in a few steps.
//!
//! A table covers the code of one binary. Code is cut into *buckets* of [`BUCKET_BYTES`]; the index
//! says which rows begin in each. A row is one word: where it begins inside its bucket, and the
//! number of its rule; it holds up to the next row, even in a later bucket. Rules are interned: the
//! largest binaries have some thousands. So a look-up reads two words of the index, one row for
//! each step of a search among about ten, and one rule.
//!
//! Rules of x86-64 and of arm64 differ: each machine's walk knows those of its own code. Tables are made on any host.
//!
//! [`wire`] is how tables lie on disk; `docs/bpf-engine.md` has it byte by byte. The walk itself is
//! in C (`crates/record/whit-bpf/bpf/unwind.h`), and reads the same words.

mod builder;
mod rules;
pub mod wire;

use std::ops::Range;

use whit_types::{Arch, Svma};

use crate::module::ModuleUnwindInfo;
pub use rules::{Base, CompactRule, FramePointer, ReturnAddress, Unsupported};

/// Addresses of one bucket, a power of two.
pub const BUCKET_BYTES: u64 = 256;
/// Bits of a row that hold the number of its rule; the upper eight hold where the row begins.
pub const RULE_BITS: u32 = 24;
/// Most addresses that a table may span; the largest text known (browsers) has a fifth of it.
pub const SPAN_MAX_BYTES: u64 = 1 << 30;
/// Most rows. Binaries with a hundred megabytes of text have about four million.
pub const ROWS_MAX: usize = 1 << 25;
/// Most bytes of entries that are read, those that several functions share once for each: the largest
/// binaries have a fifth of it.
pub const WORK_MAX_BYTES: usize = 1 << 29;
/// Most rules.
pub const RULES_MAX: usize = 1 << 16;

/// Why there is no table for a binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NoTable {
    /// The architecture has none.
    Arch,
    /// The binary has no unwind information, or none for its code.
    NoUnwindInfo,
    /// More than [`ROWS_MAX`] rows, [`RULES_MAX`] rules, [`SPAN_MAX_BYTES`] or [`WORK_MAX_BYTES`].
    TooLarge,
}

impl std::fmt::Display for NoTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoTable::Arch => "only x86-64 and arm64 have unwind tables for the kernel",
            NoTable::NoUnwindInfo => "it has no unwind information",
            NoTable::TooLarge => "its unwind information is too large",
        })
    }
}

/// The table of one binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnwindTable {
    /// Stated address of the first bucket.
    start: u64,
    /// For each bucket the first row that begins in it or later; one more than there are buckets.
    index: Vec<u32>,
    rows: Vec<u32>,
    rules: Vec<CompactRule>,
}

impl UnwindTable {
    /// The table of a binary, as far as it lies in `code`, which are the stated addresses of its
    /// executable segments.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn build(
        arch: Arch,
        module: &ModuleUnwindInfo,
        code: &[Range<Svma>],
    ) -> Result<UnwindTable, NoTable> {
        builder::build(arch, module, code)
    }

    /// Stated addresses of the buckets.
    pub fn range(&self) -> Range<Svma> {
        let buckets = self.index.len() as u64 - 1;
        Svma(self.start)..Svma(self.start + buckets * BUCKET_BYTES)
    }

    /// First row of each bucket, and the number of rows.
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// Sorted by address, each packed into one word.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The rules that rows name.
    pub fn rules(&self) -> &[CompactRule] {
        &self.rules
    }

    /// Bytes that the kernel's copy takes.
    pub fn size_bytes(&self) -> usize {
        (self.index.len() + self.rows.len()) * 4 + self.rules.len() * CompactRule::SIZE_BYTES
    }

    /// The rule for an address; `None` outside the table. The kernel's look-up, in Rust.
    pub fn find(&self, svma: Svma) -> Option<CompactRule> {
        let offset = svma.0.checked_sub(self.start)?;
        let bucket = usize::try_from(offset / BUCKET_BYTES).ok()?;
        let (first, end) = (*self.index.get(bucket)?, *self.index.get(bucket + 1)?);
        let key = ((offset % BUCKET_BYTES) as u32) << RULE_BITS | ((1 << RULE_BITS) - 1);
        let rows = self.rows.get(first as usize..end as usize)?;
        let after = first as usize + rows.partition_point(|row| *row <= key);
        let row = self.rows.get(after.checked_sub(1)?)?;
        self.rules.get((row & ((1 << RULE_BITS) - 1)) as usize).copied()
    }
}

#[cfg(test)]
mod tests;
