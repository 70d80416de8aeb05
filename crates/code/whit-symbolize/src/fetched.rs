//! Companions that debuginfod's clients fetched: whole files, and files put together from single sections.
//!
//! A section comes without the file around it. Together with the section table of the stripped binary it makes an ELF
//! file again: stripping takes sections from the end of that table, so the numbers by which symbols name theirs stay.
//! The file is written without a name and mapped, so that the kernel may take its memory back.

use std::fs::File;
use std::io::{self, Seek, Write};

use object::Endianness;
use object::elf;
use whit_companion::{Cache, DEBUG_SECTIONS, SUPPLEMENT_SECTIONS, SYMBOL_SECTIONS};
use whit_elf::{ElfImage, SectionHeader, TableKind};
use whit_sys::process_files::open_regular;
use whit_types::BuildId;

use crate::companion::{DebugDirs, check};

/// Sections begin at multiples of this.
const ALIGN_BYTES: u64 = 16;
/// Notes are laid out by the alignment that their section states.
const NOTE_ALIGN_BYTES: u64 = 4;
/// The name of the note that has the build id.
const NOTE: &str = ".note.gnu.build-id";
/// One symbol in so many may lie elsewhere than it says: labels of linkers do.
const STRAY_SYMBOLS: u64 = 100;

impl DebugDirs {
    /// The companions of a binary that were fetched, best first.
    pub(crate) fn fetched_companions(&self, binary: &ElfImage) -> Option<ElfImage> {
        let (cache, id) = (self.fetched.as_ref()?, binary.build_id()?);
        let whole = ElfImage::open(&cache.whole(id)).ok();
        if let Some(whole) = whole.and_then(|image| check(image, Some(id)).ok()) {
            return Some(whole);
        }
        let names = SYMBOL_SECTIONS.iter().chain(&DEBUG_SECTIONS);
        let image = put_together(cache, binary, id, binary.sections(), names)?;
        fits(&image, binary).then_some(image)
    }

    /// The file with a build id that `image` shares with others.
    pub(crate) fn fetched_supplement(&self, image: &ElfImage, id: BuildId) -> Option<ElfImage> {
        let cache = self.fetched.as_ref()?;
        let whole = ElfImage::open(&cache.whole(id)).ok();
        let whole = whole.and_then(|image| check(image, Some(id)).ok());
        whole.or_else(|| put_together(cache, image, id, &[], SUPPLEMENT_SECTIONS.iter()))
    }
}

/// Symbols of another build lie outside of the sections that they name, and the binary's own dynamic symbols are not
/// among them.
fn fits(image: &ElfImage, binary: &ElfImage) -> bool {
    let (mut functions, mut strays) = (0u64, 0u64);
    let mut values = rustc_hash::FxHashSet::default();
    image.for_each_symbol(TableKind::Symtab, |symbol| {
        let is_function = symbol.kind == elf::STT_FUNC || symbol.kind == elf::STT_GNU_IFUNC;
        if !is_function || symbol.section == 0 || symbol.section >= elf::SHN_LORESERVE {
            return;
        }
        functions += 1;
        values.insert(symbol.value);
        let section = binary.sections().get(usize::from(symbol.section));
        let lies_in = |section: &SectionHeader| {
            let at = symbol.value.checked_sub(section.svma);
            section.allocated && at.is_some_and(|at| at <= section.size)
        };
        strays += u64::from(!section.is_some_and(lies_in));
    });
    if functions == 0 {
        return true;
    }
    let (mut dynamic, mut unknown) = (0u64, 0u64);
    binary.for_each_symbol(TableKind::Dynsym, |symbol| {
        if symbol.kind == elf::STT_FUNC && symbol.section != 0 {
            dynamic += 1;
            unknown += u64::from(!values.contains(&symbol.value));
        }
    });
    strays <= functions / STRAY_SYMBOLS && unknown <= dynamic / STRAY_SYMBOLS
}

struct Part {
    name: &'static str,
    file: File,
    is_compressed: bool,
}

fn part(cache: &Cache, id: BuildId, name: &'static str, order: Endianness) -> Option<Part> {
    let mut file = open_regular(&cache.section(id, name)).ok()?;
    let size = file.metadata().ok()?.len();
    let mut head = [0; 4];
    let has_head = io::Read::read_exact(&mut file, &mut head).is_ok();
    file.rewind().ok()?;
    let word = match order {
        Endianness::Little => u32::from_le_bytes(head),
        Endianness::Big => u32::from_be_bytes(head),
    };
    // Servers give a section as it stands in the file, and not its flags. No unit has a length of one or two, no
    // text begins with such bytes, and the abbreviations have no tag of zero.
    let is_compressed = has_head && name.starts_with(".debug_") && matches!(word, 1 | 2);
    (size > 0).then_some(Part { name, file, is_compressed })
}

fn put_together<'a>(
    cache: &Cache,
    binary: &ElfImage,
    id: BuildId,
    frame: &[SectionHeader],
    names: impl Iterator<Item = &'a &'static str>,
) -> Option<ElfImage> {
    let parts: Vec<_> = names.filter_map(|name| part(cache, id, name, binary.endian())).collect();
    let has = |name: &str| parts.iter().any(|part| part.name == name);
    if !(has(".symtab") && has(".strtab") || has(".debug_info") && has(".debug_abbrev")) {
        return None;
    }
    let mut new = tempfile::tempfile_in(cache.root()).or_else(|_| tempfile::tempfile()).ok()?;
    let mut file = ElfFile { binary, rows: Vec::new(), names: vec![0], at: 0 };
    file.write(&mut new, id, frame, parts).ok()?;
    let image = ElfImage::from_file(&cache.folder(id).join("sections"), &new).ok()?;
    check(image, Some(id)).ok()
}

/// A row of the section table.
#[derive(Default)]
struct Row {
    name: u32,
    kind: u32,
    flags: u64,
    svma: u64,
    offset: u64,
    size: u64,
    link: u32,
    entry_size: u64,
}

/// Writes ELF files of either class and order.
struct ElfFile<'a> {
    binary: &'a ElfImage,
    rows: Vec<Row>,
    names: Vec<u8>,
    at: u64,
}

impl ElfFile<'_> {
    fn header_bytes(&self) -> usize {
        if self.binary.is_64() { 64 } else { 52 }
    }

    fn write(
        &mut self,
        out: &mut File,
        id: BuildId,
        frame: &[SectionHeader],
        parts: Vec<Part>,
    ) -> io::Result<()> {
        out.write_all(&vec![0; self.header_bytes()])?;
        self.at = self.header_bytes() as u64;
        self.rows.push(Row::default());
        // The first row of a table is the empty one.
        for section in frame.iter().skip(1) {
            let row = self.frame_row(section);
            self.rows.push(row);
        }
        let note = self.note(id);
        let row = Row { kind: elf::SHT_NOTE.0, ..self.row(NOTE) };
        self.append(out, row, &mut &note[..])?;
        let strings = self.rows.len() as u32 + 1;
        for mut part in parts {
            let mut row = self.row(part.name);
            (row.kind, row.link, row.entry_size) = match (part.name, self.binary.is_64()) {
                (".symtab", true) => (elf::SHT_SYMTAB.0, strings, 24),
                (".symtab", false) => (elf::SHT_SYMTAB.0, strings, 16),
                (".strtab", _) => (elf::SHT_STRTAB.0, 0, 0),
                _ => (elf::SHT_PROGBITS.0, 0, 0),
            };
            // Not SHF_ALLOC: nothing of it is in memory.
            row.flags = if part.is_compressed { elf::SHF_COMPRESSED.0 } else { 0 };
            self.append(out, row, &mut part.file)?;
        }
        let row = Row { kind: elf::SHT_STRTAB.0, ..self.row(".shstrtab") };
        let names = self.names.clone();
        self.append(out, row, &mut &names[..])?;
        self.align(out)?;
        let table = self.at;
        let rows = std::mem::take(&mut self.rows);
        let mut bytes = Vec::new();
        rows.iter().for_each(|row| self.encode_row(row, &mut bytes));
        out.write_all(&bytes)?;
        out.rewind()?;
        out.write_all(&self.header(table, rows.len() as u16))
    }

    /// Sections of the binary: where they are in memory, not their bytes.
    fn frame_row(&mut self, section: &SectionHeader) -> Row {
        if !section.allocated {
            return Row::default();
        }
        Row {
            kind: elf::SHT_NOBITS.0,
            flags: elf::SHF_ALLOC.0,
            svma: section.svma,
            size: section.size,
            ..self.row(&section.name)
        }
    }

    fn row(&mut self, name: &str) -> Row {
        let at = self.names.len() as u32;
        self.names.extend(name.bytes().filter(|byte| *byte != 0));
        self.names.push(0);
        Row { name: at, ..Row::default() }
    }

    fn append(&mut self, out: &mut File, mut row: Row, from: &mut dyn io::Read) -> io::Result<()> {
        self.align(out)?;
        row.offset = self.at;
        row.size = io::copy(from, out)?;
        self.at += row.size;
        self.rows.push(row);
        Ok(())
    }

    fn align(&mut self, out: &mut File) -> io::Result<()> {
        let end = self.at.next_multiple_of(ALIGN_BYTES);
        out.write_all(&[0; ALIGN_BYTES as usize][..(end - self.at) as usize])?;
        self.at = end;
        Ok(())
    }

    fn word(&self, value: u64, size: usize, out: &mut Vec<u8>) {
        match self.binary.endian() {
            Endianness::Little => out.extend(&value.to_le_bytes()[..size]),
            Endianness::Big => out.extend(&value.to_be_bytes()[8 - size..]),
        }
    }

    fn note(&self, id: BuildId) -> Vec<u8> {
        let mut note = Vec::new();
        let size = id.as_bytes().len() as u64;
        [4, size, u64::from(elf::NT_GNU_BUILD_ID.0)]
            .iter()
            .for_each(|it| self.word(*it, 4, &mut note));
        note.extend(b"GNU\0");
        note.extend(id.as_bytes());
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    fn encode_row(&self, row: &Row, out: &mut Vec<u8>) {
        let long = if self.binary.is_64() { 8 } else { 4 };
        let fields = [
            (u64::from(row.name), 4),
            (u64::from(row.kind), 4),
            (row.flags, long),
            (row.svma, long),
            (row.offset, long),
            (row.size, long),
            (u64::from(row.link), 4),
            (0, 4),
            (if row.kind == elf::SHT_NOTE.0 { NOTE_ALIGN_BYTES } else { ALIGN_BYTES }, long),
            (row.entry_size, long),
        ];
        fields.iter().for_each(|(value, size)| self.word(*value, *size, out));
    }

    /// Identification, type, machine and version are the binary's.
    fn header(&self, table: u64, rows: u16) -> Vec<u8> {
        let is_64 = self.binary.is_64();
        let long = if is_64 { 8 } else { 4 };
        let mut header = self.binary.bytes()[..24].to_vec();
        let fields = [
            (0, long),
            (0, long),
            (table, long),
            (0, 4),
            (self.header_bytes() as u64, 2),
            (0, 2),
            (0, 2),
            (if is_64 { 64 } else { 40 }, 2),
            (u64::from(rows), 2),
            (u64::from(rows) - 1, 2),
        ];
        fields.iter().for_each(|(value, size)| self.word(*value, *size, &mut header));
        header
    }
}
