//! Instructions of x86, by `iced-x86`.

use crate::instruction::{Instruction, Syntax, Target};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, FormatterOptions, GasFormatter,
    IntelFormatter, OpKind,
};
use whit_types::Svma;

/// Operands begin in this column, as objdump has it.
const OPERAND_COLUMN: u32 = 7;

pub(crate) fn disassemble(
    bytes: &[u8],
    start: Svma,
    bits: u32,
    syntax: Syntax,
) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(bits, bytes, start.0, DecoderOptions::NONE);
    let mut formatter = formatter(syntax);
    let mut decoded = iced_x86::Instruction::default();
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let (at, address) = (decoder.position(), Svma(decoder.ip()));
        decoder.decode_out(&mut decoded);
        if decoded.is_invalid() {
            // The next byte may begin an instruction.
            let text = Instruction::BAD.to_owned();
            instructions.push(Instruction { address, size_bytes: 1, text, target: None });
            if decoder.set_position(at + 1).is_err() {
                break;
            }
            decoder.set_ip(address.0.wrapping_add(1));
            continue;
        }
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        // Mnemonics without operands are padded, too.
        text.truncate(text.trim_end().len());
        let size_bytes = decoded.len() as u8;
        instructions.push(Instruction { address, size_bytes, text, target: target(&decoded) });
    }
    instructions
}

fn formatter(syntax: Syntax) -> Box<dyn Formatter> {
    let mut formatter: Box<dyn Formatter> = match syntax {
        Syntax::Att => Box::new(GasFormatter::new()),
        Syntax::Intel => Box::new(IntelFormatter::new()),
    };
    set_options(formatter.options_mut());
    formatter
}

/// As objdump writes numbers.
fn set_options(options: &mut FormatterOptions) {
    options.set_first_operand_char_index(OPERAND_COLUMN);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    options.set_show_branch_size(false);
}

fn target(instruction: &iced_x86::Instruction) -> Option<Target> {
    use FlowControl as F;
    let is_near = (0..instruction.op_count()).any(|operand| {
        matches!(
            instruction.op_kind(operand),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        )
    });
    if is_near {
        let address = Svma(instruction.near_branch_target());
        return match instruction.flow_control() {
            F::Call => Some(Target::Call(address)),
            _ => Some(Target::Jump(address)),
        };
    }
    instruction
        .is_ip_rel_memory_operand()
        .then(|| Target::Data(Svma(instruction.ip_rel_memory_address())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prologue, a load by the instruction pointer, a loop, a call and a byte that is no instruction.
    const CODE: [u8; 25] = [
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x83, 0xe8, 0x05, 0x75, 0xfb,
        0xe8, 0xe7, 0x0f, 0, 0, 0xc3, 0x06, 0xf3, 0x90,
    ];

    fn texts(syntax: Syntax) -> Vec<String> {
        let all = disassemble(&CODE, Svma(0x1000), 64, syntax);
        all.into_iter().map(|one| format!("{:x} {}", one.address, one.text)).collect()
    }

    #[test]
    fn instructions_are_written_as_objdump_does() {
        assert_eq!(
            texts(Syntax::Att),
            [
                "1000 push   %rbp",
                "1001 mov    %rsp,%rbp",
                "1004 mov    0x10(%rip),%rax",
                "100b sub    $0x5,%eax",
                "100e jne    0x100b",
                "1010 call   0x1ffc",
                "1015 ret",
                "1016 (bad)",
                "1017 pause",
            ]
        );
        assert_eq!(
            texts(Syntax::Intel)[1..3],
            ["1001 mov    rbp,rsp", "1004 mov    rax,[rip+0x10]"]
        );
    }

    #[test]
    fn targets_are_addresses() {
        let all = disassemble(&CODE, Svma(0x1000), 64, Syntax::Att);
        let targets: Vec<_> = all.iter().filter_map(|one| one.target).collect();
        let expected =
            [Target::Data(Svma(0x101b)), Target::Jump(Svma(0x100b)), Target::Call(Svma(0x1ffc))];
        assert_eq!(targets, expected);
    }

    #[test]
    fn code_of_32_bits_is_read_as_such() {
        let all = disassemble(&[0x40, 0xc3], Svma(0x1000), 32, Syntax::Att);
        assert_eq!(all[0].text, "inc    %eax");
    }
}
