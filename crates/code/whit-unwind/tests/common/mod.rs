//! A simulated program: functions with made-up frames, their call frame information as a compiler
//! would write it, and stacks as they look while the functions call each other.
// Each test program uses its own part of this.
#![allow(dead_code)]

use gimli::write::{
    Address, CallFrameInstruction as Cfi, CommonInformationEntry, DebugFrame, EhFrame, EndianVec,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{DW_EH_PE_absptr, Encoding, Format, LittleEndian, Register};
use whit_types::{Arch, Avma, Svma};
use whit_unwind::{AddressSpace, Bias, ModuleSections, ModuleUnwindInfo, Section, UserRegs};

/// Where the simulated module is mapped.
pub(crate) const BASE: u64 = 0x5555_0000_0000;
/// Distance between functions.
pub(crate) const FUNCTION_SIZE: u64 = 0x100;
/// Offset of the (only) return address in each function.
pub(crate) const CALL_OFFSET: u64 = 0x40;
/// Stated address of the first function.
pub(crate) const TEXT: u64 = 0x1000;
/// Stated address of `.eh_frame`.
pub(crate) const EH_FRAME: u64 = 0x80_0000;

/// How a function uses its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// CFA from the stack pointer; frame pointer untouched.
    SpOnly,
    /// CFA from the stack pointer; frame pointer saved and used for something else.
    SpAndSavedFp,
    /// Ordinary frame pointer; the frame may have any size.
    FramePointer,
    /// CFA by an expression that reads the saved CFA from memory, as GCC's realigned frames do.
    Realigned,
}

/// One function of the simulated program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    pub(crate) shape: Shape,
    /// Size of the frame in units of 16 bytes, at least two.
    pub(crate) frame_by_16: u64,
}

impl Function {
    fn frame_size(&self) -> u64 {
        self.frame_by_16 * 16
    }
}

pub(crate) fn fp(arch: Arch) -> Register {
    Register(if arch == Arch::X86_64 { 6 } else { 29 })
}

pub(crate) fn sp(arch: Arch) -> Register {
    Register(if arch == Arch::X86_64 { 7 } else { 31 })
}

pub(crate) fn ra(arch: Arch) -> Register {
    Register(if arch == Arch::X86_64 { 16 } else { 30 })
}

/// The call frame information of the program. Function 0 is the root, whose return address is
/// undefined.
pub(crate) fn frame_table(arch: Arch, functions: &[Function]) -> FrameTable {
    let encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 1 };
    let mut cie = CommonInformationEntry::new(encoding, 1, -8, ra(arch));
    cie.fde_address_encoding = DW_EH_PE_absptr;
    if arch == Arch::X86_64 {
        cie.add_instruction(Cfi::Cfa(sp(arch), 8));
        cie.add_instruction(Cfi::Offset(ra(arch), -8));
    } else {
        cie.add_instruction(Cfi::Cfa(sp(arch), 0));
    }
    let mut table = FrameTable::default();
    let cie = table.add_cie(cie);
    for (index, function) in functions.iter().enumerate() {
        let start = TEXT + index as u64 * FUNCTION_SIZE;
        let mut fde = FrameDescriptionEntry::new(Address::Constant(start), FUNCTION_SIZE as u32);
        if index == 0 {
            fde.add_instruction(0, Cfi::Undefined(ra(arch)));
        } else {
            body(arch, function).into_iter().for_each(|cfi| fde.add_instruction(0x10, cfi));
        }
        table.add_fde(cie, fde);
    }
    table
}

fn body(arch: Arch, function: &Function) -> Vec<Cfi> {
    let size = function.frame_size() as i32;
    let mut cfi = match function.shape {
        Shape::SpOnly => vec![Cfi::Cfa(sp(arch), size)],
        Shape::SpAndSavedFp => vec![Cfi::Cfa(sp(arch), size), Cfi::Offset(fp(arch), -16)],
        Shape::FramePointer => vec![Cfi::Cfa(fp(arch), 16), Cfi::Offset(fp(arch), -16)],
        Shape::Realigned => {
            // The frame pointer points to the caller's; the word below it holds the CFA.
            let mut cfa = gimli::write::Expression::new();
            cfa.op_breg(fp(arch), -8);
            cfa.op_deref();
            let mut saved_fp = gimli::write::Expression::new();
            saved_fp.op_breg(fp(arch), 0);
            // Registers that nobody needs for unwinding, some of vectors.
            let others = [12, 32, 33, 64, 200].map(|number| Cfi::Offset(Register(number), -24));
            let undefined = [33, 70].map(|number| Cfi::Undefined(Register(number)));
            let mut cfi = vec![Cfi::CfaExpression(cfa), Cfi::Expression(fp(arch), saved_fp)];
            cfi.extend(others.into_iter().chain(undefined));
            cfi
        }
    };
    cfi.push(Cfi::Offset(ra(arch), -8));
    cfi
}

/// `.eh_frame` of the program, at [`EH_FRAME`].
pub(crate) fn eh_frame(arch: Arch, functions: &[Function]) -> Vec<u8> {
    let mut out = EhFrame(EndianVec::new(LittleEndian));
    frame_table(arch, functions).write_eh_frame(&mut out).unwrap();
    out.0.into_vec()
}

/// `.debug_frame` of the program.
pub(crate) fn debug_frame(arch: Arch, functions: &[Function]) -> Vec<u8> {
    let mut out = DebugFrame(EndianVec::new(LittleEndian));
    frame_table(arch, functions).write_debug_frame(&mut out).unwrap();
    out.0.into_vec()
}

/// The program as a module.
pub(crate) fn module(arch: Arch, functions: &[Function], in_debug_frame: bool) -> ModuleUnwindInfo {
    let mut sections = ModuleSections::none(arch);
    sections.text = Some(Svma(TEXT));
    if in_debug_frame {
        sections.debug_frame = Some(debug_frame(arch, functions).into());
    } else {
        sections.eh_frame =
            Some(Section { start: Svma(EH_FRAME), bytes: eh_frame(arch, functions).into() });
    }
    ModuleUnwindInfo::new(sections)
}

/// `module` mapped at [`BASE`].
pub(crate) fn space(module: ModuleUnwindInfo, functions: usize) -> AddressSpace {
    let mut space = AddressSpace::new();
    let end = BASE + TEXT + functions as u64 * FUNCTION_SIZE;
    space.map(Avma(BASE)..Avma(end), Bias(BASE), module);
    space
}

/// Address that a call in function `index` returns to.
pub(crate) fn return_address(index: usize) -> u64 {
    BASE + TEXT + index as u64 * FUNCTION_SIZE + CALL_OFFSET
}

/// A thread that was stopped in the middle of a chain of calls.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) regs: UserRegs,
    pub(crate) sp: u64,
    pub(crate) bytes: Vec<u8>,
    /// Innermost first.
    pub(crate) expected: Vec<u64>,
}

/// Runs `chain` (outermost first; function 0 is put outside it) until the innermost function's body.
pub(crate) fn stop_in(arch: Arch, functions: &[Function], chain: &[usize]) -> Stopped {
    let top = 0x7fff_ffff_f000u64;
    let mut memory = std::collections::BTreeMap::new();
    // Above the stack: the oracle takes a frame pointer that does not grow for the end.
    let (mut sp, mut fp) = (top - 64, top + 64);
    let mut ip = return_address(0);
    let mut expected = vec![ip];
    for (depth, &index) in chain.iter().enumerate() {
        let function = &functions[index];
        let cfa = sp;
        memory.insert(cfa - 8, ip);
        match function.shape {
            Shape::SpOnly => sp = cfa - function.frame_size(),
            Shape::SpAndSavedFp => {
                memory.insert(cfa - 16, fp);
                fp = 0xdead_0000 + depth as u64;
                sp = cfa - function.frame_size();
            }
            Shape::FramePointer => {
                memory.insert(cfa - 16, fp);
                fp = cfa - 16;
                sp = cfa - function.frame_size() - 16 * (depth as u64 % 5);
            }
            Shape::Realigned => {
                let aligned = (cfa - 32) & !63;
                memory.insert(aligned, fp);
                memory.insert(aligned - 8, cfa);
                fp = aligned;
                sp = aligned - function.frame_size();
            }
        }
        ip = return_address(index);
        expected.push(ip);
    }
    let mut bytes = vec![0xa5; (top - sp) as usize];
    for (address, value) in memory {
        let at = (address - sp) as usize;
        bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
    }
    expected.reverse();
    let regs = UserRegs::new(arch).with_ip(ip).with_sp(sp).with_fp(fp);
    Stopped { regs, sp, bytes, expected }
}

/// The thread gets a signal at the first instruction of a leaf, whose caller is where it was stopped. Puts the kernel's
/// frame below the stack; gives its address. Bytes of the dump begin there.
pub(crate) fn signal_of_arm64(stopped: &mut Stopped, interrupted: u64) -> u64 {
    let registers_at = 128 + 176 + 8;
    let mut frame = vec![0x5a; registers_at + 34 * 8];
    let lr = stopped.regs.ip().unwrap() | 0x00ab << 48;
    let fp = stopped.regs.fp().unwrap();
    for (register, value) in [(29, fp), (30, lr), (31, stopped.sp), (32, interrupted)] {
        let at = registers_at + register * 8;
        frame[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let address = stopped.sp - frame.len() as u64;
    stopped.bytes = [&frame[..], &stopped.bytes].concat();
    address
}
