use std::collections::HashSet;

use super::*;
use crate::address_space::Bias;
use crate::module::ModuleUnwindInfo;

fn mapped(start: u64, end: u64, arch: Arch) -> AddressSpace {
    let mut space = AddressSpace::new();
    space.map(Avma(start)..Avma(end), Bias(0), ModuleUnwindInfo::none(arch));
    space
}

#[test]
fn each_end_has_a_text_of_its_own_and_one_is_complete() {
    let texts: HashSet<_> = StopReason::ALL.iter().map(StopReason::to_string).collect();
    assert_eq!(texts.len(), StopReason::ALL.len());
    assert!(texts.iter().all(|text| text.len() > 10));
    for (number, reason) in StopReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, number);
        assert_eq!(reason.is_complete(), reason == StopReason::EndOfStack);
    }
}

/// 48 bits, and 52 where code is mapped above them.
#[test]
fn addresses_of_code_have_as_many_bits_as_the_process_uses() {
    assert_eq!(code_mask(&AddressSpace::new()), 0xffff_ffff_ffff);
    let end_at = |end| code_mask(&mapped(0x1000, end, Arch::Aarch64));
    assert_eq!(end_at(1 << 48), 0xffff_ffff_ffff);
    assert_eq!(end_at((1 << 48) + 0x1000), 0xf_ffff_ffff_ffff);
}

#[test]
fn mappings_are_counted_and_end_where_the_highest_does() {
    let mut space = mapped(0x1000, 0x3000, Arch::X86_64);
    assert!(AddressSpace::new().is_empty() && !space.is_empty());
    space.unmap(Avma(0x1800)..Avma(0x2000));
    assert_eq!((space.len(), space.end(), AddressSpace::new().end()), (2, 0x3000, 0));
}

/// The frame record of code without unwind information: the caller's frame pointer, a return address.
#[test]
fn a_frame_pointer_leads_to_a_record_above_the_stack_pointer() {
    let space = mapped(0x1000, 0x2000, Arch::X86_64);
    let (sp, start) = (0x7000, 0x1500);
    let run = |fp: u64, words: [u64; 4]| {
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let regs = UserRegs::new(Arch::X86_64).with_ip(start).with_sp(sp).with_fp(fp);
        let mut frames = Vec::new();
        let dump = StackDump { sp: Avma(sp), bytes: &bytes, rest: None };
        let reason = Unwinder::new().unwind(&space, &regs, dump, 127, &mut frames);
        let callers: Vec<u64> = frames[1..].iter().map(|frame| frame.address.0).collect();
        (callers, reason)
    };
    let caller = 0x1600;
    let none = StopReason::NoUnwindInfo;
    // Right at the stack pointer, and higher. The caller's own frame pointer is 5: it leads nowhere.
    assert_eq!(run(sp, [5, caller, 0, 0]), (vec![caller], none));
    assert_eq!(run(sp + 16, [0, 0, 5, caller]), (vec![caller], none));
    // A second record behind the first.
    assert_eq!(run(sp, [sp + 16, caller, 5, 0x1700]), (vec![caller, 0x1700], none));
    // Below the stack pointer, between words, above the dump.
    assert_eq!(run(sp - 8, [5, caller, 0, 0]), (vec![], none));
    assert_eq!(run(sp + 4, [5, caller, 0, 0]), (vec![], none));
    assert_eq!(run(sp + 24, [5, caller, 0, 0]), (vec![], StopReason::StackDumpExhausted));
    // No code: the first address, and those around the mapping. A return address stands behind its call.
    assert_eq!(run(sp, [5, 0, 0, 0]), (vec![], StopReason::EndOfStack));
    for outside in [0x1000, 0x2001, 0x9000] {
        assert_eq!(run(sp, [5, outside, 0, 0]), (vec![], none), "{outside:#x}");
    }
    assert_eq!(run(sp, [5, 0x2000, 0, 0]), (vec![0x2000], none));
    assert_eq!(run(sp, [5, 0x1001, 0, 0]), (vec![0x1001], none));
}

#[test]
fn rules_come_from_the_cache_the_second_time() {
    let space = mapped(0x1000, 0x2000, Arch::X86_64);
    let regs = UserRegs::new(Arch::X86_64).with_ip(0x1500).with_sp(0x7000).with_fp(0);
    let mut unwinder = Unwinder::default();
    for hits in 0..3 {
        let dump = StackDump { sp: Avma(0x7000), bytes: &[], rest: None };
        unwinder.unwind(&space, &regs, dump, 127, &mut Vec::new());
        assert_eq!(unwinder.cache_stats(), CacheStats { hits, misses: 1 });
    }
}
