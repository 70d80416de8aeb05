//! Which files were mapped as code while recording, by the kernel's records.
//!
//! The kernel could write build ids into the mapping records themselves, but see
//! [`kernel_build_ids`](whit_engine_api::event_plan::TrackingPlan::kernel_build_ids).

use std::collections::HashMap;
use std::ops::Range;

use whit_perfdata::record::PROT_EXEC;
use whit_types::FileId;

use crate::sampled::{Mappers, SampledProcesses};

/// Most files that are remembered: of one ring, and of an output.
pub(crate) const FILES_MAX: usize = 65_536;

/// A process that maps a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mapper {
    pub(crate) pid: i32,
    pub(crate) range: Range<u64>,
}

/// A file that was mapped.
#[derive(Clone, Debug)]
pub(crate) struct MappedPath {
    /// As the first mapping names it.
    pub(crate) path: Box<[u8]>,
    /// The first process may be a service that runs on, the last one may be the only one left.
    pub(crate) first: Mapper,
    pub(crate) last: Mapper,
    /// All processes that map it.
    pub(crate) mappers: Mappers,
}

/// Files that wait to be looked at.
const FRESH_MAX: usize = 1024;

/// A file that was not known before.
#[derive(Clone, Debug)]
pub(crate) struct FreshFile {
    pub(crate) id: FileId,
    pub(crate) path: Box<[u8]>,
    pub(crate) mapper: Mapper,
}

/// Files with the path of the first mapping, and who can lead to them.
#[derive(Clone, Debug, Default)]
pub struct MappedFiles {
    by_id: HashMap<FileId, MappedPath>,
    /// Files that are new since somebody asked.
    fresh: Vec<FreshFile>,
    /// Processes with samples.
    pub(crate) processes: SampledProcesses,
    /// There were more files than are kept.
    is_cut: bool,
}

impl MappedFiles {
    /// Takes note of the body of a MMAP2 record with device and inode.
    pub fn note(&mut self, body: &[u8]) {
        let Some((id, path, mapper)) = parse(body) else { return };
        if let Some(known) = self.by_id.get_mut(&id) {
            known.mappers.add(mapper.pid);
            known.last = mapper;
        } else if self.by_id.len() < FILES_MAX {
            if self.fresh.len() < FRESH_MAX {
                let (path, mapper) = (path.into(), mapper.clone());
                self.fresh.push(FreshFile { id, path, mapper });
            }
            let (first, mappers) = (mapper.clone(), Mappers::of(mapper.pid));
            self.by_id.insert(id, MappedPath { path: path.into(), first, last: mapper, mappers });
        } else {
            self.is_cut = true;
        }
    }

    /// Files that were not known before the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<FreshFile> {
        std::mem::take(&mut self.fresh)
    }

    /// Adds what another ring has seen.
    pub fn merge(&mut self, other: &MappedFiles) {
        for (id, file) in &other.by_id {
            if let Some(known) = self.by_id.get_mut(id) {
                known.last = file.last.clone();
                known.mappers.merge(&file.mappers);
            } else if self.by_id.len() < FILES_MAX {
                self.by_id.insert(*id, file.clone());
            } else {
                self.is_cut = true;
            }
        }
        self.is_cut |= other.is_cut;
        self.processes.merge(&other.processes);
    }

    /// Whether there were more files than are remembered.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// A file.
    pub(crate) fn get(&self, id: &FileId) -> Option<&MappedPath> {
        self.by_id.get(id)
    }

    /// The files.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FileId, &MappedPath)> {
        self.by_id.iter().map(|(id, file)| (*id, file))
    }
}

/// File, path and place of a mapping of code. The body: pid, tid (4 each), address, length, page
/// offset (8 each), major, minor (4 each), inode, its generation (8 each), protection, flags (4
/// each), path.
fn parse(body: &[u8]) -> Option<(FileId, &[u8], Mapper)> {
    const PATH_AT: usize = 64;
    let word = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let inode = long(40)?;
    let path = body.get(PATH_AT..)?;
    let path = &path[..path.iter().position(|byte| *byte == 0)?];
    let is_file = path.starts_with(b"/") && !path.starts_with(b"//") && inode != 0;
    let is_code = word(56)? & PROT_EXEC != 0;
    let start = long(8)?;
    let mapper = Mapper { pid: word(0)? as i32, range: start..start.saturating_add(long(16)?) };
    let id = FileId { device: (word(32)?, word(36)?), inode };
    (is_file && is_code).then_some((id, path, mapper))
}
