//! Pieces of debug information, version 4.

use super::elf::{CODE_BYTES, CODE_START, Section};

const UNIT_TAG: u64 = 0x11;
const INLINED_TAG: u64 = 0x1d;
const FUNCTION_TAG: u64 = 0x2e;
const NAME: u64 = 0x03;
const LINES: u64 = 0x10;
const LOW: u64 = 0x11;
const HIGH: u64 = 0x12;
const DIRECTORY: u64 = 0x1b;
const ORIGIN: u64 = 0x31;
const SPECIFICATION: u64 = 0x47;
const RANGES: u64 = 0x55;
const ADDRESS: u64 = 0x01;
const DATA8: u64 = 0x07;
const STRING: u64 = 0x08;
const REF4: u64 = 0x13;
const OFFSET: u64 = 0x17;

/// Entries, by the number of their abbreviation.
pub(crate) const UNIT: u8 = 1;
pub(crate) const FUNCTION: u8 = 2;
pub(crate) const INLINED: u8 = 3;
pub(crate) const ABSTRACT: u8 = 4;
pub(crate) const BARE: u8 = 5;
pub(crate) const RANGED: u8 = 6;
pub(crate) const SPECIFIED: u8 = 7;
pub(crate) const UNIT_WITH_LINES: u8 = 8;

pub(crate) fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        bytes.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}

pub(crate) fn abbreviation(
    code: u64,
    tag: u64,
    children: bool,
    attributes: &[(u64, u64)],
) -> Vec<u8> {
    let mut bytes = [uleb(code), uleb(tag), vec![u8::from(children)]].concat();
    for (name, form) in attributes {
        bytes.extend([uleb(*name), uleb(*form)].concat());
    }
    bytes.extend([0, 0]);
    bytes
}

/// The list of the entries above, and `more` before its end.
pub(crate) fn abbreviations(more: &[u8]) -> Section {
    let all = [
        (UNIT, UNIT_TAG, true, &[(NAME, STRING), (LOW, ADDRESS), (HIGH, DATA8)][..]),
        (FUNCTION, FUNCTION_TAG, true, &[(NAME, STRING), (LOW, ADDRESS), (HIGH, DATA8)]),
        (INLINED, INLINED_TAG, true, &[(ORIGIN, REF4), (LOW, ADDRESS), (HIGH, DATA8)]),
        (ABSTRACT, FUNCTION_TAG, false, &[(ORIGIN, REF4)]),
        (BARE, INLINED_TAG, false, &[]),
        (RANGED, INLINED_TAG, false, &[(RANGES, OFFSET)]),
        (SPECIFIED, FUNCTION_TAG, false, &[(SPECIFICATION, REF4)]),
        (
            UNIT_WITH_LINES,
            UNIT_TAG,
            true,
            &[(DIRECTORY, STRING), (LOW, ADDRESS), (HIGH, DATA8), (LINES, OFFSET)],
        ),
    ];
    let own = all.iter().flat_map(|(code, tag, children, attributes)| {
        abbreviation((*code).into(), *tag, *children, attributes)
    });
    let bytes = own.chain(more.iter().copied()).chain([0]).collect();
    Section::debug(".debug_abbrev", bytes)
}

/// Low address and size of all code.
pub(crate) fn whole_range() -> Vec<u8> {
    [CODE_START.to_le_bytes(), CODE_BYTES.to_le_bytes()].concat()
}

/// A unit or function with all code.
pub(crate) fn named(entry: u8, name: &str) -> Vec<u8> {
    [&[entry], name.as_bytes(), &[0], &whole_range()[..]].concat()
}

/// A reference to an entry of the same unit, behind the entry's number.
pub(crate) fn refers(entry: u8, to: usize) -> Vec<u8> {
    [&[entry], &(to as u32).to_le_bytes()[..]].concat()
}

pub(crate) fn inlined(origin: usize) -> Vec<u8> {
    [refers(INLINED, origin), whole_range()].concat()
}

/// A unit with entries; the first one is its own.
pub(crate) fn unit(entries: &[u8]) -> Vec<u8> {
    let rest = [&[4, 0, 0, 0, 0, 0, 8][..], entries].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

/// Where in a unit the entry behind its own stands.
pub(crate) fn first_entry() -> usize {
    11 + named(UNIT, "u").len()
}

/// Debug information in one unit whose entries stand below its own.
pub(crate) fn one_unit(entries: &[u8]) -> [Section; 2] {
    let bytes = unit(&[&named(UNIT, "u")[..], entries, &[0]].concat());
    [abbreviations(&[]), Section::debug(".debug_info", bytes)]
}

/// A program of lines: one directory, these files, these operations behind the start of the code.
pub(crate) fn lines(files: &[u8], operations: &[u8]) -> Vec<u8> {
    // Least instruction, operations, is a statement, line base and range, opcodes with their numbers of operands.
    let mut front = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, b'd', 0, 0];
    front.extend(files);
    front.push(0);
    let mut rest = vec![4, 0];
    rest.extend((front.len() as u32).to_le_bytes());
    rest.extend(front);
    rest.extend([0, 9, 2]);
    rest.extend(CODE_START.to_le_bytes());
    rest.extend(operations);
    rest.extend([0, 1, 1]);
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}
