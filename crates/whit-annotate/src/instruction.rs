//! One instruction of a function.

use crate::{arm64, x86};
use whit_types::{InstructionSet, Svma};

/// How instructions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syntax {
    /// As objdump and perf write those of x86: `mov %rsp,%rbp`.
    #[default]
    Att,
    /// As Intel's manuals do: `mov rbp,rsp`.
    Intel,
}

impl Syntax {
    /// Reads a word of objdump's option `-M`.
    pub fn parse(word: &str) -> Option<Syntax> {
        match word {
            "att" | "att-mnemonic" => Some(Syntax::Att),
            "intel" | "intel-mnemonic" => Some(Syntax::Intel),
            _ => None,
        }
    }
}

/// The place that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// It may go on there.
    Jump(Svma),
    /// It calls the code there.
    Call(Svma),
    /// It reads, writes or names the data there.
    Data(Svma),
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Where it begins.
    pub address: Svma,
    /// Bytes; zero for an address that the code has no bytes of.
    pub size_bytes: u8,
    /// As an assembler reads it; `(bad)` where the bytes are no instruction.
    pub text: String,
    /// The place that it names, where it names one.
    pub target: Option<Target>,
}

impl Instruction {
    /// The text for bytes that are no instruction, as objdump has it.
    pub(crate) const BAD: &str = "(bad)";

    /// The address behind it.
    pub fn end(&self) -> Svma {
        Svma(self.address.0.saturating_add(u64::from(self.size_bytes)))
    }
}

/// The instructions of a range of code, one behind the other: each byte is in one of them.
pub fn disassemble(
    bytes: &[u8],
    start: Svma,
    set: InstructionSet,
    syntax: Syntax,
) -> Vec<Instruction> {
    match set {
        InstructionSet::X86_64 => x86::disassemble(bytes, start, 64, syntax),
        InstructionSet::X86_32 => x86::disassemble(bytes, start, 32, syntax),
        InstructionSet::Aarch64 => arm64::disassemble(bytes, start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any bytes at any address are taken apart without a rest.
        #[test]
        fn each_byte_is_in_one_instruction(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            start in prop_oneof![0..1u64 << 40, Just(u64::MAX - 64)],
            set in prop::sample::select(vec![InstructionSet::X86_64, InstructionSet::X86_32, InstructionSet::Aarch64]),
            syntax in prop::sample::select(vec![Syntax::Att, Syntax::Intel]),
        ) {
            let instructions = disassemble(&bytes, Svma(start), set, syntax);
            let mut next = start;
            for instruction in &instructions {
                prop_assert_eq!(instruction.address.0, next);
                prop_assert!(instruction.size_bytes > 0 && !instruction.text.is_empty());
                next = next.wrapping_add(u64::from(instruction.size_bytes));
            }
            prop_assert_eq!(next, start.wrapping_add(bytes.len() as u64));
        }
    }
}
