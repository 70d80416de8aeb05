//! The encoding of instructions.

use crate::Arch;

/// How the bytes of code are to be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstructionSet {
    /// x86 in 64-bit mode.
    X86_64,
    /// x86 in 32-bit mode.
    X86_32,
    /// arm64.
    Aarch64,
}

impl InstructionSet {
    /// Its name in documents for programs.
    pub const fn name(self) -> &'static str {
        match self {
            InstructionSet::X86_64 => "x86_64",
            InstructionSet::X86_32 => "x86_32",
            InstructionSet::Aarch64 => "aarch64",
        }
    }
}

impl From<Arch> for InstructionSet {
    fn from(arch: Arch) -> InstructionSet {
        match arch {
            Arch::X86_64 => InstructionSet::X86_64,
            Arch::Aarch64 => InstructionSet::Aarch64,
        }
    }
}
