//! Which files were mapped as code while recording: what the header's list of build ids is made of.
//!
//! The kernel could write build ids into the mapping records themselves, but see
//! [`kernel_build_ids`](crate::options::RecordOptions::kernel_build_ids).

use std::collections::HashMap;
use std::path::Path;

use whit_perfdata::feature::BuildIdEntry;
use whit_perfdata::record::{PROT_EXEC, misc};
use whit_types::Pid;

use crate::build_id;

/// Most files of one ring that are remembered.
const FILES_MAX: usize = 65_536;
/// perf's mark for records that are not of a guest.
const HOST_PID: Pid = Pid(-1);

/// Device and inode.
type FileKey = (u32, u32, u64);

/// Files by device and inode, with the path of the first mapping.
#[derive(Clone, Debug, Default)]
pub struct MappedFiles {
    by_key: HashMap<FileKey, Box<[u8]>>,
}

impl MappedFiles {
    /// Takes note of a MMAP2 record: the `misc` of its header, and its body.
    pub fn note(&mut self, record_misc: u16, body: &[u8]) {
        if record_misc & misc::MMAP_BUILD_ID != 0 {
            // The record has the id itself.
            return;
        }
        let Some((key, path)) = parse(body) else { return };
        if !self.by_key.contains_key(&key) && self.by_key.len() < FILES_MAX {
            self.by_key.insert(key, path.into());
        }
    }

    /// Adds what another ring has seen.
    pub fn merge(&mut self, other: &MappedFiles) {
        for (key, path) in &other.by_key {
            if self.by_key.len() >= FILES_MAX {
                break;
            }
            self.by_key.entry(*key).or_insert_with(|| path.clone());
        }
    }

    /// The files' build ids, by path. Files that are gone, or are no longer those that were
    /// mapped, have none.
    pub fn build_ids(&self) -> Vec<BuildIdEntry> {
        use std::os::unix::ffi::OsStrExt;
        let id = |(key, path): (&FileKey, &[u8])| {
            let inside = Path::new(std::ffi::OsStr::from_bytes(path.strip_prefix(b"/")?));
            let id = build_id::of_mapped_file(Path::new("/"), inside, *key)?;
            let path = String::from_utf8_lossy(path).into_owned();
            Some(BuildIdEntry { misc: misc::USER, pid: HOST_PID, id, path })
        };
        let mut entries: Vec<_> =
            self.by_key.iter().map(|(key, path)| (key, &**path)).filter_map(id).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }
}

/// Device, inode and path of a mapping of code. The body: pid, tid (4 each), address, length, page
/// offset (8 each), major, minor (4 each), inode, its generation (8 each), protection, flags (4
/// each), path.
fn parse(body: &[u8]) -> Option<(FileKey, &[u8])> {
    const PATH_AT: usize = 64;
    let word = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let inode = u64::from_le_bytes(*body.get(40..)?.first_chunk()?);
    let path = body.get(PATH_AT..)?;
    let path = &path[..path.iter().position(|byte| *byte == 0)?];
    let is_file = path.starts_with(b"/") && !path.starts_with(b"//") && inode != 0;
    let is_code = word(56)? & PROT_EXEC != 0;
    (is_file && is_code).then_some(((word(32)?, word(36)?, inode), path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn body(path: &str, inode: u64, device: u64, protection: u32) -> Vec<u8> {
        let mut body = vec![0; 32];
        body.extend(rustix::fs::major(device).to_le_bytes());
        body.extend(rustix::fs::minor(device).to_le_bytes());
        body.extend(inode.to_le_bytes());
        body.extend([0; 8]);
        body.extend(protection.to_le_bytes());
        body.extend([0; 4]);
        body.extend(path.as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        body
    }

    #[test]
    fn mapped_programs_have_their_build_ids() {
        let exe = std::env::current_exe().unwrap();
        let metadata = exe.metadata().unwrap();
        let path = exe.to_str().unwrap();
        let mut files = MappedFiles::default();
        for _ in 0..2 {
            files.note(misc::USER, &body(path, metadata.ino(), metadata.dev(), PROT_EXEC));
        }
        // Another file at the same path, a mapping of data, and one with its id.
        files.note(misc::USER, &body("/proc/self/exe", 1, metadata.dev(), PROT_EXEC));
        files.note(misc::USER, &body("/bin/sh", 7, metadata.dev(), 0));
        files.note(misc::USER | misc::MMAP_BUILD_ID, &body("/bin/ls", 8, 0, PROT_EXEC));
        files.note(misc::USER, &body("//anon", 0, 0, PROT_EXEC));
        files.note(misc::USER, &[1, 2, 3]);
        let mut all = MappedFiles::default();
        all.merge(&files);
        let ids = all.build_ids();
        let own = build_id::of_elf(std::fs::File::open(&exe).unwrap()).unwrap();
        assert_eq!(all.by_key.len(), 2);
        assert_eq!(ids.len(), 1);
        assert_eq!((ids[0].path.as_str(), ids[0].id), (path, own));
    }
}
