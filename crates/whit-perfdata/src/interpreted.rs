//! Functions of interpreters that call chains have frames of (`WHIT_INTERPRETED`).
//!
//! A frame of such a function is an address with a mark ([`is_interpreted`]), which no code of a program has. It
//! belongs to a function of the frame's process. The address of the instruction is in its lower bits, so that the
//! function has a range of addresses as compiled code has, and lines by their distance from its start.

use crate::bytes::Cursor;
use whit_types::Pid;

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;
/// Bytes of an entry, its size among them, without names and lines.
const ENTRY_BYTES: u32 = 40;
/// Functions that a recording has at most.
pub const INTERPRETED_MAX: usize = 1 << 18;
/// The bits above the mark, and the mark.
const MARK_BITS: u32 = 61;
const MARK: u64 = 2;

/// Whether an address is that of a frame of an interpreted function.
pub fn is_interpreted(address: u64) -> bool {
    address >> MARK_BITS == MARK
}

/// A function of an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterpretedFunction {
    /// The process whose frames it names.
    pub pid: Pid,
    /// The first address of its frames.
    pub start: u64,
    /// Bytes of its range.
    pub size_bytes: u64,
    /// Its name, with that of the language in front.
    pub name: Vec<u8>,
    /// Its source file, as the interpreter names it.
    pub file: Vec<u8>,
    /// Lines: each holds from a distance from the start on, up to the next. Ascending.
    pub lines: Vec<(u32, u32)>,
}

impl InterpretedFunction {
    /// The line at an address within the function.
    pub fn line(&self, address: u64) -> Option<u32> {
        let offset = address.checked_sub(self.start)?;
        let behind = self.lines.partition_point(|(from, _)| u64::from(*from) <= offset);
        self.lines.get(behind.checked_sub(1)?).map(|(_, line)| *line)
    }
}

/// The section. Each function has an entry: size of the entry without names and lines (4), process (4), first address
/// (8), bytes (8), sizes of name and file (4 each), number of lines (4), zero (4). Name and file follow, and each line
/// with its distance from the start (4) and its number (4). Later versions append fields to the entry.
pub(crate) fn encode(functions: &[InterpretedFunction]) -> Vec<u8> {
    let mut out = VERSION.to_le_bytes().to_vec();
    out.extend((functions.len() as u32).to_le_bytes());
    for function in functions {
        out.extend(ENTRY_BYTES.to_le_bytes());
        out.extend(function.pid.0.to_le_bytes());
        out.extend(function.start.to_le_bytes());
        out.extend(function.size_bytes.to_le_bytes());
        let counts = [function.name.len(), function.file.len(), function.lines.len(), 0];
        counts.iter().for_each(|count| out.extend((*count as u32).to_le_bytes()));
        out.extend(&function.name);
        out.extend(&function.file);
        for (offset, line) in &function.lines {
            out.extend(offset.to_le_bytes());
            out.extend(line.to_le_bytes());
        }
    }
    out
}

/// Decodes the section, as far as it is whole. Nothing for another version.
pub(crate) fn decode(bytes: &[u8]) -> Vec<InterpretedFunction> {
    let mut c = Cursor::new(bytes);
    let (Some(VERSION), Some(count)) = (c.u32(), c.u32()) else { return Vec::new() };
    let count = (count as usize).min(INTERPRETED_MAX);
    std::iter::from_fn(|| decode_one(&mut c)).take(count).collect()
}

fn decode_one(c: &mut Cursor<'_>) -> Option<InterpretedFunction> {
    let size = c.u32()? as usize;
    let mut entry = Cursor::new(c.take(size.checked_sub(4)?)?);
    let pid = Pid(entry.i32()?);
    let (start, size_bytes) = (entry.u64()?, entry.u64()?);
    let (name, file, lines) = (entry.u32()?, entry.u32()?, entry.u32()?);
    let name = c.take(name as usize)?.to_vec();
    let file = c.take(file as usize)?.to_vec();
    let lines = c.take((lines as usize).checked_mul(8)?)?;
    let mut lines = Cursor::new(lines);
    let lines = std::iter::from_fn(|| Some((lines.u32()?, lines.u32()?))).collect();
    Some(InterpretedFunction { pid, start, size_bytes, name, file, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn function()(
            pid: i32,
            range in any::<[u64; 2]>(),
            name in prop::collection::vec(any::<u8>(), 0..20),
            file in prop::collection::vec(any::<u8>(), 0..20),
            lines in prop::collection::vec(any::<(u32, u32)>(), 0..5),
        ) -> InterpretedFunction {
            let [start, size_bytes] = range;
            InterpretedFunction { pid: Pid(pid), start, size_bytes, name, file, lines }
        }
    }

    #[test]
    fn lines_hold_up_to_the_next() {
        let function = InterpretedFunction {
            pid: Pid(1),
            start: 1000,
            size_bytes: 100,
            name: Vec::new(),
            file: Vec::new(),
            lines: vec![(10, 5), (20, 7)],
        };
        let lines = [999, 1009, 1010, 1019, 1020, 1099].map(|address| function.line(address));
        assert_eq!(lines, [None, None, Some(5), Some(5), Some(7), Some(7)]);
    }

    #[test]
    fn frames_are_apart_from_code_and_markers() {
        assert!(is_interpreted(1 << 62) && is_interpreted((1 << 62) | ((1 << 61) - 1)));
        let others = [0, 0x7fff_ffff_ffff, 0xffff_8000_0000_0000, u64::MAX - 511, 1 << 63, 3 << 61];
        assert!(others.iter().all(|address| !is_interpreted(*address)));
    }

    proptest! {
        #[test]
        fn round_trip_and_whole_entries_of_a_cut_one(
            functions in prop::collection::vec(function(), 0..6),
            cut in 0usize..60,
        ) {
            let bytes = encode(&functions);
            prop_assert_eq!(decode(&bytes), functions.clone());
            let whole = decode(&bytes[..bytes.len().saturating_sub(cut)]);
            prop_assert!(functions.starts_with(&whole));
        }

        #[test]
        fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            decode(&bytes);
        }
    }
}
