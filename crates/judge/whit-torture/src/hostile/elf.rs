//! A writer of ELF files with any sections, and one of code.

/// Stated address and size of the code.
pub(crate) const CODE_START: u64 = 0x40_1000;
pub(crate) const CODE_BYTES: u64 = 0x1000;

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const ALLOCATED: u64 = 2;
const EXECUTABLE: u64 = 4;
const COMPRESSED: u64 = 0x800;
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;

/// One section of a generated file, with its place in memory and its contents.
pub(crate) struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    bytes: Vec<u8>,
    link: u32,
    entry_bytes: u64,
}

impl Section {
    pub(crate) fn debug(name: &'static str, bytes: Vec<u8>) -> Section {
        let (kind, flags, address, link, entry_bytes) = (PROGBITS, 0, 0, 0, 0);
        Section { name, kind, flags, address, bytes, link, entry_bytes }
    }

    /// Zeros, packed.
    pub(crate) fn bomb(name: &'static str, unpacked_bytes: u64, stated_bytes: u64) -> Section {
        const ZSTD: u32 = 2;
        let zeros = std::io::repeat(0);
        let packed = zstd::encode_all(std::io::Read::take(zeros, unpacked_bytes), 1);
        let mut bytes = [ZSTD.to_le_bytes(), [0; 4]].concat();
        bytes.extend(stated_bytes.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(packed.unwrap_or_default());
        Section { flags: COMPRESSED, ..Section::debug(name, bytes) }
    }

    /// A note with a build id.
    pub(crate) fn build_id(id: &[u8; 20]) -> Section {
        let sizes = [4u32, 20, 3].map(u32::to_le_bytes).concat();
        let bytes = [&sizes[..], b"GNU\0", id].concat();
        Section { kind: NOTE, ..Section::loaded(".note.gnu.build-id", bytes) }
    }

    /// In memory behind the code.
    pub(crate) fn loaded(name: &'static str, bytes: Vec<u8>) -> Section {
        let address = CODE_START + CODE_BYTES;
        Section { flags: ALLOCATED, address, ..Section::debug(name, bytes) }
    }
}

/// Symbols `(name's offset, address, size)`, and their names.
pub(crate) fn symbols(list: &[(u32, u64, u64)], names: Vec<u8>) -> [Section; 2] {
    const GLOBAL_FUNCTION: u8 = 1 << 4 | 2;
    let mut bytes = vec![0; 24];
    for (name, address, size) in list {
        bytes.extend(name.to_le_bytes());
        bytes.extend([GLOBAL_FUNCTION, 0, 1, 0]);
        bytes.extend(address.to_le_bytes());
        bytes.extend(size.to_le_bytes());
    }
    let table = Section { kind: SYMTAB, entry_bytes: 24, ..Section::debug(".symtab", bytes) };
    [table, Section { kind: STRTAB, ..Section::debug(".strtab", names) }]
}

/// One function with all code.
pub(crate) fn one_symbol() -> [Section; 2] {
    symbols(&[(1, CODE_START, CODE_BYTES)], b"\0whole\0".to_vec())
}

/// A file with code and these sections.
pub(crate) fn file(sections: impl IntoIterator<Item = Section>) -> Vec<u8> {
    let code = Section {
        flags: ALLOCATED | EXECUTABLE,
        address: CODE_START,
        ..Section::debug(".text", vec![0x90; CODE_BYTES as usize])
    };
    let mut sections: Vec<Section> = std::iter::once(code).chain(sections).collect();
    let strings = sections.iter().position(|section| section.name == ".strtab");
    for section in sections.iter_mut().filter(|section| section.kind == SYMTAB) {
        section.link = strings.map_or(0, |at| at as u32 + 1);
    }
    sections.push(Section { kind: STRTAB, ..Section::debug(".shstrtab", Vec::new()) });
    let mut names = vec![0];
    let name_offsets: Vec<u32> = sections
        .iter()
        .map(|section| {
            let at = names.len() as u32;
            names.extend(section.name.as_bytes());
            names.push(0);
            at
        })
        .collect();
    if let Some(last) = sections.last_mut() {
        last.bytes = names;
    }
    let mut bytes = vec![0; HEADER_BYTES + PROGRAM_HEADER_BYTES];
    let mut table = vec![0; 64];
    for (section, name) in sections.iter().zip(name_offsets) {
        // Stated addresses and offsets of loaded parts agree within their page.
        let is_code = section.flags & EXECUTABLE != 0;
        bytes.resize(bytes.len().next_multiple_of(if is_code { 0x1000 } else { 16 }), 0);
        let place = (bytes.len() as u64, section.bytes.len() as u64);
        bytes.extend(&section.bytes);
        table.extend(section_header(section, name, place));
    }
    let table_offset = bytes.len() as u64;
    bytes.extend(table);
    bytes[..HEADER_BYTES].copy_from_slice(&header(table_offset, sections.len() as u16 + 1));
    bytes[HEADER_BYTES..][..PROGRAM_HEADER_BYTES].copy_from_slice(&program_header(table_offset));
    bytes
}

fn section_header(section: &Section, name: u32, (offset, size): (u64, u64)) -> Vec<u8> {
    let mut header = [name.to_le_bytes(), section.kind.to_le_bytes()].concat();
    for number in [section.flags, section.address, offset, size] {
        header.extend(number.to_le_bytes());
    }
    header.extend(section.link.to_le_bytes());
    header.extend(1u32.to_le_bytes());
    header.extend(1u64.to_le_bytes());
    header.extend(section.entry_bytes.to_le_bytes());
    header
}

fn header(table_offset: u64, sections: u16) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC for x86-64.
    header.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for number in [CODE_START, HEADER_BYTES as u64, table_offset] {
        header.extend(number.to_le_bytes());
    }
    header.extend([0; 4]);
    for number in [HEADER_BYTES as u16, PROGRAM_HEADER_BYTES as u16, 1, 64, sections, sections - 1]
    {
        header.extend(number.to_le_bytes());
    }
    header
}

/// All of the file behind the first page, readable and executable.
fn program_header(file_bytes: u64) -> Vec<u8> {
    let mut header = [1u32.to_le_bytes(), 5u32.to_le_bytes()].concat();
    let size = file_bytes.saturating_sub(CODE_BYTES);
    for number in [CODE_BYTES, CODE_START, CODE_START, size, size, 0x1000] {
        header.extend(number.to_le_bytes());
    }
    header
}
