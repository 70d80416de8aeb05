//! Instructions of arm64, by `yaxpeax-arm`.

use crate::instruction::{Instruction, Target};
use whit_types::{Svma, pad};
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand};

const SIZE_BYTES: usize = 4;
/// Operands begin in this column, as in code of x86.
const OPERAND_COLUMN: usize = 7;
const PAGE_BYTES: u64 = 4096;

pub(crate) fn disassemble(bytes: &[u8], start: Svma) -> Vec<Instruction> {
    let decoder = InstDecoder::default();
    let addresses = (0u64..).step_by(SIZE_BYTES).map(|at| Svma(start.0.wrapping_add(at)));
    let words = bytes.chunks(SIZE_BYTES).zip(addresses);
    words.map(|(word, address)| one(&decoder, word, address)).collect()
}

fn one(decoder: &InstDecoder, word: &[u8], address: Svma) -> Instruction {
    let size_bytes = word.len() as u8;
    let Ok(decoded) = decoder.decode(&mut U8Reader::new(word)) else {
        // An instruction that the decoder does not know, or data between functions.
        let text = match word.first_chunk() {
            Some(word) => format!(".inst  {:#010x}", u32::from_le_bytes(*word)),
            None => Instruction::BAD.to_owned(),
        };
        return Instruction { address, size_bytes, text, target: None };
    };
    let target = target(&decoded, address);
    Instruction { address, size_bytes, text: text(&decoded, target), target }
}

/// With the target's address in the place of its distance.
fn text(decoded: &Decoded, target: Option<Target>) -> String {
    let text = decoded.to_string();
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((&text, ""));
    let mut operands = operands.replace(", ", ",");
    if let Some(Target::Jump(to) | Target::Call(to) | Target::Data(to)) = target
        && let Some(at) = operands.find('$')
    {
        let rest = operands[at..].find(',').map_or(operands.len(), |comma| at + comma);
        operands.replace_range(at..rest, &format!("{to:#x}"));
    }
    let text = format!("{} {operands}", pad::left(mnemonic, OPERAND_COLUMN - 1));
    text.trim_end().to_owned()
}

fn target(decoded: &Decoded, address: Svma) -> Option<Target> {
    let distance = decoded.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(distance) => Some(*distance),
        _ => None,
    })?;
    let from =
        if decoded.opcode == Opcode::ADRP { address.0 & !(PAGE_BYTES - 1) } else { address.0 };
    let to = Svma(from.wrapping_add_signed(distance));
    Some(match decoded.opcode {
        Opcode::BL => Target::Call(to),
        Opcode::B | Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => {
            Target::Jump(to)
        }
        _ => Target::Data(to),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[u32]) -> Vec<Instruction> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        disassemble(&bytes, Svma(0x1004))
    }

    #[test]
    fn instructions_have_their_targets() {
        let all = of(&[
            0xa9bf_7bfd, // stp x29, x30, [sp, #-16]!
            0x9400_0003, // bl +12
            0x54ff_ffc1, // b.ne -8
            0xb000_0000, // adrp x0, one page on
            0x3400_0040, // cbz w0, +8
            0xd65f_03c0, // ret
            0xffff_ffff, // nothing
        ]);
        let texts: Vec<&str> = all.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "stp    x29,x30,[sp,#-0x10]!",
                "bl     0x1014",
                "b.ne   0x1004",
                "adrp   x0,0x2000",
                "cbz    w0,0x101c",
                "ret",
                ".inst  0xffffffff",
            ]
        );
        let targets: Vec<_> = all.iter().map(|one| one.target).collect();
        assert_eq!(targets[1], Some(Target::Call(Svma(0x1014))));
        assert_eq!(targets[2], Some(Target::Jump(Svma(0x1004))));
        assert_eq!(targets[3], Some(Target::Data(Svma(0x2000))));
        assert_eq!((targets[0], targets[5]), (None, None));
    }

    #[test]
    fn a_cut_word_is_no_instruction() {
        let all = disassemble(&[0xc0, 0x03], Svma(0));
        assert_eq!((all[0].size_bytes, &*all[0].text), (2, "(bad)"));
    }
}
