//! Where Go's runtime changes stacks, and where its scheduler can be watched.
//!
//! Its scheduler, its allocator's slow paths, C code and clocks of the vdso run on the thread's own stack, not on
//! the goroutine's. The assembly routines that go there and back say nothing of it in their call frame information.
//! Those that return keep the frame pointer on the goroutine's stack all the while: `push %rbp; mov %rsp,%rbp` is
//! the first that they do (since Go 1.21), and `pop %rbp` the last.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf;
use whit_types::{Arch, FileOffset, Svma};
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
const PROLOGUE: [u8; GO_PROLOGUE_BYTES as usize] = [0x55, 0x48, 0x89, 0xe5];
/// Its length.
pub const GO_PROLOGUE_BYTES: u64 = 4;
/// `pop %rbp`, and the first bytes of `ret` and of `jmp *register`.
const POP: u8 = 0x5d;
const LEAVES: [u8; 2] = [0xc3, 0xff];

/// Functions of Go's scheduler: a goroutine waits, its wait ends, a thread runs it.
const SCHEDULER: [&str; 3] = ["runtime.gopark", "runtime.ready", "runtime.execute"];
/// The network's poller has found a file ready.
const POLLER: &[u8] = b"runtime.netpollready";
/// It gives a new goroutine.
const CREATOR: &[u8] = b"runtime.newproc1";
/// Names of the reasons for which goroutines wait: an array of strings.
const REASONS: &[u8] = b"runtime.waitReasonStrings";
/// Address and size.
const STRING_BYTES: usize = 16;
/// Go 1.26 has 47 reasons.
const REASONS_MAX: usize = 256;
/// Their names are shorter.
const REASON_BYTES_MAX: u64 = 256;
/// The check for room on the stack is in front.
const PROLOGUE_WITHIN: usize = 64;

/// Where Go's scheduler can be watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoScheduler {
    /// The [prologues](ElfImage::go_prologue) of `runtime.gopark`, `runtime.ready` and `runtime.execute`. Their frame is
    /// there [`GO_PROLOGUE_BYTES`] later.
    pub functions: [FileOffset; 3],
    /// The same of `runtime.netpollready`, where the program has it.
    pub poller: Option<FileOffset>,
    /// Address and size of `runtime.newproc1`, where the program has it.
    pub creator: Option<(Svma, u64)>,
    /// The names of reasons, by number.
    pub reasons: Vec<String>,
}

/// Why it cannot.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoGoScheduler {
    /// Another compiler made the program.
    #[error("it is no Go program")]
    NotGo,
    /// Registers of arguments are those of x86-64.
    #[error("goroutines are recorded on x86-64 alone")]
    OtherArch,
    /// Stripped, or of another runtime.
    #[error("it has no symbol {0} (a program that was built with -ldflags=-s has none)")]
    NoSymbol(String),
    /// Without frame pointers at the beginning of functions.
    #[error("{0} does not begin as those of Go 1.21 and later")]
    OtherCode(&'static str),
}

impl ElfImage {
    /// Where Go's scheduler can be watched.
    ///
    /// # Errors
    /// It cannot.
    pub fn go_scheduler(&self) -> Result<GoScheduler, NoGoScheduler> {
        if !self.is_go() {
            return Err(NoGoScheduler::NotGo);
        }
        if self.arch() != Some(Arch::X86_64) {
            return Err(NoGoScheduler::OtherArch);
        }
        let names = self.string_table(TableKind::Symtab).unwrap_or_default();
        let mut functions = [None; 3];
        let (mut reasons, mut poller, mut creator) = (None, None, None);
        self.for_each_symbol(TableKind::Symtab, |symbol| {
            let name = names.get(symbol.name as usize..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if name == REASONS {
                reasons = Some((Svma(symbol.value), symbol.size));
            } else if name == CREATOR {
                creator = Some((Svma(symbol.value), symbol.size));
            } else if name == POLLER {
                poller = self.go_prologue(Svma(symbol.value), symbol.size);
            } else if let Some(at) = SCHEDULER.iter().position(|it| it.as_bytes() == name) {
                functions[at] = Some(Svma(symbol.value));
            }
        });
        let mut offsets = [FileOffset(0); 3];
        for ((offset, start), name) in offsets.iter_mut().zip(functions).zip(SCHEDULER) {
            let start = start.ok_or_else(|| NoGoScheduler::NoSymbol(name.to_owned()))?;
            let begin = self.go_prologue(start, u64::MAX);
            *offset = begin.ok_or(NoGoScheduler::OtherCode(name))?;
        }
        let reasons = reasons.and_then(|(start, size)| self.go_strings(start, size));
        let reasons = reasons.ok_or_else(|| {
            NoGoScheduler::NoSymbol(String::from_utf8_lossy(REASONS).into_owned())
        })?;
        Ok(GoScheduler { functions: offsets, poller, creator, reasons })
    }

    /// The instruction at which a Go function of some size has room on the stack, and puts its frame record there: a stack
    /// that has to grow begins the function again before. Arguments are in the registers. `None` without a frame.
    pub fn go_prologue(&self, start: Svma, size: u64) -> Option<FileOffset> {
        let code = self.code_at(start, size.min(PROLOGUE_WITHIN as u64))?;
        let begin = code.windows(PROLOGUE.len()).position(|bytes| bytes == PROLOGUE)?;
        self.file_offset_of(Svma(start.0.saturating_add(begin as u64)))
    }

    /// An array of strings.
    fn go_strings(&self, start: Svma, size: u64) -> Option<Vec<String>> {
        let array = self.code_at(start, size.min((REASONS_MAX * STRING_BYTES) as u64))?;
        // The loader writes the addresses of position-independent programs.
        let mut moved = BTreeMap::new();
        self.for_each_dynamic_rela(|rela| {
            if (start.0..start.0.saturating_add(size)).contains(&rela.offset) {
                moved.insert(rela.offset, rela.addend as u64);
            }
        });
        let strings = array.chunks_exact(STRING_BYTES).enumerate();
        let text = |(index, string): (usize, &[u8])| {
            let word = |at: usize| Some(u64::from_le_bytes(*string.get(at..)?.first_chunk()?));
            let place = start.0.saturating_add((index * STRING_BYTES) as u64);
            let (address, size) = (moved.get(&place).copied().or_else(|| word(0))?, word(8)?);
            if size == 0 {
                return Some(String::new());
            }
            if size > REASON_BYTES_MAX {
                return None;
            }
            let bytes = self.code_at(Svma(address), size)?;
            (bytes.len() as u64 == size).then(|| String::from_utf8_lossy(&bytes).into_owned())
        };
        strings.map(text).collect()
    }

    /// Whether Go's compiler made the program.
    pub fn is_go(&self) -> bool {
        self.sections().iter().any(|section| section.name.ends_with(GO_SECTION))
    }

    /// Code of Go's runtime that changes stacks; nothing for other binaries, and for those without symbols, which
    /// have no call frame information either.
    pub(crate) fn go_stack_switches(&self) -> StackSwitches {
        let mut switches = StackSwitches::default();
        if !self.is_go() || self.arch() != Some(Arch::X86_64) {
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
