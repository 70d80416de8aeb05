//! Looks for the arenas of Python's trampolines in the memory of a process.

use std::ops::Range;

use whit_sys::process_files::ProcessFile;
use whit_unwind::Trampolines;

/// Arenas begin at pages.
const PAGE_BYTES: u64 = 4096;
/// Places of one mapping that are looked at: 64 MiB of arenas, or 4 MiB of other memory.
const LOOKS_MAX: usize = 1024;
/// Memory that is read at once, since each reading is a request to another process.
const BLOCK_BYTES: usize = 64 << 10;

/// The arenas in a range of memory, by their first addresses. `memory` is `/proc/PID/mem`.
pub(super) fn find(memory: &ProcessFile, range: Range<u64>) -> Vec<(u64, Trampolines)> {
    let end = range.end;
    let mut block = vec![0; BLOCK_BYTES];
    let mut known = 0..0;
    find_by(range, |at, bytes| {
        let after = at + bytes.len() as u64;
        if !known.contains(&at) || after > known.end {
            let most = end.saturating_sub(at).min(BLOCK_BYTES as u64) as usize;
            let size = memory.read_at(&mut block[..most], at).unwrap_or(0);
            known = at..at + size as u64;
        }
        let is_known = after <= known.end;
        if is_known {
            bytes.copy_from_slice(&block[(at - known.start) as usize..][..bytes.len()]);
        }
        is_known
    })
}

/// The same, with a function that reads memory at an address.
fn find_by(
    range: Range<u64>,
    mut read: impl FnMut(u64, &mut [u8]) -> bool,
) -> Vec<(u64, Trampolines)> {
    let mut found = Vec::new();
    let mut at = range.start;
    for _ in 0..LOOKS_MAX {
        let Some(end) = at.checked_add(Trampolines::ARENA_BYTES).filter(|end| *end <= range.end)
        else {
            break;
        };
        let mut bytes = [0; Trampolines::LOOK_BYTES];
        let known = read(at, &mut bytes).then(|| Trampolines::recognize(&bytes)).flatten();
        found.extend(known.map(|of| (at, of)));
        // The kernel makes one mapping of arenas that touch, and of other memory in front of them.
        at = if known.is_some() { end } else { at + PAGE_BYTES };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 11] = [0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3];

    #[test]
    fn arenas_are_found_behind_other_memory_and_behind_each_other() {
        let arena = Trampolines::ARENA_BYTES as usize;
        let mut memory = vec![0u8; 0x2000 + 2 * arena + 0x1000];
        for (start, stride) in [(0x2000, 11), (0x2000 + arena, 16)] {
            for at in (start..start + arena - ONE.len()).step_by(stride) {
                memory[at..at + ONE.len()].copy_from_slice(&ONE);
            }
        }
        let base = 0x7000_0000;
        let read = |at: u64, bytes: &mut [u8]| {
            let at = (at - base) as usize;
            memory.get(at..at + bytes.len()).is_some_and(|from| {
                bytes.copy_from_slice(from);
                true
            })
        };
        let found = find_by(base..base + memory.len() as u64, read);
        let starts: Vec<_> = found.iter().map(|(start, _)| start - base).collect();
        assert_eq!(starts, [0x2000, 0x2000 + arena as u64]);
        assert_ne!(found[0].1, found[1].1);
        assert!(find_by(base..base + 0x3000, read).is_empty());
        assert!(find_by(u64::MAX - 5..u64::MAX, |_, _| true).is_empty());
    }

    #[test]
    fn memory_is_read_in_blocks() {
        let arena = Trampolines::ARENA_BYTES as usize;
        let mut memory = vec![0u8; 0x3000 + 3 * arena];
        for start in [0x3000, 0x3000 + 2 * arena] {
            for at in (start..start + arena - ONE.len()).step_by(ONE.len()) {
                memory[at..at + ONE.len()].copy_from_slice(&ONE);
            }
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &memory).unwrap();
        let opened = ProcessFile::open(file.path(), 1).unwrap();
        let starts = |end: u64| {
            let found = find(&opened, 0..end);
            found.into_iter().map(|(start, _)| start as usize).collect::<Vec<_>>()
        };
        assert_eq!(starts(memory.len() as u64), [0x3000, 0x3000 + 2 * arena]);
        // Memory that is gone holds none.
        assert_eq!(starts(1 << 40), [0x3000, 0x3000 + 2 * arena]);
        assert!(starts(0x3000).is_empty());
    }

    #[test]
    fn memory_that_cannot_be_read_holds_none() {
        assert!(find_by(0..1 << 40, |_, _| false).is_empty());
    }
}
