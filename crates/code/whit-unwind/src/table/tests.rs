//! Tables agree with the call frame information at every address, for any bytes.

use gimli::{FrameDescriptionEntry, UnwindContext, UnwindSection, UnwindTableRow};
use object::{Object, ObjectSection, ObjectSegment};
use proptest::prelude::*;
use whit_types::{Arch, Svma};

use super::rules::{Base, CompactRule, FramePointer, Rbx, ReturnAddress, Unsupported};
use super::{BUCKET_BYTES, NoTable, UnwindTable, builder, wire};
use crate::abi::X86_64;
use crate::cfi::{Reader, RowVisitor};
use crate::general;
use crate::rule::Rule;
use crate::{ModuleSections, ModuleUnwindInfo, Section};

/// Result of a look-up in the call frame information itself.
struct Direct(Arch);

impl RowVisitor for Direct {
    type Output = CompactRule;

    fn visit<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
    ) -> CompactRule {
        CompactRule::from_row(self.0, section, fde, row)
    }
}

fn own_program() -> (ModuleUnwindInfo, Vec<std::ops::Range<Svma>>) {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let section = |name: &str| {
        let section = elf.section_by_name(name).unwrap();
        Section { start: Svma(section.address()), bytes: section.data().unwrap().to_vec().into() }
    };
    let mut sections = ModuleSections::none(Arch::X86_64);
    sections.eh_frame = Some(section(".eh_frame"));
    let code = elf.segments().map(|s| Svma(s.address())..Svma(s.address() + s.size()));
    (ModuleUnwindInfo::new(sections), code.collect())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_address_of_this_program_has_the_rule_of_its_row() {
    let (module, code) = own_program();
    let table = UnwindTable::build(Arch::X86_64, &module, &code).unwrap();
    let range = table.range();
    let (mut context, mut known, mut plt) = (UnwindContext::new(), 0u64, 0u64);
    // A step that meets every offset in a bucket.
    for svma in (range.start.0..range.end.0).step_by(97) {
        let direct = module.visit_row(svma, &mut context, &mut Direct(Arch::X86_64));
        let direct = direct.unwrap_or(CompactRule::UNCOVERED);
        assert_eq!(table.find(Svma(svma)), Some(direct), "at {svma:#x}");
        known += u64::from(direct.base == Base::Sp);
        plt += u64::from(direct.base == Base::Plt);
    }
    assert!(known > 1000, "{known} {plt}");
    assert_eq!(table.find(Svma(range.end.0)), None);
    assert_eq!(wire::decode(&wire::encode(&table)), Ok(table));
}

#[test]
fn rules_are_encoded_and_no_other_bytes_are_taken() {
    let bases = [
        Base::Outermost,
        Base::Sp,
        Base::Fp,
        Base::Rbx,
        Base::FpDeref,
        Base::SpDeref,
        Base::Plt,
        Base::Signal,
        Base::Uncovered,
        Base::Switched,
        Base::Unsupported(Unsupported::CfaExpression),
        Base::Unsupported(Unsupported::Signal),
    ];
    for (number, base) in bases.into_iter().enumerate() {
        for fp in [FramePointer::Same, FramePointer::AtCfa(-16), FramePointer::AtFp(i16::MIN)] {
            let is_word = matches!(base, Base::FpDeref | Base::SpDeref);
            let places = [Rbx::Same, Rbx::Below(1), Rbx::Below(Rbx::SLOT_MAX), Rbx::Lost];
            // A word in memory has an addend in their place.
            for rbx in places.into_iter().filter(|rbx| !is_word || *rbx == Rbx::Lost) {
                let addend = if is_word { 504 } else { 0 };
                let (cfa, ra) = (-5 - number as i32, ReturnAddress::Pushed);
                let rule = CompactRule { base, cfa, addend, fp, rbx, ra };
                assert_eq!(CompactRule::decode(rule.encode()), Some(rule));
            }
        }
    }
    assert_eq!(CompactRule::decode([17, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(CompactRule::decode([1, 3, 0, 0, 0, 0, 0, 0]), None);
    // A distance of a register that is not saved.
    assert_eq!(CompactRule::decode([1, 0, 1, 0, 0, 0, 0, 0]), None);
}

#[test]
fn code_without_description_has_no_tables() {
    for arch in [Arch::Aarch64, Arch::X86_64] {
        let module = ModuleUnwindInfo::none(arch);
        assert_eq!(UnwindTable::build(arch, &module, &[]), Err(NoTable::NoUnwindInfo));
    }
}

/// Places of the return address: with the frame pointer, without it, and alone.
#[test]
fn rules_with_a_link_register_are_encoded() {
    use ReturnAddress::{AtCfa, InLink};
    let cases = [
        (FramePointer::Same, InLink),
        (FramePointer::AtCfa(-16), InLink),
        (FramePointer::AtCfa(-4096), AtCfa(-4088)),
        (FramePointer::AtCfa(-4096), AtCfa(-8)),
        (FramePointer::AtCfa(-16), AtCfa(-496)),
        (FramePointer::Same, AtCfa(-8)),
        (FramePointer::Same, AtCfa(-8192)),
        (FramePointer::Same, AtCfa(0)),
    ];
    for base in [Base::LinkedSp, Base::LinkedFp] {
        for (fp, ra) in cases {
            let rule = CompactRule { base, cfa: 4096, addend: 0, fp, rbx: Rbx::Same, ra };
            assert_eq!(CompactRule::decode(rule.encode()), Some(rule));
        }
        // Too far from the frame address, and away from the frame pointer.
        let rule = CompactRule {
            base,
            cfa: 4096,
            addend: 0,
            fp: FramePointer::AtCfa(-16),
            rbx: Rbx::Same,
            ra: AtCfa(-504),
        };
        assert_ne!(CompactRule::decode(rule.encode()), Some(rule));
    }
    // A distance of a frame pointer that is not saved.
    assert_eq!(CompactRule::decode([15, 0, 1, 0, 0, 0, 0, 0]), None);
}

/// The common entry of arm64's compilers: factors of 4 and -8, the return address in x30, the frame address at sp.
fn linked_frame(functions: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = debug_frame(functions);
    section[10..18].copy_from_slice(&[4, 0x78, 30, 0x0c, 31, 0, 0, 0]);
    section
}

/// A function without a frame; a signed one with a frame record below its variables; one of the dynamic linker that
/// saves the return address alone; and the outermost one.
#[test]
fn rules_of_arm64_say_where_the_return_address_is() {
    let negate_ra_state = 0x2d;
    let signed = vec![negate_ra_state, 0x41, 0x0e, 64, 0x80 | 29, 8, 0x80 | 30, 7, 0x41, 0x0d, 29];
    let alone = vec![0x41, 0x0e, 16, 0x80 | 30, 2];
    let functions = [
        (0x3000, 0x40, Vec::new()),
        (0x3040, 0x40, signed),
        (0x3080, 0x40, alone),
        (0x30c0, 0x40, vec![0x07, 30]),
    ];
    let mut sections = ModuleSections::none(Arch::Aarch64);
    sections.debug_frame = Some(linked_frame(&functions).into());
    sections.stack_switches.signal.push(Svma(0x3200)..Svma(0x320c));
    let module = ModuleUnwindInfo::new(sections);
    let table = UnwindTable::build(Arch::Aarch64, &module, &[CODE]).unwrap();
    let frame = |base, cfa, fp, ra| CompactRule { base, cfa, addend: 0, fp, rbx: Rbx::Same, ra };
    let bare = frame(Base::LinkedSp, 0, FramePointer::Same, ReturnAddress::InLink);
    let record = (FramePointer::AtCfa(-64), ReturnAddress::AtCfa(-56));
    for (svma, wanted) in [
        (0x3000, bare),
        (0x303c, bare),
        (0x3040, bare),
        (0x3044, frame(Base::LinkedSp, 64, record.0, record.1)),
        (0x3048, frame(Base::LinkedFp, 64, record.0, record.1)),
        (0x3080, bare),
        (0x3084, frame(Base::LinkedSp, 16, FramePointer::Same, ReturnAddress::AtCfa(-16))),
    ] {
        assert_eq!(table.find(Svma(svma)), Some(wanted), "at {svma:#x}");
    }
    // No entry covers the return from a signal.
    for (svma, wanted) in [
        (0x30c0, Base::Outermost),
        (0x31fc, Base::Uncovered),
        (0x3200, Base::Signal),
        (0x3208, Base::Signal),
    ] {
        assert_eq!(table.find(Svma(svma)).map(|rule| rule.base), Some(wanted), "at {svma:#x}");
    }
    let mut context = UnwindContext::new();
    for svma in (table.range().start.0..table.range().end.0).step_by(4) {
        let direct = module.visit_row(svma, &mut context, &mut Direct(Arch::Aarch64));
        let direct = direct.unwrap_or(CompactRule::UNCOVERED);
        let found = table.find(Svma(svma)).unwrap();
        assert!(found == direct || found.base == Base::Signal, "at {svma:#x}: {found:?}");
    }
    assert_eq!(wire::decode(&wire::encode(&table)), Ok(table));
}

/// `.debug_frame` of the same form.
fn debug_frame(functions: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = eh_frame(&[]);
    section[4..8].fill(0xff);
    for (start, length, instructions) in functions {
        let mut body = start.to_le_bytes().to_vec();
        body.extend(length.to_le_bytes());
        body.extend(instructions);
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        section.extend((body.len() as u32 + 4).to_le_bytes());
        // The common entry is the first.
        section.extend(0u32.to_le_bytes());
        section.extend(body);
    }
    section
}

/// Call frame information as Go's linker writes it: factors of -4, the return address at twice that, and nothing of the frame pointer.
fn go_frame(functions: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = debug_frame(functions);
    (section[11], section[17]) = (0x7c, 2);
    section
}

/// After a byte the stack pointer is 16 below the frame address: the frame pointer was pushed.
const PUSHED: [u8; 3] = [0x41, 0x0e, 16];

#[test]
fn go_functions_with_a_frame_have_saved_the_frame_pointer() {
    let function = [(0x3000, 0x100, PUSHED.to_vec())];
    for (section, fp) in [
        (go_frame(&function), FramePointer::AtCfa(-16)),
        (debug_frame(&function), FramePointer::Same),
    ] {
        let table = UnwindTable::build(Arch::X86_64, &module(vec![0; 4], Some(section)), &[CODE]);
        let table = table.unwrap();
        let (base, rbx, ra) = (Base::Sp, Rbx::Same, ReturnAddress::Pushed);
        let rule = |cfa, fp| Some(CompactRule { base, cfa, addend: 0, fp, rbx, ra });
        assert_eq!(table.find(Svma(0x3000)), rule(8, FramePointer::Same));
        assert_eq!(table.find(Svma(0x3001)), rule(16, fp));
    }
}

#[test]
fn code_that_changes_stacks_has_its_own_rules() {
    let mut sections = ModuleSections::none(Arch::X86_64);
    let functions = [(0x3000, 0x100, PUSHED.to_vec()), (0x3100, 0x10, Vec::new())];
    sections.debug_frame = Some(go_frame(&functions).into());
    let range = |from, to| Svma(from)..Svma(to);
    sections.stack_switches.kept_frame = vec![range(0x3004, 0x3010), range(0x3012, 0x3020)];
    sections.stack_switches.outermost = vec![range(0x30f0, 0x3108), range(0x9000, 0x9010)];
    let switches = sections.stack_switches.clone();
    let module = ModuleUnwindInfo::new(sections);
    let table = UnwindTable::build(Arch::X86_64, &module, &[CODE]).unwrap();
    let holds = |ranges: &[std::ops::Range<Svma>], at| ranges.iter().any(|r| r.contains(&Svma(at)));
    let mut context = UnwindContext::new();
    for svma in 0x3000..0x3110 {
        let found = table.find(Svma(svma)).unwrap().base;
        let offline = general::find_rule::<X86_64>(&module, svma, &mut context);
        let wanted = if holds(&switches.kept_frame, svma) {
            assert_eq!(offline, Rule::Switched);
            Base::Switched
        } else if holds(&switches.outermost, svma) {
            assert_eq!(offline, Rule::Root);
            Base::Outermost
        } else {
            assert!(matches!(offline, Rule::Frame { from_fp: false, .. }));
            Base::Sp
        };
        assert_eq!(found, wanted, "at {svma:#x}");
    }
}

/// A section of one common entry and these functions: first address, length, instructions.
fn eh_frame(functions: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut section = vec![20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    section.resize(24, 0);
    for (start, length, instructions) in functions {
        let mut body = start.to_le_bytes().to_vec();
        body.extend(length.to_le_bytes());
        body.extend(instructions);
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        let cie_distance = section.len() as u32 + 4;
        section.extend((body.len() as u32 + 4).to_le_bytes());
        section.extend(cie_distance.to_le_bytes());
        section.extend(body);
    }
    section
}

fn module(eh_frame: Vec<u8>, debug_frame: Option<Vec<u8>>) -> ModuleUnwindInfo {
    let mut sections = ModuleSections::none(Arch::X86_64);
    sections.eh_frame = Some(Section { start: Svma(0x10_0000), bytes: eh_frame.into() });
    sections.debug_frame = debug_frame.map(Into::into);
    ModuleUnwindInfo::new(sections)
}

const CODE: std::ops::Range<Svma> = Svma(0x1000)..Svma(0x9000);

/// Instructions that mean something, and others.
fn instructions() -> impl Strategy<Value = Vec<u8>> {
    let advance = (1u8..60).prop_map(|delta| vec![0x40 | delta]);
    let cfa_offset = (0u8..0x7f).prop_map(|offset| vec![0x0e, offset]);
    let cfa = (0u8..18, 0u8..0x7f).prop_map(|(register, offset)| vec![0x0c, register, offset]);
    let saved = (0u8..17, 0u8..20).prop_map(|(register, offset)| vec![0x80 | register, offset]);
    let expression = prop::collection::vec(any::<u8>(), 0..12)
        .prop_map(|bytes| [vec![0x0f, bytes.len() as u8], bytes].concat());
    let stack = prop_oneof![Just(vec![0x0a]), Just(vec![0x0b])];
    let other = prop::collection::vec(any::<u8>(), 1..4);
    let one = prop_oneof![4 => advance, 4 => cfa_offset, 2 => cfa, 3 => saved, 1 => expression,
        1 => stack, 1 => other];
    prop::collection::vec(one, 0..12).prop_map(|all| all.concat())
}

fn functions(count: usize) -> impl Strategy<Value = Vec<(u64, u64, Vec<u8>)>> {
    prop::collection::vec((0u64..0xa000, 0u64..0x900, instructions()), 0..count)
}

/// An entry that many functions share, with instructions that are read again for each.
#[test]
fn work_that_would_not_end_is_refused() {
    let mut section = vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1];
    section.resize(0x1004, 0);
    let length = section.len() as u32 - 4;
    section[..4].copy_from_slice(&length.to_le_bytes());
    for start in (0x1000u64..0x2000).step_by(0x100) {
        let cie_distance = section.len() as u32 + 4;
        section.extend(20u32.to_le_bytes());
        section.extend(cie_distance.to_le_bytes());
        section.extend(start.to_le_bytes());
        section.extend([0x80, 0, 0, 0, 0, 0, 0, 0]);
    }
    let module = module(section, None);
    let built =
        |work_max_bytes| builder::build_within(Arch::X86_64, &module, &[CODE], work_max_bytes);
    assert_eq!(built(16 * (0x1000 + 20)).map(|table| table.rows().len()), Ok(32));
    assert_eq!(built(16 * (0x1000 + 20) - 1), Err(NoTable::TooLarge));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// `.debug_frame` counts only where `.eh_frame` has no entry.
    #[test]
    fn two_sections_give_the_rules_of_a_look_up(eh in functions(12), debug in functions(12)) {
        let module = module(eh_frame(&eh), Some(debug_frame(&debug)));
        let table = UnwindTable::build(Arch::X86_64, &module, &[CODE]);
        let mut context = UnwindContext::new();
        for svma in (CODE.start.0..CODE.end.0).step_by(13) {
            let direct = module.visit_row(svma, &mut context, &mut Direct(Arch::X86_64));
            let found = table.as_ref().ok().and_then(|table| table.find(Svma(svma)));
            let wanted = direct.unwrap_or(CompactRule::UNCOVERED);
            prop_assert_eq!(found.unwrap_or(CompactRule::UNCOVERED), wanted, "at {:#x}", svma);
        }
    }

}

proptest! {
    /// Functions that overlap, repeat, leave gaps and stick out of the code.
    #[test]
    fn overlapping_functions_give_the_rules_of_a_look_up(
        functions in prop::collection::vec(
            (0u64..0xa000, 0u64..0x900, prop::collection::vec(any::<u8>(), 0..20)), 1..30),
    ) {
        let module = module(eh_frame(&functions), None);
        let table = UnwindTable::build(Arch::X86_64, &module, &[CODE]);
        let mut context = UnwindContext::new();
        for svma in (0..0xb000).step_by(5) {
            let direct = module.visit_row(svma, &mut context, &mut Direct(Arch::X86_64));
            let inside = (CODE.start.0..CODE.end.0).contains(&svma);
            let wanted = direct.filter(|_| inside).unwrap_or(CompactRule::UNCOVERED);
            let found = table.as_ref().ok().and_then(|table| table.find(Svma(svma)));
            prop_assert_eq!(found.unwrap_or(CompactRule::UNCOVERED), wanted, "at {:#x}", svma);
        }
    }

    #[test]
    fn arbitrary_sections_are_survived(
        eh_frame in prop::collection::vec(any::<u8>(), 0..300),
        debug_frame in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
    ) {
        let module = module(eh_frame, debug_frame);
        if let Ok(table) = UnwindTable::build(Arch::X86_64, &module, &[CODE, Svma(0)..Svma(u64::MAX)]) {
            prop_assert_eq!(wire::decode(&wire::encode(&table)), Ok(table));
        }
    }

    #[test]
    fn changed_files_are_refused(at in any::<prop::sample::Index>(), bit in 0u8..8, cut in any::<prop::sample::Index>()) {
        let functions = [(0x2000, 0x100, vec![0x0e, 16]), (0x3000, 0x10, vec![])];
        let table = UnwindTable::build(Arch::X86_64, &module(eh_frame(&functions), None), &[CODE]).unwrap();
        prop_assert_eq!(table.range(), Svma(0x2000)..Svma(0x3000 + BUCKET_BYTES));
        let good = wire::encode(&table);
        let mut bad = good.clone();
        bad[at.index(good.len())] ^= 1 << bit;
        prop_assert!(wire::decode(&bad).is_err());
        prop_assert!(wire::decode(&good[..cut.index(good.len())]).is_err());
    }

    /// A file that was made to be believed: the checksum is right, the rest is not.
    #[test]
    fn forged_files_cannot_lead_astray(words in prop::collection::vec(any::<u32>(), 4..60), start in any::<u64>(), counts in prop::array::uniform3(0u32..20)) {
        let mut bytes = wire::MAGIC.to_vec();
        bytes.extend(start.to_le_bytes());
        counts.iter().chain(&[BUCKET_BYTES as u32]).for_each(|n| bytes.extend(n.to_le_bytes()));
        bytes.extend([0; 8]);
        words.iter().for_each(|word| bytes.extend((word % 40).to_le_bytes()));
        bytes.truncate(wire::HEADER_BYTES + (4 * (counts[0] + counts[1]) + 8 * counts[2]) as usize);
        let sum = wire::checksum(&bytes);
        bytes[32..40].copy_from_slice(&sum.to_le_bytes());
        if let Ok(table) = wire::decode(&bytes) {
            let range = table.range();
            for svma in (range.start.0..range.end.0).step_by(17) {
                prop_assert!(table.find(Svma(svma)).is_some());
            }
        }
    }
}
