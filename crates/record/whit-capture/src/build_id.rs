//! Build ids of files.

use std::cell::Cell;
use std::io::{Read, Seek};
use std::ops::Range;

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader32, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::read::{FileKind, ReadCache, ReadRef};
use whit_types::BuildId;

/// Limit of the bytes that are read to find a build id, and kept meanwhile: tables of sections, and notes.
const READ_MAX_BYTES: u64 = 8 << 20;

/// The GNU build id of an ELF file, if it has one; `None` for any other file. Reads only the parts that are
/// needed.
pub fn of(file: impl Read + Seek) -> Option<Option<BuildId>> {
    within(file, READ_MAX_BYTES)
}

fn within(mut file: impl Read + Seek, bytes: u64) -> Option<Option<BuildId>> {
    let file: &mut dyn ReadSeek = &mut file;
    let (cache, left_bytes) = (ReadCache::new(file), Cell::new(bytes));
    let data = Bounded { data: &cache, left_bytes: &left_bytes };
    // A whole `object::File` would read the tables of symbols, which may be most of the file.
    let found = match FileKind::parse(data).ok()? {
        FileKind::Elf32 => in_notes::<FileHeader32<Endianness>>(data),
        FileKind::Elf64 => in_notes::<FileHeader64<Endianness>>(data),
        _ => return None,
    };
    Some(found.ok().flatten())
}

/// Searches the notes of sections, or of segments where there are no sections.
fn in_notes<'a, E: FileHeader<Endian = Endianness>>(
    data: Bounded<'a, '_>,
) -> object::Result<Option<BuildId>> {
    let header = E::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    for section in sections.iter() {
        if let Some(id) = in_note(endian, section.notes(endian, data)?)? {
            return Ok(Some(id));
        }
    }
    if sections.is_empty() {
        for segment in header.program_headers(endian, data)? {
            if let Some(id) = in_note(endian, segment.notes(endian, data)?)? {
                return Ok(Some(id));
            }
        }
    }
    Ok(None)
}

fn in_note<E: FileHeader<Endian = Endianness>>(
    endian: Endianness,
    notes: Option<NoteIterator<'_, E>>,
) -> object::Result<Option<BuildId>> {
    let Some(mut notes) = notes else { return Ok(None) };
    while let Some(note) = notes.next()? {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return Ok(BuildId::new(note.desc()));
        }
    }
    Ok(None)
}

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// A file may say that its tables are as large as a sparse file can be.
#[derive(Clone, Copy)]
struct Bounded<'a, 'f> {
    data: &'a ReadCache<&'f mut dyn ReadSeek>,
    left_bytes: &'a Cell<u64>,
}

impl<'a> ReadRef<'a> for Bounded<'a, '_> {
    fn len(self) -> Result<u64, ()> {
        self.data.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.left_bytes.set(self.left_bytes.get().checked_sub(size).ok_or(())?);
        self.data.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.data.read_bytes_at_until(range, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn only_elf_files_have_one() {
        let own = of(&File::open(std::env::current_exe().unwrap()).unwrap());
        assert!(own.is_some());
        assert_eq!(of(&File::open("/proc/self/status").unwrap()), None);
    }

    /// Tests are linked with tables of symbols, which are larger.
    #[test]
    fn tables_of_symbols_are_not_read() {
        const SMALL_BYTES: u64 = 128 << 10;
        let exe = std::env::current_exe().unwrap();
        let image = whit_elf::ElfImage::open(&exe).unwrap();
        let found = within(&File::open(&exe).unwrap(), SMALL_BYTES).unwrap();
        assert!(found.is_some() && found == image.build_id(), "{found:?}");
        let mut symbols = 0;
        image.for_each_symbol(whit_elf::TableKind::Symtab, |_| symbols += 1);
        assert!(symbols * size_of::<object::elf::Sym64<Endianness>>() as u64 > SMALL_BYTES);
    }

    #[test]
    fn no_more_is_read_than_a_build_id_takes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100]).unwrap();
        let file: &mut dyn ReadSeek = &mut file;
        let (cache, left_bytes) = (ReadCache::new(file), Cell::new(10));
        let data = Bounded { data: &cache, left_bytes: &left_bytes };
        assert_eq!(data.read_bytes_at(0, 11), Err(()));
        assert_eq!(data.read_bytes_at(50, 8), Ok(&[7; 8][..]));
        assert_eq!(data.read_bytes_at(0, 3), Err(()));
        assert_eq!(data.read_bytes_at(0, 2), Ok(&[7; 2][..]));
    }
}
