//! Names of the registers that samples can carry, by architecture.
//!
//! Bit numbers are the kernel's: `arch/*/include/uapi/asm/perf_regs.h`.

use whit_types::Arch;

/// Bits by name; the first name of a bit is the one that is shown.
type Names = &'static [(&'static str, u32)];

#[rustfmt::skip]
const X86_64: Names = &[
    ("AX", 0), ("BX", 1), ("CX", 2), ("DX", 3), ("SI", 4), ("DI", 5), ("BP", 6), ("SP", 7),
    ("IP", 8), ("FLAGS", 9), ("CS", 10), ("SS", 11),
    ("R8", 16), ("R9", 17), ("R10", 18), ("R11", 19), ("R12", 20), ("R13", 21), ("R14", 22),
    ("R15", 23),
    ("RAX", 0), ("RBX", 1), ("RCX", 2), ("RDX", 3), ("RSI", 4), ("RDI", 5), ("RBP", 6),
    ("RSP", 7), ("RIP", 8),
];

#[rustfmt::skip]
const AARCH64: Names = &[
    ("X0", 0), ("X1", 1), ("X2", 2), ("X3", 3), ("X4", 4), ("X5", 5), ("X6", 6), ("X7", 7),
    ("X8", 8), ("X9", 9), ("X10", 10), ("X11", 11), ("X12", 12), ("X13", 13), ("X14", 14),
    ("X15", 15), ("X16", 16), ("X17", 17), ("X18", 18), ("X19", 19), ("X20", 20), ("X21", 21),
    ("X22", 22), ("X23", 23), ("X24", 24), ("X25", 25), ("X26", 26), ("X27", 27), ("X28", 28),
    ("X29", 29), ("LR", 30), ("SP", 31), ("PC", 32),
    ("FP", 29), ("X30", 30), ("IP", 32), ("BP", 29),
];

/// A register list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no register that samples can carry here; there are {known}")]
pub struct RegisterError {
    /// The word that is no register.
    pub name: String,
    /// The registers of this architecture.
    pub known: String,
}

fn names(arch: Arch) -> Names {
    match arch {
        Arch::X86_64 => X86_64,
        Arch::Aarch64 => AARCH64,
    }
}

/// The names of an architecture's registers, as `--user-regs=?` lists them.
pub fn list(arch: Arch) -> Vec<&'static str> {
    let names = names(arch);
    let first = |i: usize| names[..i].iter().all(|(_, bit)| *bit != names[i].1);
    (0..names.len()).filter(|&i| first(i)).map(|i| names[i].0).collect()
}

/// Every general register: what unwinding wants. The segment registers of x86 are left out; the
/// kernel refuses them in user mode.
pub fn all(arch: Arch) -> u64 {
    names(arch).iter().fold(0, |mask, (_, bit)| mask | 1 << bit)
}

/// The registers without which nothing can be unwound: the instruction, stack and frame
/// pointers, and the link register where there is one.
pub fn minimal(arch: Arch) -> u64 {
    match arch {
        Arch::X86_64 => 1 << 6 | 1 << 7 | 1 << 8,
        Arch::Aarch64 => 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32,
    }
}

/// Reads a comma-separated list in any case.
pub fn parse(arch: Arch, text: &str) -> Result<u64, RegisterError> {
    let bit = |name: &str| {
        let known = names(arch).iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known
            .map(|(_, bit)| 1u64 << bit)
            .ok_or_else(|| RegisterError { name: name.to_owned(), known: list(arch).join(" ") })
    };
    text.split(',').map(str::trim).filter(|n| !n.is_empty()).try_fold(0, |m, n| Ok(m | bit(n)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_perf() {
        assert_eq!(all(Arch::X86_64), 0xff_0fff);
        assert_eq!(all(Arch::Aarch64), (1 << 33) - 1);
        assert_eq!(parse(Arch::X86_64, "IP,SP,BP"), Ok(0x1c0));
        assert_eq!(parse(Arch::X86_64, "ip, r15"), Ok(1 << 8 | 1 << 23));
        assert_eq!(parse(Arch::Aarch64, "fp,lr,sp,pc").unwrap(), minimal(Arch::Aarch64));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        let error = parse(Arch::X86_64, "IP,X29").unwrap_err();
        assert!(error.to_string().starts_with("'X29' is no register"));
        assert_eq!(list(Arch::X86_64).len(), 20);
        assert_eq!(list(Arch::Aarch64).len(), 33);
    }
}
