//! Shapes of hostile files. Each takes the size that the file should have.

use super::dwarf::{
    ABSTRACT, BARE, FUNCTION, RANGED, SPECIFIED, UNIT, UNIT_WITH_LINES, abbreviation,
    abbreviations, first_entry, inlined, lines, named, one_unit, refers, uleb, unit, whole_range,
};
use super::elf::{CODE_BYTES, CODE_START, Section, file, one_symbol, symbols};

type Random = fastrand::Rng;
type Shape = fn(usize, &mut Random) -> Vec<u8>;

pub(super) const ALL: [(&str, Shape); 19] = [
    ("nested inlined functions", nested),
    ("inlined functions side by side", wide),
    ("entries of one byte", bare),
    ("origins in a circle", circle),
    ("a chain of origins", chain),
    ("many units", many_units),
    ("one table of abbreviations for many units", shared_abbreviations),
    ("abbreviations with many attributes", many_attributes),
    ("many rows of lines", rows),
    ("many files below a long directory", files),
    ("one list of ranges for many entries", ranges),
    ("functions over one another", overlapping_functions),
    ("packed zeros", bomb),
    ("symbols with one long name", long_names),
    ("symbols over one another", overlapping_symbols),
    ("a long template name", template),
    ("frames over one another", frames),
    ("long frame programs", frame_program),
    ("expressions that loop", expression),
];

fn with_debug(sections: impl IntoIterator<Item = Section>) -> Vec<u8> {
    file(sections.into_iter().chain(one_symbol()))
}

fn nested(size: usize, random: &mut Random) -> Vec<u8> {
    let origin = first_entry();
    let level = inlined(origin);
    let levels = size / (level.len() + 1);
    let ends = if random.bool() { levels + 1 } else { 0 };
    let entries =
        [refers(ABSTRACT, origin), named(FUNCTION, "outer"), level.repeat(levels), vec![0; ends]];
    with_debug(one_unit(&entries.concat()))
}

fn wide(size: usize, _: &mut Random) -> Vec<u8> {
    let origin = first_entry();
    let one = [inlined(origin), vec![0]].concat();
    let many = one.repeat(size / one.len());
    with_debug(one_unit(&[refers(ABSTRACT, origin), named(FUNCTION, "f"), many, vec![0]].concat()))
}

fn bare(size: usize, _: &mut Random) -> Vec<u8> {
    with_debug(one_unit(&[named(FUNCTION, "f"), vec![BARE; size], vec![0]].concat()))
}

fn circle(size: usize, random: &mut Random) -> Vec<u8> {
    let (start, count) = (first_entry(), size / 5);
    let to = |_| start + 5 * random.usize(0..count.max(1));
    let circles = (0..count)
        .map(to)
        .flat_map(|to| refers(if to % 2 == 0 { ABSTRACT } else { SPECIFIED }, to))
        .collect();
    let function = [named(FUNCTION, "f"), inlined(start), vec![0, 0]].concat();
    with_debug(one_unit(&[circles, function].concat()))
}

fn chain(size: usize, _: &mut Random) -> Vec<u8> {
    let start = first_entry();
    let links = (1..=size / 5).flat_map(|link| refers(ABSTRACT, start + 5 * link)).collect();
    let function = [named(FUNCTION, "f"), inlined(start), vec![0, 0]].concat();
    with_debug(one_unit(&[links, function].concat()))
}

fn many_units(size: usize, random: &mut Random) -> Vec<u8> {
    let function = if random.bool() { named(FUNCTION, "f") } else { Vec::new() };
    let one = unit(&[named(UNIT, "u"), function, vec![0, 0]].concat());
    let info = one.repeat(size / one.len());
    with_debug([abbreviations(&[]), Section::debug(".debug_info", info)])
}

fn shared_abbreviations(size: usize, random: &mut Random) -> Vec<u8> {
    let more: Vec<u8> = (100..100 + size as u64 / 16)
        .flat_map(|code| abbreviation(code, 0x34, false, &[(3, 8); 3]))
        .collect();
    let one = unit(&[named(UNIT, "u"), vec![0]].concat());
    let units = one.repeat(random.usize(1..1 + size / 2 / one.len().max(1)));
    with_debug([abbreviations(&more), Section::debug(".debug_info", units)])
}

fn many_attributes(size: usize, _: &mut Random) -> Vec<u8> {
    // Flags that take no bytes in an entry.
    let attributes: Vec<(u64, u64)> =
        (0..size as u64 / 3).map(|n| (0x2000 + n % 64, 0x19)).collect();
    let more = abbreviation(100, 0x34, false, &attributes);
    let entries = [named(UNIT, "u"), named(FUNCTION, "f"), vec![100; 50], vec![0, 0]].concat();
    let units = unit(&entries).repeat(20);
    with_debug([abbreviations(&more), Section::debug(".debug_info", units)])
}

/// A unit in `directory` with its program of lines.
fn with_lines(directory: &str, program: Vec<u8>) -> Vec<u8> {
    let own =
        [&[UNIT_WITH_LINES], directory.as_bytes(), &[0], &whole_range()[..], &[0; 4]].concat();
    let info = unit(&[own, named(FUNCTION, "f"), vec![0, 0]].concat());
    with_debug([
        abbreviations(&[]),
        Section::debug(".debug_info", info),
        Section::debug(".debug_line", program),
    ])
}

fn rows(size: usize, random: &mut Random) -> Vec<u8> {
    // One opcode moves the address and the line; the other the line alone.
    let opcode = if random.bool() { 34 } else { 20 };
    with_lines("/", lines(b"a\0\x01\0\0", &vec![opcode; size]))
}

fn files(size: usize, _: &mut Random) -> Vec<u8> {
    let list = b"a\0\x01\0\0".repeat(size / 10);
    with_lines(&"d".repeat(size / 2), lines(&list, &[34]))
}

fn ranges(size: usize, _: &mut Random) -> Vec<u8> {
    let one = [CODE_START.to_le_bytes(), (CODE_START + CODE_BYTES).to_le_bytes()].concat();
    let list = [one.repeat(size / 2 / one.len()), vec![0; 16]].concat();
    let entries = [&[RANGED][..], &[0; 4]].concat().repeat(size / 10);
    let entries = [named(FUNCTION, "f"), entries, vec![0]].concat();
    with_debug(one_unit(&entries).into_iter().chain([Section::debug(".debug_ranges", list)]))
}

fn overlapping_functions(size: usize, _: &mut Random) -> Vec<u8> {
    let one = [named(FUNCTION, "f"), vec![0]].concat();
    with_debug(one_unit(&one.repeat(size / one.len())))
}

fn bomb(size: usize, random: &mut Random) -> Vec<u8> {
    const NAMES: [&str; 7] = [
        ".debug_info",
        ".debug_abbrev",
        ".debug_line",
        ".debug_str",
        ".debug_aranges",
        ".debug_ranges",
        ".debug_frame",
    ];
    // A header may state another size than its data have.
    let unpacked = (size as u64) << random.u32(0..5);
    let stated = if random.bool() { unpacked } else { random.u64(..) };
    with_debug(NAMES.map(|name| Section::bomb(name, unpacked, stated)))
}

fn long_names(size: usize, random: &mut Random) -> Vec<u8> {
    let count = size / 2 / 24;
    let mut names = vec![0];
    names.resize(1 + size / 2, b'f');
    let step = if random.bool() { 0 } else { 16 };
    let at = |n: usize| CODE_START + (n as u64 * step) % CODE_BYTES;
    let list: Vec<_> = (0..count).map(|n| (1 + n as u32 % 16, at(n), 16)).collect();
    file(symbols(&list, names))
}

fn overlapping_symbols(size: usize, random: &mut Random) -> Vec<u8> {
    let one = |_| (1, CODE_START + random.u64(0..CODE_BYTES), random.u64(0..CODE_BYTES));
    let list: Vec<_> = (0..size / 24).map(one).collect();
    file(symbols(&list, b"\0f\0".to_vec()))
}

fn template(size: usize, random: &mut Random) -> Vec<u8> {
    const PARTS: [(&str, &str, &str); 4] =
        [("1AI", "i", "E"), ("P", "i", ""), ("N1A1BI", "i", "EE"), ("PF", "v", "vE")];
    let (open, inner, close) = PARTS[random.usize(0..PARTS.len())];
    let depth = size / (open.len() + close.len());
    let name = format!("\0_Z1fI{}{inner}{}Evv\0", open.repeat(depth), close.repeat(depth));
    file(symbols(&[(1, CODE_START, CODE_BYTES)], name.into_bytes()))
}

/// A record of `.eh_frame`, its body filled up.
fn frame_record(mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(8), 0);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A file with these descriptions of frames: start, size and operations.
fn eh_frame(descriptions: impl Iterator<Item = (u64, u64, Vec<u8>)>) -> Vec<u8> {
    // Addresses as 64 bits; the stack pointer and 8, the return address there.
    let mut bytes = frame_record(
        [&[0, 0, 0, 0, 1][..], b"zR\0", &[1, 0x78, 16, 1, 4, 12, 7, 8, 0x90, 1]].concat(),
    );
    for (start, size, operations) in descriptions {
        let back = bytes.len() as u32 + 4;
        let head = [&back.to_le_bytes()[..], &start.to_le_bytes(), &size.to_le_bytes(), &[0]];
        bytes.extend(frame_record([&head.concat()[..], &operations].concat()));
    }
    bytes.extend([0; 4]);
    file(one_symbol().into_iter().chain([Section::loaded(".eh_frame", bytes)]))
}

fn frames(size: usize, random: &mut Random) -> Vec<u8> {
    let spread = random.u64(0..CODE_BYTES);
    let one = |n: usize| (CODE_START - n as u64 % (spread + 1), CODE_BYTES, vec![0x41, 14, 16]);
    eh_frame((0..size / 36).map(one))
}

fn frame_program(size: usize, random: &mut Random) -> Vec<u8> {
    const REMEMBER: &[u8] = &[10];
    const ADVANCE: &[u8] = &[0x41, 14, 16, 0x41, 14, 8];
    const RESTORE: &[u8] = &[10, 14, 16, 11, 0x41];
    let part = [REMEMBER, ADVANCE, RESTORE][random.usize(0..3)];
    let program = part.repeat(size / part.len());
    let functions = if random.bool() { 1 } else { 64 };
    let program = program[..program.len() / functions].to_vec();
    let each = CODE_BYTES / functions as u64;
    eh_frame((0..functions as u64).map(|n| (CODE_START + n * each, each, program.clone())))
}

fn expression(size: usize, random: &mut Random) -> Vec<u8> {
    // Back to itself; and values upon values.
    let code = match random.bool() {
        true => vec![0x2f, 0xfd, 0xff],
        false => [vec![0x31], vec![0x12; size]].concat(),
    };
    let long = uleb(code.len() as u64);
    let program = [&[0x0f], &long[..], &code, &[0x10, 0x10], &long, &code].concat();
    eh_frame(std::iter::once((CODE_START, CODE_BYTES, program)))
}
