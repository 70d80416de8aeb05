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

    /// True for the number of a register that holds an address-sized value.
    fn has(register: usize) -> bool {
        register <= Self::IP
    }
}

/// System V ABI; registers by their DWARF numbers.
pub(crate) struct X86_64;

impl Abi for X86_64 {
    const IP: usize = 16;
    const SP: usize = 7;
    const FP: usize = 6;
    const LR: Option<usize> = None;
    /// rbx, rbp, rsp, r12 to r15, and the instruction pointer that each step sets.
    const PRESERVED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 0xf << 12 | 1 << 16;
}

/// arm64.
pub(crate) struct Aarch64;

impl Abi for Aarch64 {
    const IP: usize = 32;
    const SP: usize = 31;
    const FP: usize = 29;
    const LR: Option<usize> = Some(30);
    /// x19 to x29, sp and pc; not the link register, which the call itself overwrote.
    const PRESERVED: u64 = 0x7ff << 19 | 1 << 31 | 1 << 32;
}
