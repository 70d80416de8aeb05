//! Call frame information, registers and stacks of any bytes: every walk ends, within the bound.
//!
//! An input begins with options (1 byte: bit 0 arm64, bit 1 `.debug_frame`, bit 2 with a search
//! table), the length of the section (2) and the length of the search table (2). Both follow, then
//! instruction pointer, stack pointer, frame pointer and link register (8 each), then the stack.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_types::{Arch, Avma, Svma};
use whit_unwind::{
    AddressSpace, Bias, Bytes, ModuleSections, ModuleUnwindInfo, Section, StackDump, Unwinder,
    UserRegs,
};

/// Where the sections say that they lie.
const SECTION: Svma = Svma(0x600);
const TABLE: Svma = Svma(0x8000);
const MAX_FRAMES: usize = 200;

fn word(data: &mut &[u8]) -> Option<u64> {
    let (head, tail) = data.split_first_chunk::<8>()?;
    *data = tail;
    Some(u64::from_le_bytes(*head))
}

fn piece<'a>(data: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, tail) = data.split_at_checked(len)?;
    *data = tail;
    Some(head)
}

fn run(mut data: &[u8]) -> Option<()> {
    let head = piece(&mut data, 5)?;
    let arch = if head[0] & 1 != 0 { Arch::Aarch64 } else { Arch::X86_64 };
    let section = piece(&mut data, usize::from(u16::from_le_bytes([head[1], head[2]])))?;
    let table = piece(&mut data, usize::from(u16::from_le_bytes([head[3], head[4]])))?;
    let section = Bytes::from(section.to_vec());
    let mut sections = ModuleSections::none(arch);
    sections.text = Some(Svma(0x200));
    if head[0] & 2 != 0 {
        sections.debug_frame = Some(section);
    } else {
        sections.eh_frame = Some(Section { start: SECTION, bytes: section });
        sections.eh_frame_hdr = (head[0] & 4 != 0)
            .then(|| Section { start: TABLE, bytes: Bytes::from(table.to_vec()) });
    }
    let (ip, sp, fp, lr) = (word(&mut data)?, word(&mut data)?, word(&mut data)?, word(&mut data)?);
    let mut space = AddressSpace::new();
    space.map(Avma(0)..Avma(0x1_0000), Bias(0), ModuleUnwindInfo::new(sections));
    space.map(Avma(0x10_0000)..Avma(0x11_0000), Bias(0), ModuleUnwindInfo::none(arch));
    let regs = UserRegs::new(arch).with_ip(ip).with_sp(sp).with_fp(fp).with_lr(lr);
    let stack = StackDump { sp: Avma(sp), bytes: data, rest: None };
    let mut unwinder = Unwinder::new();
    let mut frames = Vec::new();
    let first = unwinder.unwind(&space, &regs, stack, MAX_FRAMES, &mut frames);
    assert!(!frames.is_empty() && frames.len() <= MAX_FRAMES);
    // The cache returns its input.
    let mut again = Vec::new();
    let second = unwinder.unwind(&space, &regs, stack, MAX_FRAMES, &mut again);
    assert_eq!((first, frames), (second, again));
    Some(())
}

fuzz_target!(|data| {
    let _ = run(data);
});
