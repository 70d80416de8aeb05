//! The perf-maps of recorded processes, held open: a process may end before its recording does, and its `/tmp` with its
//! container.
//!
//! No record says when a process writes its perf-map. So processes with code that no file describes are looked at again
//! and again, until the file is there or the process is gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_host::processes;
use whit_host::roots::Roots;
use whit_perfdata::mapped_file::{FoundFile, MappedFile};
use whit_perfdata::record::PROT_EXEC;
use whit_sys::process_files::{ForeignFile, may_be_written_for, open_as_seen_by, open_foreign};
use whit_types::Pid;

/// Processes that are looked at; others have their perf-maps as long as these lie where they are.
const PROCESSES_MAX: usize = 256;

/// Perf-maps by process; `None` where there is none yet.
#[derive(Debug, Default)]
pub(crate) struct PerfMaps(Mutex<BTreeMap<i32, Option<ForeignFile>>>);

impl PerfMaps {
    /// A process has code that no file describes.
    pub(crate) fn note(&self, pid: i32) {
        let mut maps = self.lock();
        if maps.len() < PROCESSES_MAX {
            maps.entry(pid).or_default();
        }
    }

    /// Looks for those that are missing. Whether some still are.
    pub(crate) fn look(&self, roots: &Roots) -> bool {
        let mut maps = self.lock();
        maps.retain(|pid, file| {
            if file.is_none() {
                *file = open(roots, Pid(*pid));
            }
            file.is_some() || roots.thread(Pid(*pid).main_thread()).exists()
        });
        maps.values().any(Option::is_none)
    }

    /// Each as it is now: its process, its description and the file.
    pub(crate) fn now(&self, roots: &Roots) -> Vec<(i32, MappedFile, ForeignFile)> {
        self.look(roots);
        let maps = self.lock();
        let described = |(pid, file): (&i32, &Option<ForeignFile>)| {
            let file = file.as_ref()?.again().ok()?;
            Some((*pid, describe(*pid, &file), file))
        };
        maps.iter().filter_map(described).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i32, Option<ForeignFile>>> {
        // A map of finished entries is never half-changed: a panic elsewhere does not matter.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a mapping is memory that a JIT compiler may have written code into: the body of a MMAP2 record.
pub(crate) fn compiler_of(body: &[u8]) -> Option<i32> {
    const PATH_AT: usize = 64;
    const INODE_AT: usize = 40;
    const PROTECTION_AT: usize = 56;
    let word = |at: usize| Some(u32::from_le_bytes(*body.get(at..)?.first_chunk()?));
    let inode = u64::from_le_bytes(*body.get(INODE_AT..)?.first_chunk()?);
    let path = body.get(PATH_AT..)?;
    let is_code = word(PROTECTION_AT)? & PROT_EXEC != 0;
    (is_code && may_be_compiled(inode, path)).then_some(word(0)? as i32)
}

/// Whether there may be code of a JIT compiler: in memory without a file, or in a file that is gone.
pub(crate) fn may_be_compiled(inode: u64, path: &[u8]) -> bool {
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_kernels = path.starts_with(b"[v") || path.starts_with(b"[uprobes");
    let is_nameless = inode == 0 && !is_kernels;
    is_nameless || path.ends_with(b" (deleted)") || path.starts_with(b"/dev/zero")
}

/// The perf-map in the `/tmp` that the process sees, or in ours; written with its rights or with root's.
fn open(roots: &Roots, pid: Pid) -> Option<ForeignFile> {
    let user = processes::effective_user(roots, pid)?;
    let inner = processes::inner_pid(roots, pid).unwrap_or(pid);
    let theirs = open_as_seen_by(&roots.proc, pid.0, &path(inner));
    let found = theirs.or_else(|_| open_foreign(&path(pid))).ok()?;
    may_be_written_for(user, found.facts()).then_some(found)
}

fn path(pid: Pid) -> PathBuf {
    Path::new("/tmp").join(format!("perf-{}.map", pid.0))
}

/// Under the name that a recording has for it. In its own namespace, the process may have another number.
fn describe(pid: i32, file: &ForeignFile) -> MappedFile {
    let facts = file.facts();
    let found = FoundFile {
        size_bytes: facts.size_bytes,
        modified_ns: facts.modified_ns,
        build_id: None,
        is_elf: false,
        is_kept: false,
    };
    let path = path(Pid(pid)).into_os_string().into_encoded_bytes();
    MappedFile { id: facts.id, path, found: Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_perf_map_is_held_as_soon_as_it_is_there_and_described_as_it_ends() {
        let (maps, roots) = (PerfMaps::default(), Roots::default());
        let pid = whit_sys::system::pid();
        maps.note(pid);
        maps.note(i32::MAX);
        assert!(maps.look(&roots));
        let inner = processes::inner_pid(&roots, Pid(pid)).unwrap();
        std::fs::write(path(inner), "1000 10 first\n").unwrap();
        let is_missing = maps.look(&roots);
        // It goes before the recording ends, and grows until then.
        let mut file = File::options().append(true).open(path(inner)).unwrap();
        std::fs::remove_file(path(inner)).unwrap();
        std::io::Write::write_all(&mut file, b"2000 10 second\n").unwrap();
        assert!(!is_missing);
        let [(of, described, held)] = &maps.now(&roots)[..] else { panic!("one map") };
        assert_eq!((*of, described.found.unwrap().size_bytes), (pid, 29));
        assert_eq!(described.path, format!("/tmp/perf-{pid}.map").into_bytes());
        assert_eq!(
            std::io::read_to_string(held.reader()).unwrap(),
            "1000 10 first\n2000 10 second\n"
        );
        assert_eq!(maps.now(&roots).len(), 1);
    }

    #[test]
    fn code_of_compilers_is_in_memory_without_a_file() {
        for path in [&b"//anon\0"[..], b"[heap]", b"[anon:jit]", b"", b"/memfd:x (deleted)\0\0"] {
            assert!(may_be_compiled(0, path), "{path:?}");
        }
        assert!(may_be_compiled(7, b"/dev/shm/x (deleted)\0"));
        for path in [&b"[vdso]"[..], b"[vsyscall]", b"[uprobes]"] {
            assert!(!may_be_compiled(0, path), "{path:?}");
        }
        assert!(!may_be_compiled(7, b"/lib/a\0"));
    }
}
