//! Dumped registers. Names are those of `tools/perf/util/perf_regs.c`.

use super::text::{decimal, hex, right};
use whit_perfdata::sample::Registers;
use whit_types::Arch;

/// `PERF_REG_X86_*`, up to the vector registers.
const X86_64: [&str; 24] = [
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS",
    "GS", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
];
/// `PERF_REG_X86_XMM0`: each vector register takes two numbers.
const X86_64_FIRST_XMM: u32 = 32;
const X86_64_XMM: [&str; 16] = [
    "XMM0", "XMM1", "XMM2", "XMM3", "XMM4", "XMM5", "XMM6", "XMM7", "XMM8", "XMM9", "XMM10",
    "XMM11", "XMM12", "XMM13", "XMM14", "XMM15",
];
/// `PERF_REG_ARM64_*`.
const AARCH64: [&str; 33] = [
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
    "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
    "x28", "x29", "lr", "sp", "pc",
];
/// `PERF_REG_ARM64_VG`: the length of vectors.
const AARCH64_VG: u32 = 46;

fn name(arch: Option<Arch>, register: u32) -> &'static str {
    let index = register as usize;
    let known = match arch {
        Some(Arch::X86_64) if register >= X86_64_FIRST_XMM => {
            X86_64_XMM.get((index - X86_64_FIRST_XMM as usize) / 2)
        }
        Some(Arch::X86_64) => X86_64.get(index),
        Some(Arch::Aarch64) if register == AARCH64_VG => Some(&"vg"),
        Some(Arch::Aarch64) => AARCH64.get(index),
        None => None,
    };
    known.copied().unwrap_or("unknown")
}

/// Appends ` ABI:2    AX:0x0 `…; nothing where none were dumped.
pub(super) fn append_registers(
    out: &mut Vec<u8>,
    registers: Option<Registers<'_>>,
    arch: Option<Arch>,
) {
    let Some(registers) = registers else { return };
    out.extend_from_slice(b" ABI:");
    decimal(out, registers.abi, 0);
    out.push(b' ');
    let numbers = (0..u64::BITS).filter(|bit| registers.mask >> bit & 1 != 0);
    for (register, value) in numbers.zip(registers.values()) {
        right(out, name(arch, register), 5);
        out.extend_from_slice(b":0x");
        hex(out, value, 0);
        out.push(b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_names_of_their_machine() {
        let x86 = |register| name(Some(Arch::X86_64), register);
        assert_eq!([0, 8, 23, 32, 33, 63].map(x86), ["AX", "IP", "R15", "XMM0", "XMM0", "XMM15"]);
        assert_eq!([24, 31].map(x86), ["unknown"; 2]);
        let arm = |register| name(Some(Arch::Aarch64), register);
        assert_eq!([0, 29, 30, 31, 32, 46].map(arm), ["x0", "x29", "lr", "sp", "pc", "vg"]);
        assert_eq!(arm(33), "unknown");
    }
}
