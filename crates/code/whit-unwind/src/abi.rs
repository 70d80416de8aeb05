//! The facts of each architecture that unwinding needs. Numbers are DWARF register numbers.

/// Constants of one architecture.
pub(crate) trait Abi {
    /// Where the instruction pointer is kept in a register set.
    const IP: usize;
    /// Stack pointer.
    const SP: usize;
    /// Frame pointer.
    const FP: usize;
    /// Register that holds the return address on entry to a function, if calls do not push it.
    const LR: Option<usize>;
    /// Registers that a called function preserves, as a bit mask.
    const PRESERVED: u64;
    /// Where the first register lies in the frame of a signal, from its stack pointer, and how many follow each other by
    /// number; where call frame information says it, `None`.
    const SIGNAL_REGISTERS: Option<(u64, usize)>;
}

/// System V ABI; registers by their DWARF numbers.
pub(crate) struct X86_64;

impl Abi for X86_64 {
    const IP: usize = 16;
    const SP: usize = 7;
    const FP: usize = 6;
    const LR: Option<usize> = None;
    /// rbx, rbp, rsp, r12 to r15, and the instruction pointer that each step sets.
    const PRESERVED: u64 = 0x1_f0c8;
    const SIGNAL_REGISTERS: Option<(u64, usize)> = None;
}

/// arm64.
pub(crate) struct Aarch64;

impl Abi for Aarch64 {
    const IP: usize = 32;
    const SP: usize = 31;
    const FP: usize = 29;
    const LR: Option<usize> = Some(30);
    /// x19 to x29, sp and pc; not the link register, which the call itself overwrote.
    const PRESERVED: u64 = 0x1_bff8_0000;
    /// x0 to x30, sp and pc: behind `siginfo` (128 bytes), the fields of `ucontext` in front of `uc_mcontext` (176), and
    /// the fault's address.
    const SIGNAL_REGISTERS: Option<(u64, usize)> = Some((128 + 176 + 8, 33));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// System V ABI, figure 3.4; Procedure Call Standard for AArch64, section 6.1.
    #[test]
    fn functions_preserve_what_the_standards_say() {
        let registers = |mask: u64| (0..64).filter(|register| mask >> register & 1 == 1).collect();
        let (rbx, rbp, rsp, rip) = (3, 6, 7, 16);
        let preserved: Vec<usize> = registers(X86_64::PRESERVED);
        assert_eq!(preserved, [rbx, rbp, rsp, 12, 13, 14, 15, rip]);
        let (sp, pc) = (31, 32);
        let preserved: Vec<usize> = registers(Aarch64::PRESERVED);
        assert_eq!(preserved, (19..=29).chain([sp, pc]).collect::<Vec<_>>());
    }
}
