//! The same frames as another unwinder (framehop), on simulated stacks and on the call frame
//! information of this very test program. Where that one is known to be wrong (expressions that
//! read memory) there is nothing to compare.

mod common;

use common::{Function, Shape, module, space, stop_in};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use gimli::UnwindSection as _;
use object::{Object, ObjectSection};
use proptest::prelude::*;
use whit_types::{Arch, Avma, Svma};
use whit_unwind::{
    AddressSpace, Bias, ModuleSections, ModuleUnwindInfo, Section, StackDump, Unwinder, UserRegs,
};

fn framehop_chain(
    arch: Arch,
    eh_frame: Vec<u8>,
    functions: usize,
    s: &common::Stopped,
) -> Vec<u64> {
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: Some(common::TEXT..common::EH_FRAME),
        eh_frame_svma: Some(common::EH_FRAME..common::EH_FRAME + eh_frame.len() as u64),
        eh_frame: Some(eh_frame),
        ..Default::default()
    };
    let end = common::BASE + common::TEXT + functions as u64 * common::FUNCTION_SIZE;
    let module = Module::new("m".into(), common::BASE..end, common::BASE, info);
    let mut read = |address: u64| {
        let at = usize::try_from(address.checked_sub(s.sp).ok_or(())?).map_err(|_| ())?;
        let word = s.bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
        Ok(u64::from_le_bytes(*word))
    };
    let (ip, sp, fp) = (s.regs.ip().unwrap(), s.sp, s.regs.fp().unwrap());
    let mut chain = Vec::new();
    match arch {
        Arch::X86_64 => {
            let mut unwinder = UnwinderX86_64::new();
            unwinder.add_module(module);
            let mut cache = CacheX86_64::<_>::new();
            let regs = UnwindRegsX86_64::new(ip, sp, fp);
            let mut frames = unwinder.iter_frames(ip, regs, &mut cache, &mut read);
            while let Ok(Some(frame)) = frames.next() {
                chain.push(frame.address());
            }
        }
        Arch::Aarch64 => {
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(module);
            let mut cache = CacheAarch64::<_>::new();
            let regs = UnwindRegsAarch64::new(0, sp, fp);
            let mut frames = unwinder.iter_frames(ip, regs, &mut cache, &mut read);
            while let Ok(Some(frame)) = frames.next() {
                chain.push(frame.address());
            }
        }
    }
    chain
}

proptest! {
    #[test]
    fn simulated_chains_agree(
        arch in prop_oneof![Just(Arch::X86_64), Just(Arch::Aarch64)],
        shapes in prop::collection::vec((0usize..3, 2u64..500), 2..12),
        calls in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        // The oracle does not let arm64 code use the frame pointer for anything else.
        let shape_of = |number| match (number, arch) {
            (0, Arch::X86_64) => Shape::SpAndSavedFp,
            (1, _) => Shape::FramePointer,
            _ => Shape::SpOnly,
        };
        let functions: Vec<Function> = shapes
            .into_iter()
            .map(|(shape, frame_by_16)| Function { shape: shape_of(shape), frame_by_16 })
            .collect();
        let chain: Vec<usize> =
            calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
        let mut stopped = stop_in(arch, &functions, &chain);
        stopped.bytes.truncate(cut.index(stopped.bytes.len() * 2).min(stopped.bytes.len()));
        let space = space(module(arch, &functions, false), functions.len());
        let mut frames = Vec::new();
        let stack = StackDump { sp: Avma(stopped.sp), bytes: &stopped.bytes, rest: None };
        Unwinder::new().unwind(&space, &stopped.regs, stack, 1000, &mut frames);
        let ours: Vec<u64> = frames.iter().map(|frame| frame.address.0).collect();
        let eh_frame = common::eh_frame(arch, &functions);
        let theirs = framehop_chain(arch, eh_frame, functions.len(), &stopped);
        prop_assert_eq!(ours, theirs);
    }
}

/// One step from many addresses of real code, over a stack of distinct values.
#[test]
#[cfg(target_arch = "x86_64")]
fn steps_through_this_program_agree() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let section = |name: &str| {
        let section = elf.section_by_name(name).unwrap();
        (section.address(), section.data().unwrap().to_vec())
    };
    let (eh_frame_start, eh_frame) = section(".eh_frame");
    let (hdr_start, hdr) = section(".eh_frame_hdr");
    let (text_start, text) = section(".text");
    let end = text_start + text.len() as u64;

    let mut sections = ModuleSections::none(Arch::X86_64);
    sections.eh_frame =
        Some(Section { start: Svma(eh_frame_start), bytes: eh_frame.clone().into() });
    sections.eh_frame_hdr = Some(Section { start: Svma(hdr_start), bytes: hdr.clone().into() });
    sections.text = Some(Svma(text_start));
    let mut space = AddressSpace::new();
    // Everything is mapped, so that any value on the stack is a plausible return address.
    space.map(Avma(0)..Avma(u64::MAX), Bias(0), ModuleUnwindInfo::new(sections));

    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: Some(text_start..end),
        eh_frame_svma: Some(eh_frame_start..eh_frame_start + eh_frame.len() as u64),
        eh_frame: Some(eh_frame.clone()),
        eh_frame_hdr_svma: Some(hdr_start..hdr_start + hdr.len() as u64),
        eh_frame_hdr: Some(hdr),
        ..Default::default()
    };
    let mut theirs = UnwinderX86_64::new();
    theirs.add_module(Module::new("self".into(), 0..end, 0, info));

    let sp = 0x10_0000u64;
    let stack_bytes: Vec<u8> =
        (0..0x4000u64).flat_map(|at| (0x77_0000_0000 + at).to_le_bytes()).collect();
    let mut read = |address: u64| {
        let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
        let word = stack_bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
        Ok(u64::from_le_bytes(*word))
    };

    let (mut compared, mut unwinder) = (0, Unwinder::new());
    let mut cache = CacheX86_64::<_>::new();
    for ip in code_addresses(&eh_frame, eh_frame_start, text_start..end) {
        let fp = sp + 0x2000 + ip % 512 * 8;
        let mut frames = Vec::new();
        let regs = UserRegs::new(Arch::X86_64).with_ip(ip).with_sp(sp).with_fp(fp);
        let stack = StackDump { sp: Avma(sp), bytes: &stack_bytes, rest: None };
        unwinder.unwind(&space, &regs, stack, 2, &mut frames);
        let ours = frames.get(1).map(|frame| frame.address.0);
        let mut regs = UnwindRegsX86_64::new(ip, sp, fp);
        let address = FrameAddress::from_instruction_pointer(ip);
        let theirs = theirs.unwind_frame(address, &mut regs, &mut cache, &mut read);
        assert_eq!(ours, theirs.ok().flatten(), "at {ip:#x}");
        compared += 1;
    }
    assert!(compared > 5_000, "only {compared} addresses compared");
}

/// Three addresses of every function that the section describes inside `text`.
#[cfg(target_arch = "x86_64")]
fn code_addresses(eh_frame: &[u8], start: u64, text: std::ops::Range<u64>) -> Vec<u64> {
    let section = gimli::EhFrame::new(eh_frame, gimli::LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(start).set_text(text.start);
    let mut entries = section.entries(&bases);
    let mut addresses = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(gimli::EhFrame::cie_from_offset).unwrap();
        let (first, length) = (fde.initial_address(), fde.len());
        if text.contains(&first) && length > 0 {
            addresses.extend([first, first + length / 2, first + length - 1]);
        }
    }
    addresses
}
