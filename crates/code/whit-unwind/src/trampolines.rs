//! The trampolines of Python 3.12 and 3.13 (`-X perf`, `-X perf_jit`): one for each function, all the same code.
//!
//! A trampoline calls the interpreter for its function, so that the function has an address of its own. It makes
//! no frame record, and no file describes it:
//!
//! ```text
//! 48 83 ec 08    sub  $8, %rsp
//! ff d1          call *%rcx
//! 48 83 c4 08    add  $8, %rsp
//! c3             ret
//! ```
//!
//! Builds for control-flow enforcement begin it with `endbr64` (`f3 0f 1e fa`). Python 3.14's have a frame record,
//! as those of arm64 have: frame pointers lead through them. Source: `Python/asm_trampoline.S` and
//! `Python/perf_trampoline.c` of CPython.

use std::ops::Range;

use whit_types::{Arch, Svma};

use crate::bytes::Bytes;
use crate::jit::eh_frame_offset;
use crate::module::{ModuleSections, ModuleUnwindInfo, Section};
use crate::table::{NoTable, UnwindTable};

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const CODE: [u8; 11] = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];
/// Behind `sub`.
const PUSHED_AT: usize = 4;
/// Behind `add`.
const POPPED_AT: usize = 10;

/// Distance of the frame address from the stack pointer: at the call, and before and behind it.
const CFA_IN_CALL: u8 = 16;
const CFA_OUTSIDE: u8 = 8;

/// Instructions of call frame information (DWARF 5, 7.24).
const DW_CFA_ADVANCE_LOC: u8 = 0x40;
const DW_CFA_ADVANCE_LOC2: u8 = 0x03;
const DW_CFA_DEF_CFA_OFFSET: u8 = 0x0e;
const DW_CFA_DEF_CFA: u8 = 0x0c;
const DW_CFA_OFFSET: u8 = 0x80;
/// Relative to its own place, four bytes with a sign.
const POINTERS: u8 = 0x1b;
/// DWARF's numbers of `rsp` and of the return address.
const RSP: u8 = 7;
const RETURN_ADDRESS: u8 = 16;

/// How trampolines lie one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Trampolines {
    has_endbr: bool,
    stride_bytes: u16,
}

impl Trampolines {
    /// Python gets memory for them in arenas of this size.
    pub const ARENA_BYTES: u64 = 1 << 16;
    /// Bytes from the start of an arena that tell how it is filled.
    pub const LOOK_BYTES: usize = 512;

    /// An arena that begins with these bytes; `None` where they are something else.
    pub fn recognize(start: &[u8]) -> Option<Trampolines> {
        let has_endbr = start.starts_with(&ENDBR64);
        let whole = if has_endbr { [&ENDBR64[..], &CODE].concat() } else { CODE.to_vec() };
        if !start.starts_with(&whole) {
            return None;
        }
        let second = start[whole.len()..].windows(whole.len()).position(|bytes| bytes == whole)?;
        let stride_bytes = u16::try_from(whole.len() + second).ok()?;
        Some(Trampolines { has_endbr, stride_bytes })
    }

    /// A single trampoline of this length, where it has one that is known.
    pub fn single(size_bytes: u64) -> Option<Trampolines> {
        [false, true]
            .map(|has_endbr| Trampolines { has_endbr, stride_bytes: Self::code_bytes(has_endbr) })
            .into_iter()
            .find(|one| u64::from(one.stride_bytes) == size_bytes)
    }

    fn code_bytes(has_endbr: bool) -> u16 {
        (CODE.len() + if has_endbr { ENDBR64.len() } else { 0 }) as u16
    }

    /// The `.eh_frame` of a single one, as [`JitPiece`](crate::JitPiece) takes it.
    pub fn eh_frame(&self) -> Bytes {
        self.eh_frame_of(Self::code_bytes(self.has_endbr).into()).into()
    }

    /// The table of an arena, whose stated addresses count from zero.
    ///
    /// # Errors
    ///
    /// Never, unless tables change: an arena has few rows.
    pub fn table(&self) -> Result<UnwindTable, NoTable> {
        let mut sections = ModuleSections::none(Arch::X86_64);
        let start = Svma(eh_frame_offset(Self::ARENA_BYTES));
        let bytes = self.eh_frame_of(Self::ARENA_BYTES).into();
        sections.eh_frame = Some(Section { start, bytes });
        let code: Range<Svma> = Svma(0)..Svma(Self::ARENA_BYTES);
        UnwindTable::build(Arch::X86_64, &ModuleUnwindInfo::new(sections), &[code])
    }

    /// One common entry, and one entry for all trampolines in `code_bytes`.
    fn eh_frame_of(&self, code_bytes: u64) -> Vec<u8> {
        let mut common = vec![0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, RETURN_ADDRESS, 1, POINTERS];
        common.extend([DW_CFA_DEF_CFA, RSP, CFA_OUTSIDE, DW_CFA_OFFSET | RETURN_ADDRESS, 1]);
        let mut section = entry(common);
        let common_bytes = section.len() as u32;
        // The distance back to the common entry counts from here, as the start of the code does from behind it.
        let mut own = (common_bytes + 4).to_le_bytes().to_vec();
        let start_at = eh_frame_offset(code_bytes) as i32 + common_bytes as i32 + 8;
        own.extend((-start_at).to_le_bytes());
        own.extend((code_bytes as u32).to_le_bytes());
        // No augmentation data.
        own.push(0);
        own.extend(self.rows(code_bytes));
        section.extend(entry(own));
        section
    }

    fn rows(&self, code_bytes: u64) -> Vec<u8> {
        let first = if self.has_endbr { ENDBR64.len() } else { 0 };
        let code = u64::from(Self::code_bytes(self.has_endbr));
        let (mut rows, mut at) = (Vec::new(), 0);
        for start in (0..code_bytes).step_by(usize::from(self.stride_bytes.max(1))) {
            // Only whole ones are copied into an arena.
            if start + code > code_bytes {
                break;
            }
            let changes = [(first + PUSHED_AT, CFA_IN_CALL), (first + POPPED_AT, CFA_OUTSIDE)];
            for (offset, cfa) in changes {
                let place = start + offset as u64;
                rows.extend(advance((place - at) as u16));
                rows.extend([DW_CFA_DEF_CFA_OFFSET, cfa]);
                at = place;
            }
        }
        rows
    }
}

fn advance(bytes: u16) -> Vec<u8> {
    match u8::try_from(bytes) {
        Ok(bytes) if bytes < DW_CFA_ADVANCE_LOC => vec![DW_CFA_ADVANCE_LOC | bytes],
        _ => [&[DW_CFA_ADVANCE_LOC2][..], &bytes.to_le_bytes()].concat(),
    }
}

/// An entry with its length in front, filled up to a multiple of four.
fn entry(mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(4), 0);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Base;
    use crate::{AddressSpace, Bias, JitPiece, StackDump, StopReason, Unwinder, UserRegs};
    use whit_types::Avma;

    fn arena(has_endbr: bool, stride: usize) -> Vec<u8> {
        let one = if has_endbr { [&ENDBR64[..], &CODE].concat() } else { CODE.to_vec() };
        let mut arena = vec![0; Trampolines::ARENA_BYTES as usize];
        for start in (0..arena.len() - one.len()).step_by(stride) {
            arena[start..start + one.len()].copy_from_slice(&one);
        }
        arena
    }

    #[test]
    fn arenas_are_recognized_by_their_first_two_trampolines() {
        for (has_endbr, stride) in [(false, 11), (true, 15), (false, 16), (true, 16), (false, 272)]
        {
            let found =
                Trampolines::recognize(&arena(has_endbr, stride)[..Trampolines::LOOK_BYTES]);
            let expected = Trampolines { has_endbr, stride_bytes: stride as u16 };
            assert_eq!(found, Some(expected));
        }
        assert_eq!(Trampolines::recognize(&CODE), None);
        assert_eq!(Trampolines::recognize(&[]), None);
        let mut other = arena(false, 16);
        other[5] = 0xd0;
        assert_eq!(Trampolines::recognize(&other), None);
    }

    #[test]
    fn the_table_of_an_arena_knows_each_instruction() {
        for (has_endbr, stride) in [(false, 11u64), (true, 16), (false, 272)] {
            let trampolines = Trampolines { has_endbr, stride_bytes: stride as u16 };
            let table = trampolines.table().unwrap();
            let first = if has_endbr { 4 } else { 0 };
            let code = 11 + first;
            for svma in 0..Trampolines::ARENA_BYTES {
                let (start, offset) = (svma - svma % stride, svma % stride);
                let is_whole = start + code <= Trampolines::ARENA_BYTES;
                if offset >= code || !is_whole {
                    continue;
                }
                let in_call = (first + 4..first + 10).contains(&offset);
                let rule = table.find(Svma(svma)).unwrap();
                let expected = (Base::Sp, if in_call { 16 } else { 8 });
                assert_eq!((rule.base, rule.cfa), expected, "{svma:#x} of {trampolines:?}");
            }
        }
    }

    /// The interpreter, called by a trampoline, called by the interpreter, without frame pointers.
    #[test]
    fn a_stack_unwinds_through_a_trampoline_in_each_piece() {
        let eh_frame = Trampolines::single(11).unwrap().eh_frame();
        let piece =
            |start| JitPiece { start: Avma(start), size_bytes: 11, eh_frame: eh_frame.clone() };
        let module = ModuleUnwindInfo::jitted(Arch::X86_64, [piece(0x2000), piece(0x200b)]);
        let mut space = AddressSpace::new();
        space.map(Avma(0x2000)..Avma(0x3000), Bias(0), module);
        space.map(Avma(0x5000)..Avma(0x6000), Bias(0), ModuleUnwindInfo::none(Arch::X86_64));
        let unwind = |ip, words: &[u64]| {
            let regs = UserRegs::new(Arch::X86_64).with_ip(ip).with_sp(0x7000).with_fp(1);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let dump = StackDump { sp: Avma(0x7000), bytes: &bytes, rest: None };
            let mut frames = Vec::new();
            let stop = Unwinder::new().unwind(&space, &regs, dump, 9, &mut frames);
            (frames.iter().map(|frame| frame.address.0).collect::<Vec<_>>(), stop)
        };
        // In the call of the second piece: a word that `sub` made room for, the return address.
        assert_eq!(unwind(0x2011, &[7, 0x5100]).0, [0x2011, 0x5100]);
        assert_eq!(unwind(0x200b, &[0x5100]).0, [0x200b, 0x5100]);
        // Through the first into the second and on.
        assert_eq!(unwind(0x2000, &[0x2011, 7, 0x5100]).0, [0x2000, 0x2011, 0x5100]);
        // Behind the pieces nothing is said.
        assert_eq!(unwind(0x2016, &[7, 0x5100]), (vec![0x2016], StopReason::NoUnwindInfo));
    }

    #[test]
    fn a_later_piece_takes_the_place_of_those_that_it_overlaps() {
        let eh_frame = Trampolines::single(11).unwrap().eh_frame();
        let piece = |start, eh_frame: &Bytes| JitPiece {
            start: Avma(start),
            size_bytes: 11,
            eh_frame: eh_frame.clone(),
        };
        let nothing = Bytes::default();
        let rule_at = |pieces: &[JitPiece], avma| {
            let module = ModuleUnwindInfo::jitted(Arch::X86_64, pieces.to_vec());
            let mut context = gimli::UnwindContext::new();
            crate::general::find_rule::<crate::abi::X86_64>(&module, avma, &mut context)
        };
        let pieces =
            [piece(0x1000, &nothing), piece(0x1005, &eh_frame), piece(u64::MAX - 3, &nothing)];
        assert_eq!(rule_at(&pieces, 0x1002), crate::rule::Rule::Uncovered);
        assert!(matches!(rule_at(&pieces, 0x1005), crate::rule::Rule::Frame { cfa_offset: 8, .. }));
        let reversed = [piece(0x1005, &eh_frame), piece(0x1000, &nothing)];
        assert_eq!(rule_at(&reversed, 0x1005), crate::rule::Rule::Uncovered);
    }
}
