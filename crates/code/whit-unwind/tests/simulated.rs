//! Simulated stacks: the unwound functions are the called ones.

mod common;

use common::{Function, Shape, Stopped, module, space, stop_in};
use proptest::prelude::*;
use whit_types::{Arch, Avma, Svma};
use whit_unwind::{
    AddressSpace, Bias, DeeperStack, FrameKind, ModuleSections, ModuleUnwindInfo, Section,
    StackDump, StopReason, Unwinder, UserFrame, UserRegs,
};

fn unwind(
    unwinder: &mut Unwinder,
    space: &AddressSpace,
    stopped: &Stopped,
    max_frames: usize,
) -> (Vec<u64>, StopReason) {
    let mut frames = Vec::new();
    let stack = StackDump { sp: Avma(stopped.sp), bytes: &stopped.bytes, rest: None };
    let reason = unwinder.unwind(space, &stopped.regs, stack, max_frames, &mut frames);
    for (at, frame) in frames.iter().enumerate() {
        let expected =
            if at == 0 { FrameKind::InstructionPointer } else { FrameKind::ReturnAddress };
        assert_eq!(frame.kind, expected);
    }
    (frames.iter().map(|frame| frame.address.0).collect(), reason)
}

/// A whole dump, elsewhere.
struct Rest<'a>(&'a [u8]);

impl DeeperStack for Rest<'_> {
    fn read(&self, offset: usize, size: usize) -> Option<u64> {
        let bytes = self.0.get(offset..offset.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }
}

fn arch() -> impl Strategy<Value = Arch> {
    prop_oneof![Just(Arch::X86_64), Just(Arch::Aarch64)]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::SpOnly),
        Just(Shape::SpAndSavedFp),
        Just(Shape::FramePointer),
        Just(Shape::Realigned),
    ]
}

fn functions() -> impl Strategy<Value = Vec<Function>> {
    let function =
        (shape(), 2u64..2000).prop_map(|(shape, frame_by_16)| Function { shape, frame_by_16 });
    prop::collection::vec(function, 2..20)
}

proptest! {
    #[test]
    fn the_chain_of_calls_comes_back(
        arch in arch(),
        functions in functions(),
        calls in prop::collection::vec(any::<prop::sample::Index>(), 1..100),
        in_debug_frame: bool,
    ) {
        let chain: Vec<usize> =
            calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
        let space = space(module(arch, &functions, in_debug_frame), functions.len());
        let stopped = stop_in(arch, &functions, &chain);
        let mut unwinder = Unwinder::new();
        // The second time everything comes out of the cache.
        for _ in 0..2 {
            let (chain, reason) = unwind(&mut unwinder, &space, &stopped, usize::MAX);
            prop_assert_eq!(&chain, &stopped.expected);
            prop_assert_eq!(reason, StopReason::EndOfStack);
        }
    }

    #[test]
    fn a_cut_dump_gives_the_inner_part(
        arch in arch(),
        functions in functions(),
        calls in prop::collection::vec(any::<prop::sample::Index>(), 2..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let chain: Vec<usize> =
            calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
        let space = space(module(arch, &functions, false), functions.len());
        let mut stopped = stop_in(arch, &functions, &chain);
        stopped.bytes.truncate(cut.index(stopped.bytes.len()));
        let (found, reason) = unwind(&mut Unwinder::new(), &space, &stopped, usize::MAX);
        prop_assert!(stopped.expected.starts_with(&found), "{:x?}", found);
        prop_assert_eq!(reason == StopReason::EndOfStack, found == stopped.expected);
        if found != stopped.expected {
            prop_assert_eq!(reason, StopReason::StackDumpExhausted);
        }
    }

    #[test]
    fn a_dump_that_is_read_in_parts_gives_the_same_chain(
        arch in arch(),
        functions in functions(),
        calls in prop::collection::vec(any::<prop::sample::Index>(), 2..40),
        cut in any::<prop::sample::Index>(),
        present in any::<prop::sample::Index>(),
    ) {
        let chain: Vec<usize> =
            calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
        let space = space(module(arch, &functions, false), functions.len());
        let mut stopped = stop_in(arch, &functions, &chain);
        stopped.bytes.truncate(cut.index(stopped.bytes.len() + 1));
        let whole = unwind(&mut Unwinder::new(), &space, &stopped, usize::MAX);
        let rest = Rest(&stopped.bytes);
        let present = &stopped.bytes[..present.index(stopped.bytes.len() + 1)];
        let stack = StackDump { sp: Avma(stopped.sp), bytes: present, rest: Some(&rest) };
        let mut frames = Vec::new();
        let mut unwinder = Unwinder::new();
        let reason = unwinder.unwind(&space, &stopped.regs, stack, usize::MAX, &mut frames);
        prop_assert_eq!((frames.iter().map(|frame| frame.address.0).collect(), reason), whole);
    }

    #[test]
    fn no_more_frames_than_asked_for(max_frames in 0usize..12) {
        let functions = [Function { shape: Shape::SpOnly, frame_by_16: 4 }; 3];
        let space = space(module(Arch::X86_64, &functions, false), functions.len());
        let stopped = stop_in(Arch::X86_64, &functions, &[1; 8]);
        let (found, reason) = unwind(&mut Unwinder::new(), &space, &stopped, max_frames);
        prop_assert_eq!(found.len(), max_frames.min(9));
        let limited = max_frames < 9;
        prop_assert_eq!(reason == StopReason::FramesLimit, limited);
    }

    /// Hostile bytes everywhere: no panic, an end, and never more frames than allowed.
    #[test]
    fn arbitrary_bytes_are_survived(
        arch in arch(),
        mut eh_frame in prop::collection::vec(any::<u8>(), 0..400),
        hdr in prop::option::of(prop::collection::vec(any::<u8>(), 0..64)),
        debug_frame in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        registers: [u64; 4],
        bias: u64,
    ) {
        if let Some(first) = eh_frame.first_chunk_mut::<4>() {
            // A plausible length, so that parsing gets further than the first word.
            *first = [40, 0, 0, 0];
        }
        let mut sections = ModuleSections::none(arch);
        sections.eh_frame = Some(Section { start: Svma(0), bytes: eh_frame.into() });
        sections.eh_frame_hdr = hdr.map(|hdr| Section { start: Svma(64), bytes: hdr.into() });
        sections.debug_frame = debug_frame.map(Into::into);
        check_survival(arch, sections, &bytes, registers, bias)?;
    }

    /// Real call frame information with some bytes changed.
    #[test]
    fn damaged_information_is_survived(
        arch in arch(),
        functions in functions(),
        calls in prop::collection::vec(any::<prop::sample::Index>(), 1..30),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..30),
        in_debug_frame: bool,
    ) {
        let mut bytes = if in_debug_frame {
            common::debug_frame(arch, &functions)
        } else {
            common::eh_frame(arch, &functions)
        };
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut sections = ModuleSections::none(arch);
        if in_debug_frame {
            sections.debug_frame = Some(bytes.into());
        } else {
            sections.eh_frame = Some(Section { start: Svma(common::EH_FRAME), bytes: bytes.into() });
        }
        let chain: Vec<usize> =
            calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
        let space = space(ModuleUnwindInfo::new(sections), functions.len());
        let stopped = stop_in(arch, &functions, &chain);
        let (found, _) = unwind(&mut Unwinder::new(), &space, &stopped, 200);
        prop_assert!(found.len() <= 200);
        prop_assert_eq!(found[0], stopped.expected[0]);
    }
}

fn check_survival(
    arch: Arch,
    sections: ModuleSections,
    bytes: &[u8],
    registers: [u64; 4],
    bias: u64,
) -> Result<(), TestCaseError> {
    let [ip, sp, fp, lr] = registers;
    let mut space = AddressSpace::new();
    space.map(Avma(0)..Avma(u64::MAX), Bias(bias), ModuleUnwindInfo::new(sections));
    let regs = UserRegs::new(arch).with_ip(ip).with_sp(sp).with_fp(fp).with_lr(lr);
    let mut unwinder = Unwinder::new();
    for ip in [ip, bias, bias.wrapping_add(8)] {
        let mut frames = Vec::new();
        let stack = StackDump { sp: Avma(sp), bytes, rest: None };
        unwinder.unwind(&space, &regs.with_ip(ip), stack, 300, &mut frames);
        prop_assert!((1..=300).contains(&frames.len()));
        prop_assert_eq!(frames[0].address, Avma(ip));
    }
    Ok(())
}

#[test]
fn missing_registers_are_named() {
    let functions = [Function { shape: Shape::FramePointer, frame_by_16: 4 }; 2];
    let space = space(module(Arch::X86_64, &functions, false), 2);
    let stopped = stop_in(Arch::X86_64, &functions, &[1]);
    let stack = StackDump { sp: Avma(stopped.sp), bytes: &stopped.bytes, rest: None };
    let run = |regs: UserRegs| {
        let mut frames: Vec<UserFrame> = Vec::new();
        let reason = Unwinder::new().unwind(&space, &regs, stack, 127, &mut frames);
        (frames.len(), reason)
    };
    let none = UserRegs::new(Arch::X86_64);
    assert_eq!(run(none), (0, StopReason::BadRegs));
    let ip = none.with_ip(stopped.regs.ip().unwrap());
    assert_eq!(run(ip), (1, StopReason::BadRegs));
    let ip_sp = ip.with_sp(stopped.sp);
    assert_eq!(run(ip_sp), (1, StopReason::MissingRegister));
    assert_eq!(run(stopped.regs), (2, StopReason::EndOfStack));
}

#[test]
fn code_without_information_is_unwound_by_frame_pointer() {
    // A JIT's region without unwind information between two modules that have it: every function
    // of the region keeps a frame pointer.
    for arch in [Arch::X86_64, Arch::Aarch64] {
        let functions = [Function { shape: Shape::FramePointer, frame_by_16: 3 }; 6];
        let mut space = space(module(arch, &functions, false), 6);
        let jit = common::BASE + common::TEXT + 2 * common::FUNCTION_SIZE;
        let range = Avma(jit)..Avma(jit + 2 * common::FUNCTION_SIZE);
        let stopped = stop_in(arch, &functions, &[1, 2, 3, 2, 4, 5, 1]);
        space.map(range.clone(), Bias(0), ModuleUnwindInfo::none(arch));
        let expected = (stopped.expected.clone(), StopReason::EndOfStack);
        assert_eq!(unwind(&mut Unwinder::new(), &space, &stopped, 127), expected);
        // Unmapped, the return addresses into it are not trusted.
        space.unmap(range);
        let (found, reason) = unwind(&mut Unwinder::new(), &space, &stopped, 127);
        assert_eq!(reason, StopReason::NoModule);
        assert!(stopped.expected.starts_with(&found));
    }
}

#[test]
fn code_that_does_not_describe_itself() {
    let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 4];
    // Functions 2 and 3 are mapped, but not described.
    let space = space(module(Arch::X86_64, &functions[..2], false), 4);

    // A leaf without a frame: its return address is on top of the stack.
    let mut stopped = stop_in(Arch::X86_64, &functions, &[1, 1]);
    stopped.sp -= 8;
    stopped.bytes.splice(0..0, stopped.expected[0].to_le_bytes());
    stopped.expected.insert(0, common::return_address(3));
    stopped.regs = stopped.regs.with_ip(common::return_address(3)).with_sp(stopped.sp);
    let found = unwind(&mut Unwinder::new(), &space, &stopped, 127);
    assert_eq!(found, (stopped.expected, StopReason::EndOfStack));

    // The start of the process: nothing above it, and a frame pointer of zero.
    let mut started = stop_in(Arch::X86_64, &functions, &[1]);
    let root = common::return_address(2);
    let at = started.bytes.len() - 72;
    started.bytes[at..at + 8].copy_from_slice(&root.to_le_bytes());
    started.regs = started.regs.with_fp(0);
    let found = unwind(&mut Unwinder::new(), &space, &started, 127);
    assert_eq!(found, (vec![started.expected[0], root], StopReason::EndOfStack));
}

#[test]
fn a_return_address_outside_all_mappings_is_left_out() {
    let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 2];
    let space = space(module(Arch::X86_64, &functions, false), 2);
    let mut stopped = stop_in(Arch::X86_64, &functions, &[1]);
    let at = stopped.bytes.len() - 72;
    stopped.bytes[at..at + 8].copy_from_slice(&0x1234u64.to_le_bytes());
    let found = unwind(&mut Unwinder::new(), &space, &stopped, 127);
    assert_eq!(found, (vec![stopped.expected[0]], StopReason::NoModule));
}

#[test]
fn a_leaf_of_arm64_returns_through_its_link_register_once() {
    let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 4];
    let space = space(module(Arch::Aarch64, &functions, false), 4);
    let mut stopped = stop_in(Arch::Aarch64, &functions, &[1, 2]);
    // Just entered function 3: no frame yet. The address carries an authentication code.
    let entry = common::return_address(3) - common::CALL_OFFSET;
    let signed = stopped.expected[0] | 0x00ab << 48;
    stopped.regs = stopped.regs.with_ip(entry).with_lr(signed);
    stopped.expected.insert(0, entry);
    let (found, reason) = unwind(&mut Unwinder::new(), &space, &stopped, 127);
    assert_eq!((found, reason), (stopped.expected, StopReason::EndOfStack));

    // At the root's entry the rule says "in the link register" for ever; one use is all it has.
    let mut lying = stop_in(Arch::Aarch64, &functions, &[1]);
    lying.regs = lying.regs.with_ip(entry).with_lr(entry + 1);
    let (found, reason) = unwind(&mut Unwinder::new(), &space, &lying, 127);
    assert_eq!((found, reason), (vec![entry, entry + 1], StopReason::MissingRegister));
}

/// A handler interrupts function 1; the kernel's frame holds the interrupted registers.
#[test]
fn a_signal_frame_leads_to_the_interrupted_instruction() {
    let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 2];
    let mut stopped = stop_in(Arch::X86_64, &functions, &[1, 1]);
    let mut space = space(module(Arch::X86_64, &functions, false), 2);
    space.map(Avma(0x9000)..Avma(0xa000), Bias(0), signal_trampoline());
    // Interrupted at the first instruction of function 1, where an address minus one would lie in
    // function 0; the registers of then stand 16, 24 and 32 bytes above the trampoline's frame.
    let interrupted = common::return_address(1) - common::CALL_OFFSET;
    let caller = stopped.expected[0];
    let mut bytes = Vec::new();
    for word in [0x11, 0x22, interrupted, stopped.sp - 8, 0x44, 0x55, caller] {
        bytes.extend_from_slice(&u64::to_le_bytes(word));
    }
    bytes.extend_from_slice(&stopped.bytes);
    let depth = 56;
    stopped.bytes = bytes;
    stopped.sp -= depth;
    stopped.regs = stopped.regs.with_sp(stopped.sp).with_ip(0x9000);

    let mut frames = Vec::new();
    let stack = StackDump { sp: Avma(stopped.sp), bytes: &stopped.bytes, rest: None };
    let reason = Unwinder::new().unwind(&space, &stopped.regs, stack, 127, &mut frames);
    let found: Vec<u64> = frames.iter().map(|frame| frame.address.0).collect();
    let mut expected = vec![0x9000, interrupted];
    expected.extend(&stopped.expected);
    assert_eq!((found, reason), (expected, StopReason::EndOfStack));
    assert_eq!(frames[1].kind, FrameKind::InstructionPointer);
    assert_eq!(frames[1].lookup_address(), Avma(interrupted));
    assert_eq!(frames[2].kind, FrameKind::ReturnAddress);
    assert_eq!(frames[2].lookup_address(), Avma(caller - 1));
}

/// The same on arm64, whose vdso describes its part by a symbol alone. A leaf was interrupted, whose return address is in
/// the link register.
#[test]
fn a_signal_frame_of_arm64_leads_to_the_interrupted_leaf() {
    let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 4];
    let mut stopped = stop_in(Arch::Aarch64, &functions, &[1, 2]);
    let mut space = space(module(Arch::Aarch64, &functions, false), 4);
    let mut vdso = ModuleSections::none(Arch::Aarch64);
    vdso.stack_switches.signal.push(Svma(0x10)..Svma(0x20));
    space.map(Avma(0x9000)..Avma(0xa000), Bias(0x9000), ModuleUnwindInfo::new(vdso));
    let interrupted = common::return_address(3) - common::CALL_OFFSET;
    let handled = common::signal_of_arm64(&mut stopped, interrupted);
    // The handler's frame is gone already: it returns.
    stopped.regs = stopped.regs.with_ip(0x9014).with_sp(handled);
    let mut frames = Vec::new();
    let stack = StackDump { sp: Avma(handled), bytes: &stopped.bytes, rest: None };
    let reason = Unwinder::new().unwind(&space, &stopped.regs, stack, 127, &mut frames);
    let found: Vec<u64> = frames.iter().map(|frame| frame.address.0).collect();
    let mut expected = vec![0x9014, interrupted];
    expected.extend(&stopped.expected);
    assert_eq!((found, reason), (expected, StopReason::EndOfStack));
    assert_eq!(frames[1].kind, FrameKind::InstructionPointer);
    // A dump that ends within the registers.
    let bytes = &stopped.bytes[..500];
    let stack = StackDump { sp: Avma(handled), bytes, rest: None };
    frames.clear();
    let reason = Unwinder::new().unwind(&space, &stopped.regs, stack, 127, &mut frames);
    assert_eq!((frames.len(), reason), (1, StopReason::StackDumpExhausted));
}

fn signal_trampoline() -> ModuleUnwindInfo {
    use gimli::write::{Address, CallFrameInstruction as Cfi, Expression};
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 1 };
    let mut cie = gimli::write::CommonInformationEntry::new(encoding, 1, -8, gimli::X86_64::RA);
    cie.signal_trampoline = true;
    let saved_at = |offset: i64, deref: bool| {
        let mut expression = Expression::new();
        expression.op_breg(gimli::X86_64::RSP, offset);
        if deref {
            expression.op_deref();
        }
        expression
    };
    cie.add_instruction(Cfi::CfaExpression(saved_at(24, true)));
    cie.add_instruction(Cfi::Expression(gimli::X86_64::RA, saved_at(16, false)));
    cie.add_instruction(Cfi::Expression(gimli::X86_64::RBP, saved_at(32, false)));
    let mut table = gimli::write::FrameTable::default();
    let cie = table.add_cie(cie);
    let fde = gimli::write::FrameDescriptionEntry::new(Address::Constant(0x9000), 0x10);
    table.add_fde(cie, fde);
    let mut out = gimli::write::EhFrame(gimli::write::EndianVec::new(gimli::LittleEndian));
    table.write_eh_frame(&mut out).unwrap();
    let mut sections = ModuleSections::none(Arch::X86_64);
    sections.eh_frame = Some(Section { start: Svma(0xb000), bytes: out.0.into_vec().into() });
    ModuleUnwindInfo::new(sections)
}
