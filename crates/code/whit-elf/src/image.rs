//! One opened ELF file: its kind, the places of its parts, its build id.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{
    FileHeader, ProgramHeader as _, Rela as _, SectionHeader as _, SymbolTable,
};
use whit_sys::process_files::{ForeignFile, open_foreign};
use whit_sys::{Errno, MappedFile};
use whit_types::{Arch, BuildId, FileOffset, InstructionSet, Svma};
use whit_unwind::Bytes;

use crate::error::ElfError;
use crate::segments::{Segment, base_of, svma_in, svma_of_mapping_in};

/// Most sections that are looked at; compilers that put each function into a section of its own
/// make object files, not linked ones, with more.
const MAX_SECTIONS: usize = 1 << 16;

/// Longest name of a debug companion in `.gnu_debuglink`.
const MAX_DEBUG_LINK_BYTES: usize = 4096;

/// Purpose of an ELF file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElfKind {
    /// `ET_EXEC`: loaded at its stated addresses.
    Executable,
    /// `ET_DYN`: shared object or position-independent executable.
    SharedObject,
    /// `ET_REL`, `ET_CORE` and others.
    Other,
}

/// One row of the section table, its name resolved.
#[derive(Clone, Debug)]
pub struct SectionHeader {
    /// Name; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// `SHF_ALLOC`: it is in memory at run time.
    pub allocated: bool,
    /// `SHF_COMPRESSED`.
    pub compressed: bool,
    /// It has bytes in the file.
    pub in_file: bool,
    /// Stated address; zero where it is not in memory.
    pub svma: u64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes, as they stand in the file.
    pub size: u64,
    /// Bytes of one entry, where it is a table.
    pub entry_size: u64,
}

/// Which of the two symbol tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// `.symtab`: all symbols, absent from stripped files.
    Symtab,
    /// `.dynsym`: the symbols that the dynamic linker needs.
    Dynsym,
}

/// A symbol as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct RawSymbol {
    /// Offset in the table's strings.
    pub name: u32,
    /// Stated address, of symbols that are defined here.
    pub value: u64,
    /// Bytes; zero where the file does not say.
    pub size: u64,
    /// Index of its section, or a reserved number (`SHN_*`).
    pub section: u16,
    /// `STT_*`.
    pub kind: elf::SymbolType,
    /// `STB_*`.
    pub bind: elf::SymbolBind,
    /// `STV_*`.
    pub visibility: elf::SymbolVisibility,
}

/// A relocation with addend.
#[derive(Clone, Copy, Debug)]
pub struct RawRela {
    /// Stated address that it changes.
    pub offset: u64,
    /// Index in `.dynsym`; zero for none.
    pub symbol: u32,
    /// `R_*` of the machine.
    pub kind: u32,
    /// Added to the symbol's address.
    pub addend: i64,
}

/// An opened ELF file. Holds its mapping; cheap to clone.
#[derive(Clone, Debug)]
pub struct ElfImage {
    path: Arc<Path>,
    /// `None` for bytes in memory.
    file: Option<MappedFile>,
    bytes: Bytes,
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    is_64: bool,
    kind: ElfKind,
    machine: elf::Machine,
    endian: Endianness,
    sections: Vec<SectionHeader>,
    segments: Vec<Segment>,
    build_id: Option<BuildId>,
    entry: Svma,
    /// Offsets in the file of the strings of `.symtab` and `.dynsym`.
    strings: [Option<(u64, u64)>; 2],
    eh_frame_hdr_segment: Option<(u64, u64, u64)>,
}

impl ElfImage {
    /// Maps and parses the file at `path`.
    pub fn open(path: &Path) -> Result<ElfImage, ElfError> {
        let file = open_foreign(path).map_err(|errno| match errno {
            // Opening a device or a pipe could block or never end.
            Errno::INVAL => ElfError::NotElf { path: Arc::from(path) },
            errno => ElfError::from_io(path, &errno.into()),
        })?;
        ElfImage::from_foreign(path, &file)
    }

    /// Maps and parses a file of somebody else; `path` serves messages only.
    pub fn from_foreign(path: &Path, file: &ForeignFile) -> Result<ElfImage, ElfError> {
        let mapped = file.map().map_err(|error| ElfError::from_io(path, &error))?;
        ElfImage::from_mapped(path, mapped)
    }

    /// Maps and parses an open file; `path` serves messages only.
    pub fn from_file(path: &Path, file: &File) -> Result<ElfImage, ElfError> {
        let mapped = MappedFile::map(file).map_err(|error| ElfError::from_io(path, &error))?;
        ElfImage::from_mapped(path, mapped)
    }

    /// Parses a mapped file; `path` serves messages only.
    pub fn from_mapped(path: &Path, file: MappedFile) -> Result<ElfImage, ElfError> {
        let image = ElfImage::from_bytes(path, Bytes::new(file.clone()))?;
        Ok(ElfImage { file: Some(file), ..image })
    }

    /// Whether the file was cut while it was read. Parts of it read as zeros then.
    pub fn is_cut(&self) -> bool {
        self.file.as_ref().is_some_and(MappedFile::is_cut)
    }

    /// Parses an image in memory; `path` serves messages only.
    pub fn from_bytes(path: &Path, bytes: Bytes) -> Result<ElfImage, ElfError> {
        let parsed = match object::FileKind::parse(&*bytes) {
            Ok(object::FileKind::Elf64) => parse::<FileHeader64<Endianness>>(&bytes),
            Ok(object::FileKind::Elf32) => parse::<FileHeader32<Endianness>>(&bytes),
            _ if bytes.starts_with(&elf::ELFMAG) => {
                return Err(ElfError::corrupt(path, "its header"));
            }
            _ => return Err(ElfError::NotElf { path: Arc::from(path) }),
        };
        let parts = parsed.map_err(|error| ElfError::corrupt(path, error))?;
        Ok(ElfImage { path: Arc::from(path), file: None, bytes, parts: Arc::new(parts) })
    }

    /// The path that it was opened at.
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Purpose of the file.
    pub fn kind(&self) -> ElfKind {
        self.parts.kind
    }

    /// Its architecture, if whit can unwind it.
    pub fn arch(&self) -> Option<Arch> {
        match self.parts.machine {
            elf::EM_X86_64 => Some(Arch::X86_64),
            elf::EM_AARCH64 => Some(Arch::Aarch64),
            _ => None,
        }
    }

    /// The encoding of its instructions, if whit can read it.
    pub fn instruction_set(&self) -> Option<InstructionSet> {
        match self.parts.machine {
            // In files of either class: x32 has 64-bit code.
            elf::EM_X86_64 => Some(InstructionSet::X86_64),
            elf::EM_386 => Some(InstructionSet::X86_32),
            elf::EM_AARCH64 => Some(InstructionSet::Aarch64),
            _ => None,
        }
    }

    /// The bytes that are loaded at `start`, as far as one segment and section have them. A file of debug information
    /// alone has none.
    pub fn code_at(&self, start: Svma, size_bytes: u64) -> Option<Bytes> {
        let is_absent = |section: &SectionHeader| {
            let distance = start.0.checked_sub(section.svma);
            section.allocated && !section.in_file && distance.is_some_and(|at| at < section.size)
        };
        if self.sections().iter().any(is_absent) {
            return None;
        }
        let segments = self.segments().iter();
        let (segment, at) = segments
            .filter_map(|segment| Some((segment, start.0.checked_sub(segment.svma.0)?)))
            .find(|(segment, at)| *at < segment.file_size_bytes)?;
        let size_bytes = size_bytes.min(segment.file_size_bytes - at);
        let offset = segment.offset.0.checked_add(at)?;
        self.bytes.slice(offset..offset.checked_add(size_bytes)?)
    }

    /// True for the 64-bit format.
    pub fn is_64(&self) -> bool {
        self.parts.is_64
    }

    /// Order of bytes.
    pub fn endian(&self) -> Endianness {
        self.parts.endian
    }

    /// The GNU build id.
    pub fn build_id(&self) -> Option<BuildId> {
        self.parts.build_id
    }

    /// Where a process begins; zero where it does not begin here.
    pub fn entry(&self) -> Svma {
        self.parts.entry
    }

    /// The loaded segments, in the file's order.
    pub fn segments(&self) -> &[Segment] {
        &self.parts.segments
    }

    /// The lowest stated address that is loaded.
    pub fn base_svma(&self) -> Svma {
        base_of(&self.parts.segments)
    }

    /// The stated address of the byte at `offset`, if it is loaded. Where two segments share a byte
    /// (their ends share a page), the executable one counts.
    pub fn svma_of(&self, offset: FileOffset) -> Option<Svma> {
        svma_in(&self.parts.segments, offset)
    }

    /// The offset of the byte that is loaded at `svma`.
    pub fn file_offset_of(&self, svma: Svma) -> Option<FileOffset> {
        self.parts.segments.iter().find_map(|segment| {
            let at = svma.0.checked_sub(segment.svma.0)?;
            (at < segment.file_size_bytes).then(|| FileOffset(segment.offset.0.wrapping_add(at)))
        })
    }

    /// The stated address of the start of a mapping of `size_bytes` bytes at `offset`, as a
    /// recording's mmap record gives it: the segment that the mapping shows most of, executable ones
    /// first. A mapping starts at a page boundary, so it may begin before its segment does.
    pub fn svma_of_mapping(&self, offset: FileOffset, size_bytes: u64) -> Option<Svma> {
        svma_of_mapping_in(&self.parts.segments, offset, size_bytes)
    }

    /// Stated addresses of code less its offsets in the file, if that is the same for all code.
    pub fn code_bias(&self) -> Option<u64> {
        let code = self.parts.segments.iter().filter(|s| s.executable && s.file_size_bytes > 0);
        let mut biases = code.map(|segment| segment.svma.0.wrapping_sub(segment.offset.0));
        let first = biases.next()?;
        biases.all(|bias| bias == first).then_some(first)
    }

    /// All sections, in the file's order.
    pub fn sections(&self) -> &[SectionHeader] {
        &self.parts.sections
    }

    /// The first section of that name.
    pub fn section(&self, name: &str) -> Option<&SectionHeader> {
        self.parts.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section as they stand in the file; `None` where they do not stand there.
    pub fn section_bytes(&self, section: &SectionHeader) -> Option<Bytes> {
        if !section.in_file {
            return None;
        }
        self.bytes.slice(section.offset..section.offset.checked_add(section.size)?)
    }

    /// Stated address and bytes of the segment that holds `.eh_frame_hdr`, for files without
    /// section headers.
    pub fn eh_frame_hdr_segment(&self) -> Option<(Svma, Bytes)> {
        let (svma, offset, size) = self.parts.eh_frame_hdr_segment?;
        Some((Svma(svma), self.bytes.slice(offset..offset.checked_add(size)?)?))
    }

    /// The name of the debug companion that the file asks for.
    pub fn debug_link(&self) -> Option<String> {
        let bytes = self.section_bytes(self.section(".gnu_debuglink")?)?;
        let name = bytes.split(|byte| *byte == 0).next()?;
        if name.is_empty() || name.len() > MAX_DEBUG_LINK_BYTES || name.contains(&b'/') {
            return None;
        }
        String::from_utf8(name.to_vec()).ok()
    }

    /// The checksum of that companion, which stands behind its name at a multiple of four bytes.
    pub fn debug_link_checksum(&self) -> Option<u32> {
        let bytes = self.section_bytes(self.section(".gnu_debuglink")?)?;
        let name_bytes = bytes.iter().position(|byte| *byte == 0)? + 1;
        let checksum = *bytes.get(name_bytes.next_multiple_of(4)..)?.first_chunk()?;
        Some(match self.endian() {
            Endianness::Little => u32::from_le_bytes(checksum),
            Endianness::Big => u32::from_be_bytes(checksum),
        })
    }

    /// Where the names of a symbol table stand in the file.
    pub fn string_table(&self, kind: TableKind) -> Option<Bytes> {
        let (offset, size) = self.parts.strings[kind as usize]?;
        self.bytes.slice(offset..offset.checked_add(size)?)
    }

    /// Calls `each` for every symbol of the table; for none where the table is missing or corrupt.
    pub fn for_each_symbol(&self, kind: TableKind, each: impl FnMut(RawSymbol)) {
        if self.parts.is_64 {
            symbols::<FileHeader64<Endianness>>(&self.bytes, kind, each);
        } else {
            symbols::<FileHeader32<Endianness>>(&self.bytes, kind, each);
        }
    }

    /// The symbol of `.dynsym` with that index.
    pub fn dynamic_symbol(&self, index: u32) -> Option<RawSymbol> {
        if self.parts.is_64 {
            symbol::<FileHeader64<Endianness>>(&self.bytes, index)
        } else {
            symbol::<FileHeader32<Endianness>>(&self.bytes, index)
        }
    }

    /// Calls `each` for every relocation with addend that the loader carries out.
    pub fn for_each_dynamic_rela(&self, each: impl FnMut(RawRela)) {
        if self.parts.is_64 {
            relas::<FileHeader64<Endianness>>(&self.bytes, each);
        } else {
            relas::<FileHeader32<Endianness>>(&self.bytes, each);
        }
    }
}

fn parse<Elf: FileHeader<Endian = Endianness>>(data: &[u8]) -> object::read::Result<Parts> {
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let table = header.sections(endian, data).unwrap_or_default();
    let mut build_id = None;
    let mut sections = Vec::new();
    for section in table.iter().take(MAX_SECTIONS) {
        let name = table.section_name(endian, section).unwrap_or_default();
        let flags = section.sh_flags(endian);
        sections.push(SectionHeader {
            name: String::from_utf8_lossy(name).into_owned(),
            allocated: flags.contains(elf::SHF_ALLOC),
            compressed: flags.contains(elf::SHF_COMPRESSED),
            in_file: section.file_range(endian).is_some(),
            svma: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            entry_size: section.sh_entsize(endian).into(),
        });
        if build_id.is_none()
            && let Ok(Some(notes)) = section.notes(endian, data)
        {
            build_id = find_build_id::<Elf>(notes, endian);
        }
    }
    let mut segments = Vec::new();
    let mut eh_frame_hdr_segment = None;
    for segment in header.program_headers(endian, data)? {
        let (svma, offset) = (segment.p_vaddr(endian).into(), segment.p_offset(endian).into());
        let file_size_bytes = segment.p_filesz(endian).into();
        match segment.p_type(endian) {
            elf::PT_LOAD => segments.push(Segment {
                svma: Svma(svma),
                offset: FileOffset(offset),
                file_size_bytes,
                memory_size_bytes: segment.p_memsz(endian).into(),
                executable: segment.p_flags(endian).contains(elf::PF_X),
            }),
            elf::PT_GNU_EH_FRAME => eh_frame_hdr_segment = Some((svma, offset, file_size_bytes)),
            elf::PT_NOTE if build_id.is_none() => {
                if let Ok(Some(notes)) = segment.notes(endian, data) {
                    build_id = find_build_id::<Elf>(notes, endian);
                }
            }
            _ => {}
        }
    }
    Ok(Parts {
        is_64: header.is_class_64(),
        kind: match header.e_type(endian) {
            elf::ET_EXEC => ElfKind::Executable,
            elf::ET_DYN => ElfKind::SharedObject,
            _ => ElfKind::Other,
        },
        machine: header.e_machine(endian),
        endian,
        entry: Svma(header.e_entry(endian).into()),
        strings: [TableKind::Symtab, TableKind::Dynsym].map(|kind| {
            let table = symbol_table::<Elf>(data, kind)?;
            let header = sections.get(table.string_section().0)?;
            header.in_file.then_some((header.offset, header.size))
        }),
        sections,
        segments,
        build_id,
        eh_frame_hdr_segment,
    })
}

fn find_build_id<Elf: FileHeader<Endian = Endianness>>(
    mut notes: object::read::elf::NoteIterator<'_, Elf>,
    endian: Endianness,
) -> Option<BuildId> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
            return BuildId::new(note.desc());
        }
    }
    None
}

fn symbol_table<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    kind: TableKind,
) -> Option<SymbolTable<'_, Elf>> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let section_type = match kind {
        TableKind::Symtab => elf::SHT_SYMTAB,
        TableKind::Dynsym => elf::SHT_DYNSYM,
    };
    let table = header.sections(endian, data).ok()?.symbols(endian, data, section_type).ok()?;
    (!table.is_empty()).then_some(table)
}

fn raw_symbol<S: object::read::elf::Sym<Endian = Endianness>>(
    symbol: &S,
    endian: Endianness,
) -> RawSymbol {
    RawSymbol {
        name: symbol.st_name(endian),
        value: symbol.st_value(endian).into(),
        size: symbol.st_size(endian).into(),
        section: symbol.st_shndx(endian).0,
        kind: symbol.st_type(),
        bind: symbol.st_bind(),
        visibility: symbol.st_visibility(),
    }
}

fn symbols<Elf: FileHeader<Endian = Endianness>>(
    data: &[u8],
    kind: TableKind,
    mut each: impl FnMut(RawSymbol),
) {
    let Some(table) = symbol_table::<Elf>(data, kind) else { return };
    let Ok(endian) = Elf::parse(data).and_then(|header| header.endian()) else { return };
    table.iter().for_each(|symbol| each(raw_symbol(symbol, endian)));
}

fn symbol<Elf: FileHeader<Endian = Endianness>>(data: &[u8], index: u32) -> Option<RawSymbol> {
    let table = symbol_table::<Elf>(data, TableKind::Dynsym)?;
    let endian = Elf::parse(data).ok()?.endian().ok()?;
    let symbol = table.symbol(object::SymbolIndex(index as usize)).ok()?;
    Some(raw_symbol(symbol, endian))
}

fn relas<Elf: FileHeader<Endian = Endianness>>(data: &[u8], mut each: impl FnMut(RawRela)) {
    let Ok(header) = Elf::parse(data) else { return };
    let Ok(endian) = header.endian() else { return };
    let Ok(sections) = header.sections(endian, data) else { return };
    for section in sections.iter() {
        if !section.sh_flags(endian).contains(elf::SHF_ALLOC) {
            continue;
        }
        let Ok(Some((relas, _))) = section.rela(endian, data) else { continue };
        for rela in relas {
            each(RawRela {
                offset: rela.r_offset(endian).into(),
                symbol: rela.r_sym(endian, false),
                kind: rela.r_type(endian, false).0,
                addend: rela.r_addend(endian).into(),
            });
        }
    }
}
