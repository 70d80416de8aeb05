//! User-mode register values.

use whit_types::Arch;

/// Room for the DWARF register numbers of both architectures: arm64 counts to the PC at 32.
pub(crate) const REGISTER_COUNT: usize = 33;

/// DWARF register numbers of x86-64 in the order of `enum perf_event_x86_regs`
/// (`arch/x86/include/uapi/asm/perf_regs.h`); `None` for flags and segments.
const X86_64_FROM_PERF: [Option<u8>; 24] = [
    Some(0),  // AX
    Some(3),  // BX
    Some(2),  // CX
    Some(1),  // DX
    Some(4),  // SI
    Some(5),  // DI
    Some(6),  // BP
    Some(7),  // SP
    Some(16), // IP
    None,     // FLAGS
    None,     // CS
    None,     // SS
    None,     // DS
    None,     // ES
    None,     // FS
    None,     // GS
    Some(8),
    Some(9),
    Some(10),
    Some(11),
    Some(12),
    Some(13),
    Some(14),
    Some(15),
];

/// The user-mode registers of one sample; a recording may hold only some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRegs {
    arch: Arch,
    values: [u64; REGISTER_COUNT],
    known: u64,
}

impl UserRegs {
    /// No register known yet.
    pub fn new(arch: Arch) -> UserRegs {
        UserRegs { arch, values: [0; REGISTER_COUNT], known: 0 }
    }

    /// From a sample's `regs_user`: `mask` is the event's `sample_regs_user`, `values` holds one
    /// value per set bit, lowest bit first. Missing values leave their registers unknown.
    ///
    /// The caller has made sure that the sample's ABI is the 64-bit one.
    pub fn from_perf(arch: Arch, mask: u64, values: impl IntoIterator<Item = u64>) -> UserRegs {
        let mut regs = UserRegs::new(arch);
        let mut bits = mask;
        for value in values {
            if bits == 0 {
                break;
            }
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let register = match arch {
                Arch::X86_64 => X86_64_FROM_PERF.get(bit).copied().flatten().map(usize::from),
                // perf numbers arm64 registers as DWARF does: x0 to x30, sp, pc.
                Arch::Aarch64 => UserRegs::has(bit).then_some(bit),
            };
            if let Some(register) = register {
                regs.set(register, value);
            }
        }
        regs
    }

    /// The same with the instruction pointer (`rip`, `pc`) set.
    pub fn with_ip(mut self, value: u64) -> UserRegs {
        self.set(self.ip_register(), value);
        self
    }

    /// The same with the stack pointer set.
    pub fn with_sp(mut self, value: u64) -> UserRegs {
        self.set(self.sp_register(), value);
        self
    }

    /// The same with the frame pointer (`rbp`, `x29`) set.
    pub fn with_fp(mut self, value: u64) -> UserRegs {
        self.set(self.fp_register(), value);
        self
    }

    /// The same with the link register set; without meaning on x86-64.
    pub fn with_lr(mut self, value: u64) -> UserRegs {
        if self.arch == Arch::Aarch64 {
            self.set(30, value);
        }
        self
    }

    /// The same with the register of that DWARF number set; unknown numbers change nothing.
    pub fn with_dwarf_register(mut self, register: u16, value: u64) -> UserRegs {
        if UserRegs::has(usize::from(register)) {
            self.set(usize::from(register), value);
        }
        self
    }

    /// Architecture whose registers these are.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Instruction pointer.
    pub fn ip(&self) -> Option<u64> {
        self.get(self.ip_register())
    }

    /// Stack pointer.
    pub fn sp(&self) -> Option<u64> {
        self.get(self.sp_register())
    }

    /// Frame pointer.
    pub fn fp(&self) -> Option<u64> {
        self.get(self.fp_register())
    }

    /// Link register; never known on x86-64.
    pub fn lr(&self) -> Option<u64> {
        if self.arch == Arch::Aarch64 { self.get(30) } else { None }
    }

    fn ip_register(&self) -> usize {
        if self.arch == Arch::Aarch64 { 32 } else { 16 }
    }

    fn sp_register(&self) -> usize {
        if self.arch == Arch::Aarch64 { 31 } else { 7 }
    }

    fn fp_register(&self) -> usize {
        if self.arch == Arch::Aarch64 { 29 } else { 6 }
    }

    /// Whether there is room for the register of that DWARF number. Vector registers have higher ones.
    pub(crate) fn has(register: usize) -> bool {
        register < REGISTER_COUNT
    }

    /// Value of a register by its DWARF number.
    #[inline]
    pub(crate) fn get(&self, register: usize) -> Option<u64> {
        let value = *self.values.get(register)?;
        (self.known >> register & 1 != 0).then_some(value)
    }

    /// Sets a register by its DWARF number, which is below [`REGISTER_COUNT`].
    #[inline]
    pub(crate) fn set(&mut self, register: usize, value: u64) {
        self.values[register] = value;
        self.known |= 1 << register;
    }

    /// Takes over the registers that are not known here.
    pub(crate) fn take_unknown(&mut self, others: &UserRegs) {
        let missing = others.known & !self.known;
        for register in (0..REGISTER_COUNT).filter(|register| missing >> register & 1 != 0) {
            self.set(register, others.values[register]);
        }
    }

    /// Whether any register is known whose bit is set.
    pub(crate) fn knows_any(&self, mask: u64) -> bool {
        self.known & mask != 0
    }

    /// Forgets all registers but those whose bits are set.
    #[inline]
    pub(crate) fn keep(&mut self, mask: u64) {
        self.known &= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_order_becomes_dwarf_order() {
        // IP, SP, BP and R8 with the flags in between.
        let mask = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 16;
        let regs = UserRegs::from_perf(Arch::X86_64, mask, [0xb, 0x5, 0x1, 0xf, 0x8]);
        assert_eq!((regs.fp(), regs.sp(), regs.ip()), (Some(0xb), Some(0x5), Some(0x1)));
        assert_eq!(regs.get(8), Some(0x8));
        assert_eq!(regs.get(0), None);
        assert_eq!(regs.lr(), None);

        let regs = UserRegs::from_perf(Arch::Aarch64, 0xf << 29, [0x29, 0x30, 0x31, 0x32]);
        assert_eq!((regs.fp(), regs.lr()), (Some(0x29), Some(0x30)));
        assert_eq!((regs.sp(), regs.ip()), (Some(0x31), Some(0x32)));
    }

    #[test]
    fn missing_and_surplus_values_are_harmless() {
        let regs = UserRegs::from_perf(Arch::X86_64, 1 << 7 | 1 << 8, [5]);
        assert_eq!((regs.sp(), regs.ip()), (Some(5), None));
        let regs = UserRegs::from_perf(Arch::X86_64, u64::MAX, 0..100);
        assert_eq!(regs.get(15), Some(23));
        let regs = UserRegs::from_perf(Arch::Aarch64, u64::MAX, 0..100);
        assert_eq!(regs.ip(), Some(32));
    }

    #[test]
    fn registers_without_room_change_nothing() {
        let regs = UserRegs::new(Arch::Aarch64);
        assert_eq!(regs.with_dwarf_register(32, 5).ip(), Some(5));
        for register in [33, 64, u16::MAX] {
            assert_eq!(regs.with_dwarf_register(register, 5), regs);
        }
    }
}
