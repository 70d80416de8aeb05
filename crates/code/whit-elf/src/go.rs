//! Where Go's runtime changes stacks.
//!
//! Its scheduler, its allocator's slow paths, C code and clocks of the vdso run on the thread's own stack, not on
//! the goroutine's. The assembly routines that go there and back say nothing of it in their call frame information.
//! Those that return keep the frame pointer on the goroutine's stack all the while: `push %rbp; mov %rsp,%rbp` is
//! the first that they do (since Go 1.21), and `pop %rbp` the last.

use std::ops::Range;

use object::elf;
use whit_types::{Arch, Svma};
use whit_unwind::StackSwitches;

use crate::image::{ElfImage, TableKind};

/// They return (`asm_amd64.s`, `sys_linux_amd64.s`, `time_linux_amd64.s` of Go's runtime).
const RETURNING: [&[u8]; 6] = [
    b"runtime.systemstack",
    b"runtime.asmcgocall",
    b"runtime.asmcgocall_no_g",
    b"runtime.nanotime1",
    b"runtime.walltime",
    b"time.now",
];
/// They do not: the function that they call runs another goroutine in the end.
const LEAVING: [&[u8]; 3] = [b"runtime.mcall", b"runtime.morestack", b"gogo"];
/// How the linker marks routines with the assembler's calling convention.
const ABI0: &[u8] = b".abi0";
/// The longest of the routines has a tenth of this.
const ROUTINE_MAX_BYTES: u64 = 4096;
/// The section that each Go program has; the name has more in front where code is position-independent.
const GO_SECTION: &str = ".gopclntab";
/// `push %rbp; mov %rsp,%rbp`.
const PROLOGUE: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
/// `pop %rbp`, and the first bytes of `ret` and of `jmp *register`.
const POP: u8 = 0x5d;
const LEAVES: [u8; 2] = [0xc3, 0xff];

impl ElfImage {
    /// Code of Go's runtime that changes stacks; nothing for other binaries, and for those without symbols, which
    /// have no call frame information either.
    pub(crate) fn go_stack_switches(&self) -> StackSwitches {
        let mut switches = StackSwitches::default();
        let is_go = self.sections().iter().any(|section| section.name.ends_with(GO_SECTION));
        if !is_go || self.arch() != Some(Arch::X86_64) {
            return switches;
        }
        let Some(names) = self.string_table(TableKind::Symtab) else { return switches };
        self.for_each_symbol(TableKind::Symtab, |symbol| {
            if symbol.kind != elf::STT_FUNC || symbol.size > ROUTINE_MAX_BYTES {
                return;
            }
            let name = names.get(symbol.name as usize..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = name.strip_suffix(ABI0).unwrap_or(name);
            let (returns, leaves) = (RETURNING.contains(&name), LEAVING.contains(&name));
            if !returns && !leaves {
                return;
            }
            let start = Svma(symbol.value);
            let Some(offset) = self.file_offset_of(start) else { return };
            let end = offset.0.saturating_add(symbol.size);
            let Some(code) = self.bytes().slice(offset.0..end) else { return };
            match returns {
                true => switches.kept_frame.extend(kept_frames(start, &code)),
                false => switches.outermost.extend(after_switch(start, &code)),
            }
        });
        for ranges in [&mut switches.kept_frame, &mut switches.outermost] {
            ranges.sort_unstable_by_key(|range| range.start);
            // Aliases.
            ranges.dedup();
        }
        switches
    }
}

/// Where the frame pointer leads to the routine's frame record.
fn kept_frames(start: Svma, code: &[u8]) -> Vec<Range<Svma>> {
    let mut ranges = Vec::new();
    if !code.starts_with(&PROLOGUE) {
        return ranges;
    }
    let mut from = PROLOGUE.len();
    for (at, pair) in code.windows(2).enumerate() {
        if at >= from && pair[0] == POP && LEAVES.contains(&pair[1]) {
            ranges.push(part(start, from..at + 1));
            from = at + 2;
        }
    }
    ranges
}

/// The code behind the first load of the stack pointer from memory, `mov offset(%register),%rsp`.
fn after_switch(start: Svma, code: &[u8]) -> Option<Range<Svma>> {
    let loads = |bytes: &[u8]| {
        matches!(bytes[0], 0x48 | 0x49) && bytes[1] == 0x8b && bytes[2] & 0xf8 == 0x60
    };
    let at = code.windows(4).position(loads)?;
    Some(part(start, at + 4..code.len()))
}

fn part(start: Svma, range: Range<usize>) -> Range<Svma> {
    let at = |offset: usize| Svma(start.0.saturating_add(offset as u64));
    at(range.start)..at(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `runtime.systemstack` of Go 1.26, shortened.
    const SYSTEMSTACK: &[u8] = &[
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x7c, 0x24, 0x10, 0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7,
        0x48, 0x8b, 0x60, 0x38, 0x5d, 0xc3, 0x48, 0x89, 0xfa, 0x5d, 0xff, 0xe7, 0xff, 0xd0,
    ];

    #[test]
    fn the_frame_pointer_is_kept_up_to_each_pop() {
        let at = |from: u64, to: u64| Svma(0x1000 + from)..Svma(0x1000 + to);
        assert_eq!(kept_frames(Svma(0x1000), SYSTEMSTACK), [at(4, 20), at(21, 25)]);
        // For older versions, which did not push.
        assert!(kept_frames(Svma(0x1000), &SYSTEMSTACK[4..]).is_empty());
        assert!(kept_frames(Svma(0), &[]).is_empty());
    }

    #[test]
    fn a_routine_that_leaves_is_outermost_behind_its_load() {
        let range = after_switch(Svma(0x1000), SYSTEMSTACK).unwrap();
        assert_eq!(range, Svma(0x1000 + 13)..Svma(0x1000 + SYSTEMSTACK.len() as u64));
        assert_eq!(after_switch(Svma(0x1000), &SYSTEMSTACK[..12]), None);
    }
}
