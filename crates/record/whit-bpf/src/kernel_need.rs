//! A feature of the kernel, with the first Linux that has it.

use std::fmt;

/// Something that a kernel may lack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelNeed {
    /// As messages name it.
    pub what: &'static str,
    /// The first Linux that has it.
    pub since: &'static str,
}

impl fmt::Display for KernelNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (since Linux {})", self.what, self.since)
    }
}
