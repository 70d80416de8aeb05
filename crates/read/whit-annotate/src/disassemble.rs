//! Code of any instruction set that whit reads.

use crate::instruction::{Instruction, Syntax};
use crate::{arm64, x86};
use whit_types::{InstructionSet, Svma};

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
