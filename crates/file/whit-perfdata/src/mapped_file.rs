//! The files that were mapped as code while recording, as the recorder found them (`WHIT_FILES`): what tells a
//! reader whether the file at a path is still the one that ran.

use crate::bytes::Cursor;
use whit_types::{BuildId, FileId, FileStamp, OpenFailure};

/// Version of the encoding; the first word of the section.
const VERSION: u32 = 1;
/// Bytes of an entry, its size among them, without its path.
const ENTRY_BYTES: u32 = 64;
/// Files that are read from a recording.
const FILES_MAX: usize = 1 << 17;
/// Bit of an entry's flags: there is a copy.
const IS_KEPT: u8 = 1;
/// Bit of an entry's flags: it is an ELF file.
const IS_ELF: u8 = 2;

/// A file that was mapped executable while recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// As mapping records name it.
    pub id: FileId,
    /// As mapping records have it, with the kernel's mark for deleted files.
    pub path: Vec<u8>,
    /// The file's identity as the recorder found it, or why it was not opened.
    pub found: Result<FoundFile, OpenFailure>,
}

/// Distinguishes a file from its successors at the same path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FoundFile {
    /// Length in bytes when it was recorded.
    pub size_bytes: u64,
    /// When it was written last, in nanoseconds since the epoch.
    pub modified_ns: u64,
    /// Its build id, if it has one.
    pub build_id: Option<BuildId>,
    /// It is a program or a library.
    pub is_elf: bool,
    /// The recorder's user has a copy, since nobody could open it by its path any more.
    pub is_kept: bool,
}

impl MappedFile {
    /// Distinguishes the file from others; `None` if it was not opened.
    pub fn stamp(&self) -> Option<FileStamp> {
        let FoundFile { size_bytes, modified_ns, .. } = self.found.ok()?;
        Some(FileStamp { id: self.id, size_bytes, modified_ns })
    }
}

/// The section. Each file has an entry: size of the entry without its path (4), why it was not opened (1: 0 if it
/// was, else the number of the failure and one), flags (1), size of the build id (1). Then a zero (1), major and
/// minor number of the device (4 each), inode (8), size (8), time of the last change (8), build id (20, padded
/// with zeros), and size of the path (4). The path follows the entry. Later versions append fields to the entry.
pub(crate) fn encode(files: &[MappedFile]) -> Vec<u8> {
    let mut out = VERSION.to_le_bytes().to_vec();
    out.extend((files.len() as u32).to_le_bytes());
    for file in files {
        let nothing = FoundFile::default();
        let (failure, found) = match &file.found {
            Ok(found) => (0, found),
            Err(failure) => (*failure as u8 + 1, &nothing),
        };
        let id = found.build_id.as_ref().map_or(&[][..], BuildId::as_bytes);
        let mut padded = [0; BuildId::MAX_SIZE_BYTES];
        padded[..id.len()].copy_from_slice(id);
        let kept = if found.is_kept { IS_KEPT } else { 0 };
        let flags = kept | if found.is_elf { IS_ELF } else { 0 };
        out.extend(ENTRY_BYTES.to_le_bytes());
        out.extend([failure, flags, id.len() as u8, 0]);
        out.extend(file.id.device.0.to_le_bytes());
        out.extend(file.id.device.1.to_le_bytes());
        for word in [file.id.inode, found.size_bytes, found.modified_ns] {
            out.extend(word.to_le_bytes());
        }
        out.extend(padded);
        out.extend((file.path.len() as u32).to_le_bytes());
        out.extend(&file.path);
    }
    out
}

/// Decodes the section, as far as it is whole. Nothing for another version.
pub(crate) fn decode(bytes: &[u8]) -> Vec<MappedFile> {
    let mut c = Cursor::new(bytes);
    let (Some(VERSION), Some(count)) = (c.u32(), c.u32()) else { return Vec::new() };
    let count = (count as usize).min(FILES_MAX);
    std::iter::from_fn(|| decode_one(&mut c)).take(count).flatten().collect()
}

/// The outer `None` ends the section; the inner one is an entry that says nothing to this version.
fn decode_one(c: &mut Cursor<'_>) -> Option<Option<MappedFile>> {
    let size = c.u32()? as usize;
    let mut entry = Cursor::new(c.take(size.checked_sub(4)?)?);
    let [failure, flags, id_bytes, _] = *entry.take(4)?.first_chunk()?;
    let device = (entry.u32()?, entry.u32()?);
    let inode = entry.u64()?;
    let (size_bytes, modified_ns) = (entry.u64()?, entry.u64()?);
    let id = entry.take(BuildId::MAX_SIZE_BYTES)?;
    let path_bytes = entry.u32()? as usize;
    let path = c.take(path_bytes)?.to_vec();
    let build_id = id.get(..usize::from(id_bytes)).and_then(BuildId::new);
    let (is_kept, is_elf) = (flags & IS_KEPT != 0, flags & IS_ELF != 0);
    let found = match failure.checked_sub(1) {
        None => Ok(FoundFile { size_bytes, modified_ns, build_id, is_elf, is_kept }),
        Some(number) => match OpenFailure::ALL.get(usize::from(number)) {
            Some(failure) => Err(*failure),
            None => return Some(None),
        },
    };
    Some(Some(MappedFile { id: FileId { device, inode }, path, found }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found() -> impl Strategy<Value = Result<FoundFile, OpenFailure>> {
        let id = prop::option::of(prop::collection::vec(any::<u8>(), 1..=20));
        let opened = (any::<[u64; 2]>(), id, any::<[bool; 2]>()).prop_map(
            |([size_bytes, modified_ns], id, [is_elf, is_kept])| {
                let build_id = id.and_then(|id| BuildId::new(&id));
                Ok(FoundFile { size_bytes, modified_ns, build_id, is_elf, is_kept })
            },
        );
        prop_oneof![opened, prop::sample::select(&OpenFailure::ALL[..]).prop_map(Err)]
    }

    prop_compose! {
        fn file()(
            device in any::<(u32, u32)>(),
            inode: u64,
            path in prop::collection::vec(any::<u8>(), 0..40),
            found in found(),
        ) -> MappedFile {
            MappedFile { id: FileId { device, inode }, path, found }
        }
    }

    proptest! {
        #[test]
        fn round_trip_and_whole_entries_of_a_cut_one(
            files in prop::collection::vec(file(), 0..6),
            cut in 0usize..60,
        ) {
            let bytes = encode(&files);
            prop_assert_eq!(decode(&bytes), files.clone());
            let whole = decode(&bytes[..bytes.len().saturating_sub(cut)]);
            prop_assert_eq!(&whole[..], &files[..whole.len()]);
        }

        #[test]
        fn no_bytes_are_too_bad(mut bytes in prop::collection::vec(any::<u8>(), 0..300), is_ours: bool) {
            if is_ours && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
            }
            decode(&bytes);
        }
    }

    #[test]
    fn entries_of_later_versions_are_longer_and_fail_in_other_ways() {
        let id = FileId { device: (8, 1), inode: 7 };
        let found = Err(OpenFailure::Deleted);
        let file = MappedFile { id, path: b"/x".to_vec(), found };
        let mut bytes = encode(std::slice::from_ref(&file));
        let path_at = bytes.len() - 2;
        bytes.splice(path_at..path_at, [1, 2, 3]);
        bytes[8] += 3;
        assert_eq!(decode(&bytes), [file]);
        bytes[12] = 200;
        assert_eq!(decode(&bytes), []);
        bytes[0] = 2;
        assert_eq!(decode(&bytes), []);
    }
}
