//! Names that a recording carries for its own frames (`WHIT_NAMES`): how the section is packed, and how a finished
//! recording gets it.
//!
//! With `--embed-symbols` the recorder writes an empty section. Its contents come behind the end of the file, and then the place and size
//! of the section in the table of features: sixteen bytes. A writer that is stopped before that leaves the recording
//! as it was.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use crate::bytes::Cursor;
use crate::feature::Feature;
use crate::header::{FILE_HEADER_SIZE_BYTES, FileHeader, Section};

const VERSION: u32 = 1;
/// The contents are one zstd frame.
const ZSTD: u32 = 1;
const LEVEL: i32 = 6;
/// Most bytes of a packed section. Readers take all features together up to 128 MiB.
pub const MAX_PACKED_BYTES: usize = 96 << 20;
/// Most bytes that a section unpacks to.
pub const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// Why a section cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamesDefect {
    /// It was written by a later version.
    #[error("a later version of whit has packed them")]
    Version,
    /// It was damaged, or cut.
    #[error("they are damaged")]
    Damaged,
}

/// Packs names.
///
/// # Errors
/// There are too many.
pub fn pack(names: &[u8]) -> io::Result<Vec<u8>> {
    let mut out: Vec<u8> = [VERSION, ZSTD].iter().flat_map(|word| word.to_le_bytes()).collect();
    out.extend((names.len() as u64).to_le_bytes());
    out.extend(zstd::bulk::compress(names, LEVEL)?);
    if out.len() > MAX_PACKED_BYTES || names.len() as u64 > MAX_UNPACKED_BYTES {
        let what = format!(
            "the names have {} bytes, {} when packed, which are more than a recording holds: record with \
             --embed-symbols=hot, which leaves code out",
            names.len(),
            out.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    Ok(out)
}

/// Unpacks a section that is not empty.
///
/// # Errors
/// It is damaged or too new.
pub fn unpack(section: &[u8]) -> Result<Vec<u8>, NamesDefect> {
    let mut cursor = Cursor::new(section);
    let (version, form, size) = cursor_head(&mut cursor).ok_or(NamesDefect::Damaged)?;
    if (version, form) != (VERSION, ZSTD) {
        return Err(NamesDefect::Version);
    }
    if size > MAX_UNPACKED_BYTES {
        return Err(NamesDefect::Damaged);
    }
    let mut names = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(cursor.rest());
    let read = decoder.and_then(|decoder| decoder.take(size + 1).read_to_end(&mut names));
    match read {
        Ok(read) if read as u64 == size => Ok(names),
        _ => Err(NamesDefect::Damaged),
    }
}

fn cursor_head(cursor: &mut Cursor<'_>) -> Option<(u32, u32, u64)> {
    Some((cursor.u32()?, cursor.u32()?, cursor.u64()?))
}

/// Gives a finished recording its names. It must have an empty section for them. An error leaves it as it was.
///
/// # Errors
/// It has no such section, or cannot be written.
pub fn fill(file: &File, section: &[u8]) -> io::Result<()> {
    let place = place_in_table(file)?;
    let end = file.metadata()?.len();
    let written = write_at_end(file, end, section);
    if written.is_err() {
        // Nobody refers to it.
        let _ = file.set_len(end);
        return written;
    }
    let size_bytes = section.len() as u64;
    file.write_all_at(&Section { offset: end, size_bytes }.to_bytes(), place)
}

fn write_at_end(mut file: &File, end: u64, section: &[u8]) -> io::Result<()> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(end))?;
    file.write_all(section)?;
    // The table must not name bytes that a machine without power has lost.
    file.sync_data()
}

/// Where the table has the place of the section.
fn place_in_table(file: &File) -> io::Result<u64> {
    let refused = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = [0; FILE_HEADER_SIZE_BYTES];
    file.read_exact_at(&mut head, 0)?;
    let header = FileHeader::parse(&head).ok_or_else(|| refused("the header is cut"))?;
    let index = header.present_features().position(|feature| feature == Feature::WHIT_NAMES);
    let (Some(index), Some(table)) = (index, header.data.end()) else {
        return Err(refused("the recording has no section for names"));
    };
    let place = table + (index * Section::SIZE_BYTES) as u64;
    let mut entry = [0; Section::SIZE_BYTES];
    file.read_exact_at(&mut entry, place)?;
    match Section::parse(&entry) {
        Some(Section { size_bytes: 0, .. }) => Ok(place),
        _ => Err(refused("the recording has names already")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::Features;
    use crate::reader::Recording;
    use crate::writer::FileWriter;
    use proptest::prelude::*;
    use std::path::Path;

    fn finished(path: &Path, features: &Features) {
        let mut writer = FileWriter::create(File::create(path).unwrap(), &[]).unwrap();
        let mut record = Vec::new();
        crate::encode::push_record(&mut record, 9, 0, &[0; 8]);
        writer.append(&record).unwrap();
        writer.finish(features).unwrap();
    }

    fn open(path: &Path) -> File {
        File::options().read(true).write(true).open(path).unwrap()
    }

    fn with_room() -> Features {
        let mut features = Features::default();
        features.set_string(Feature::HOSTNAME, "host");
        features.set(Feature::WHIT_NAMES, Vec::new());
        features
    }

    #[test]
    fn a_finished_recording_gets_names_and_keeps_all_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.data");
        finished(&path, &with_room());
        let before = std::fs::read(&path).unwrap();
        assert_eq!(
            Recording::open(&path).unwrap().features.get(Feature::WHIT_NAMES),
            Some(&[][..])
        );
        let section = pack(b"names").unwrap();
        fill(&open(&path), &section).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert!(recording.warnings.is_empty() && !recording.is_cut);
        assert_eq!(recording.features.string(Feature::HOSTNAME).as_deref(), Some("host"));
        let read = recording.features.get(Feature::WHIT_NAMES).unwrap();
        assert_eq!(unpack(read).unwrap(), b"names");
        let after = std::fs::read(&path).unwrap();
        let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        assert!(changed <= Section::SIZE_BYTES && after.len() == before.len() + section.len());
        assert!(fill(&open(&path), &section).unwrap_err().to_string().contains("already"));
    }

    #[test]
    fn a_recording_without_room_for_names_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.data");
        finished(&path, &Features::default());
        let before = std::fs::read(&path).unwrap();
        assert!(fill(&open(&path), b"x").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn bytes_behind_the_end_that_the_table_does_not_name_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.data");
        finished(&path, &with_room());
        let whole = Recording::open(&path).unwrap().features;
        write_at_end(&open(&path), std::fs::metadata(&path).unwrap().len(), b"half").unwrap();
        let recording = Recording::open(&path).unwrap();
        assert_eq!(recording.features, whole);
        assert!(recording.warnings.is_empty());
    }

    #[test]
    fn a_later_version_is_named() {
        let mut section = pack(b"names").unwrap();
        section[0] = 2;
        assert_eq!(unpack(&section), Err(NamesDefect::Version));
    }

    proptest! {
        #[test]
        fn damage_is_survived(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut section = pack(&[7; 300]).unwrap();
            for (at, byte) in damage {
                let at = at.index(section.len());
                section[at] = byte;
            }
            section.truncate(cut.index(2 * section.len()));
            let _ = unpack(&section);
        }
    }
}
