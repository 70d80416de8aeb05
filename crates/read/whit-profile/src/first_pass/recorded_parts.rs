//! The parts of CPU time that accounts of CPUs have.

use whit_perfdata::cpu_account::CpuAccount;

/// The parts that a recording has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecordedParts {
    pub(crate) interrupts: bool,
    pub(crate) stolen: bool,
}

impl RecordedParts {
    /// Notes an account.
    pub(crate) fn see(&mut self, account: &CpuAccount) {
        self.interrupts |= account.interrupts.is_some();
        self.stolen |= account.stolen_ns.is_some();
    }

    /// Takes over those of another stream.
    pub(crate) fn merge(&mut self, other: RecordedParts) {
        self.interrupts |= other.interrupts;
        self.stolen |= other.stolen;
    }
}
