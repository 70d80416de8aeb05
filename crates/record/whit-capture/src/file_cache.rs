//! The files that processes have mapped as code. Each is opened once, through a process that maps it, and
//! described in the recording.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whit_host::roots::Roots;
use whit_host::runtimes::is_jitdump;
use whit_perfdata::mapped_file::{FoundFile, MappedFile};
use whit_sys::limit::Limit;
use whit_sys::maps::MapsLine;
use whit_sys::process_files::{DELETED, ForeignFile, Identity, OpenError, WantedFile, path_id};
use whit_types::{BuildId, FileId, OpenFailure, Runtime};

use crate::build_id;
use crate::kept_files::KeptFiles;
use crate::mapped_files::{FILES_MAX, MappedFiles, Mapper};
use crate::perf_maps::{PerfMaps, may_be_compiled};
use crate::sampled::Mappers;

/// A file that cannot be opened is tried through so many processes: one may have ended meanwhile.
const OPEN_ATTEMPTS_MAX: u8 = 3;
/// Files that are held open, since those who map them may have ended when copies are made: those that nobody can
/// open by their paths, and others.
const HELD_MAX: usize = 192;
const HELD_BY_PATH_MAX: usize = 64;
/// Descriptors that are left for everything else.
const FREE_DESCRIPTORS: u64 = 128;

/// A file that was opened.
#[derive(Debug)]
struct Opened {
    path: Box<[u8]>,
    found: FoundFile,
    /// As `stat` names it, which need not be as mappings do.
    stated: FileId,
    through: Mapper,
    held: Option<ForeignFile>,
}

#[derive(Debug)]
enum Known {
    Opened(Opened),
    /// How often, and why it could not be opened last.
    Unopened {
        path: Box<[u8]>,
        attempts: u8,
        failure: OpenFailure,
    },
}

/// The files; shared by the threads that synthesize.
#[derive(Debug, Default)]
pub struct FileCache {
    files: Mutex<HashMap<FileId, Known>>,
    /// The processes that mapped them before the recording began.
    mappers: Mutex<HashMap<FileId, Mappers>>,
    is_cut: AtomicBool,
    /// Number of files that are held open.
    held: AtomicUsize,
    /// Descriptors below this number may be held; 0 holds none.
    held_below: u64,
    /// For copies too.
    perf_maps: PerfMaps,
    /// Runtimes that a notice was about.
    reported: Mutex<BTreeSet<Runtime>>,
    /// Number of files that did not answer when a notice was about them.
    reported_silent: AtomicUsize,
}

impl FileCache {
    /// For copies at the end: files are held open.
    pub(crate) fn for_copies() -> FileCache {
        let descriptors = Limit::OpenFiles.get().soft.unwrap_or(u64::MAX);
        let held_below = descriptors.saturating_sub(FREE_DESCRIPTORS);
        FileCache { held_below, ..FileCache::default() }
    }

    /// The build id of the file behind a mapping of process `pid`; `None` where it has none, or
    /// cannot be opened.
    pub fn build_id(&self, roots: &Roots, pid: i32, map: &MapsLine<'_>) -> Option<BuildId> {
        if map.is_executable() && may_be_compiled(map.inode, map.path) {
            self.note_compiler(pid);
        }
        if !map.is_file() {
            return None;
        }
        let id = map.file_id();
        let mut mappers = self.mappers.lock().unwrap_or_else(PoisonError::into_inner);
        if mappers.len() < FILES_MAX || mappers.contains_key(&id) {
            mappers.entry(id).or_default().add(pid);
        }
        drop(mappers);
        self.look_at(roots, id, map.path, &Mapper { pid, range: map.range() })
    }

    /// A process has code that no file describes: its perf-map is wanted, where copies are.
    pub(crate) fn note_compiler(&self, pid: i32) {
        if self.held_below > 0 {
            self.perf_maps.note(pid);
        }
    }

    /// Looks for perf-maps that are wanted. Whether some are missing.
    pub(crate) fn look_for_perf_maps(&self, roots: &Roots) -> bool {
        self.perf_maps.look(roots)
    }

    /// Opens a file, unless that was done before; gives its build id.
    pub(crate) fn look_at(
        &self,
        roots: &Roots,
        id: FileId,
        path: &[u8],
        through: &Mapper,
    ) -> Option<BuildId> {
        let attempts = match self.lock().get(&id) {
            Some(Known::Opened(known)) => return known.found.build_id,
            Some(Known::Unopened { attempts: OPEN_ATTEMPTS_MAX.., .. }) => return None,
            Some(Known::Unopened { attempts, .. }) => *attempts,
            None => 0,
        };
        let opened = through.open(roots, id, path);
        let known = match opened.and_then(|file| describe(file, path, through)) {
            Ok(opened) => Known::Opened(opened),
            Err(failure) => {
                // Through another process, it is the same file system.
                let is_final = failure == OpenFailure::NoAnswer;
                let attempts = if is_final { OPEN_ATTEMPTS_MAX } else { attempts + 1 };
                Known::Unopened { path: path.into(), attempts, failure }
            }
        };
        let build_id = match &known {
            Known::Opened(opened) => opened.found.build_id,
            Known::Unopened { .. } => None,
        };
        self.insert(id, known);
        build_id
    }

    fn insert(&self, id: FileId, mut known: Known) {
        if let Known::Opened(opened) = &mut known {
            opened.held = opened.held.take().filter(|_| self.held_below > 0);
            if let Some(file) = &opened.held
                && !self.may_hold(opened.reach(), file)
            {
                opened.held = None;
            }
        }
        let mut files = self.lock();
        if files.len() < FILES_MAX || files.contains_key(&id) {
            files.insert(id, known);
        } else {
            // It is opened again for the next mapping, and not described.
            self.is_cut.store(true, Ordering::Relaxed);
        }
    }

    /// Whether one more file may be held open; it counts from then on.
    fn may_hold(&self, reach: Reach, file: &ForeignFile) -> bool {
        let most = if reach == Reach::ByPath { HELD_BY_PATH_MAX } else { HELD_MAX };
        (file.descriptor() as u64) < self.held_below
            && self
                .held
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                    (held < most).then_some(held + 1)
                })
                .is_ok()
    }

    /// Whether there were more files than are remembered.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Paths of files with a process that maps each, the last one where several do.
    pub(crate) fn mappers(&self, mapped: &MappedFiles) -> Vec<(Box<[u8]>, i32)> {
        let files = self.lock();
        let before = files.values().filter_map(|known| match known {
            Known::Opened(opened) => Some((opened.path.clone(), opened.through.pid)),
            Known::Unopened { .. } => None,
        });
        let recorded = mapped.iter().map(|(_, file)| (file.path.clone(), file.last.pid));
        let mut all: Vec<_> = before.chain(recorded).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether no notice was about a runtime yet.
    pub(crate) fn is_first_word_on(&self, runtime: Runtime) -> bool {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(runtime)
    }

    /// Paths of files that did not answer, where there are more of them than a notice was about.
    pub(crate) fn newly_silent(&self) -> Vec<String> {
        let is_silent = |known: &Known| match known {
            Known::Unopened { path, failure: OpenFailure::NoAnswer, .. } => {
                Some(String::from_utf8_lossy(path).into_owned())
            }
            _ => None,
        };
        let mut paths: Vec<_> = self.lock().values().filter_map(is_silent).collect();
        paths.sort_unstable();
        if self.reported_silent.swap(paths.len(), Ordering::Relaxed) >= paths.len() {
            paths.clear();
        }
        paths
    }

    /// Looks at the files that the kernel's mapping records name. Gives their build ids, by path.
    pub(crate) fn complete(
        &self,
        roots: &Roots,
        mapped: &MappedFiles,
    ) -> Vec<(Box<[u8]>, BuildId)> {
        let mut build_ids = Vec::new();
        for (id, file) in mapped.iter() {
            let through = |mapper| self.look_at(roots, id, &file.path, mapper);
            let build_id = through(&file.first).or_else(|| through(&file.last));
            build_ids.extend(build_id.map(|build_id| (file.path.clone(), build_id)));
        }
        build_ids.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        build_ids
    }

    /// All files as the recording describes them, by path. Copies binaries into `kept` that processes with samples
    /// map.
    pub(crate) fn describe(
        &self,
        roots: &Roots,
        kept: Option<&mut KeptFiles>,
        mapped: &MappedFiles,
    ) -> Vec<MappedFile> {
        let mut known = self.lock();
        let mut files = Vec::new();
        if let Some(kept) = kept {
            self.keep(roots, kept, &mut known, mapped);
            files = self.keep_perf_maps(roots, kept, mapped);
        }
        files.extend(known.iter().map(|(id, known)| known.describe(*id)));
        files.sort_by(|a, b| (&a.path, a.id).cmp(&(&b.path, b.id)));
        files
    }

    /// Copies files: deleted ones first, then those that cannot be opened by their paths; of each kind, the smallest
    /// ones first, up to the bound.
    fn keep(
        &self,
        roots: &Roots,
        kept: &mut KeptFiles,
        files: &mut HashMap<FileId, Known>,
        mapped: &MappedFiles,
    ) {
        let sampled = mapped.processes.clone().with_ancestors();
        let before = self.mappers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sampled = |id| {
            let meanwhile = mapped.get(id).map(|file| &file.mappers);
            before.get(id).into_iter().chain(meanwhile).any(|mappers| sampled.has_any(mappers))
        };
        let opened = files.iter_mut().filter_map(|(id, known)| match known {
            Known::Opened(opened) if opened.is_wanted() => is_sampled(id).then_some((*id, opened)),
            _ => None,
        });
        let refreshed = opened.map(|(id, opened)| {
            opened.refresh();
            (opened.reach(), id, opened)
        });
        let mut wanted: Vec<_> = refreshed.collect();
        wanted.sort_by_key(|(reach, id, opened)| (*reach, opened.found.size_bytes, *id));
        for (_, id, opened) in wanted {
            let file = MappedFile { id, path: opened.path.to_vec(), found: Ok(opened.found) };
            let held = || opened.held.as_ref()?.again().ok();
            let source = || held().or_else(|| opened.open_again(roots, id))?.into_file().ok();
            let is_growing = is_jitdump(&opened.path);
            opened.found.is_kept = match is_growing {
                true => kept.keep_growing(&file, source),
                false => kept.keep(&file, source),
            };
            let is_done = opened.found.is_kept && !is_growing;
            if is_done && opened.held.take().is_some() {
                self.held.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Copies the perf-maps of processes with samples.
    fn keep_perf_maps(
        &self,
        roots: &Roots,
        kept: &mut KeptFiles,
        mapped: &MappedFiles,
    ) -> Vec<MappedFile> {
        let sampled = mapped.processes.clone().with_ancestors();
        let maps = self.perf_maps.now(roots).into_iter();
        let maps = maps.filter(|(pid, ..)| sampled.has_any(&Mappers::of(*pid)));
        let keep = |(_, mut described, file): (i32, MappedFile, ForeignFile)| {
            let is_kept = kept.keep_growing(&described, || file.into_file().ok());
            if let Ok(found) = &mut described.found {
                found.is_kept = is_kept;
            }
            described
        };
        maps.map(keep).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FileId, Known>> {
        // A map of finished entries is never half-changed: a panic elsewhere does not matter.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mapper {
    fn open(&self, roots: &Roots, id: FileId, path: &[u8]) -> Result<ForeignFile, OpenFailure> {
        let range = Some(self.range.clone());
        let wanted = WantedFile {
            pid: Some(self.pid),
            relatives: &[],
            range,
            identity: Identity::Mapping(id),
            path,
        };
        wanted.open(&roots.proc).map_err(|error| error.failure)
    }
}

impl Known {
    fn describe(&self, id: FileId) -> MappedFile {
        match self {
            Known::Opened(opened) => {
                MappedFile { id, path: opened.path.to_vec(), found: Ok(opened.found) }
            }
            Known::Unopened { path, failure, .. } => {
                MappedFile { id, path: path.to_vec(), found: Err(*failure) }
            }
        }
    }
}

/// How a reader of the recording may reach a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    Deleted,
    /// Another file, or none, is at the path.
    Elsewhere,
    ByPath,
}

impl Opened {
    fn reach(&self) -> Reach {
        let path = Path::new(std::ffi::OsStr::from_bytes(&self.path));
        if self.path.ends_with(DELETED) {
            Reach::Deleted
        } else if path_id(path) == Some(self.stated) {
            Reach::ByPath
        } else {
            Reach::Elsewhere
        }
    }

    /// Whether a reader needs a copy of it that it has not got. That of a jitdump file is of one output.
    fn is_wanted(&self) -> bool {
        self.found.is_elf && !self.found.is_kept || is_jitdump(&self.path)
    }

    /// A compiler has written into its jitdump file since it was mapped.
    fn refresh(&mut self) {
        if let Some(held) = &mut self.held
            && is_jitdump(&self.path)
            && let Ok(now) = held.again()
        {
            self.found.size_bytes = now.facts().size_bytes;
            self.found.modified_ns = now.facts().modified_ns;
            *held = now;
        }
    }

    /// The file itself, if it still can be had.
    fn open_again(&self, roots: &Roots, id: FileId) -> Option<ForeignFile> {
        self.through.open(roots, id, &self.path).ok()
    }
}

fn describe(file: ForeignFile, path: &[u8], through: &Mapper) -> Result<Opened, OpenFailure> {
    let facts = *file.facts();
    let identity = build_id::of(file.reader());
    if identity.is_none() {
        // No ELF file, or one that cannot be read.
        file.read_at(&mut [0], 0).map_err(|error| OpenError::reading(&error).failure)?;
    }
    let found = FoundFile {
        size_bytes: facts.size_bytes,
        modified_ns: facts.modified_ns,
        build_id: identity.flatten(),
        is_elf: identity.is_some(),
        is_kept: false,
    };
    let held = Some(file).filter(|_| identity.is_some() || is_jitdump(path));
    let through = through.clone();
    Ok(Opened { path: path.into(), found, stated: facts.id, through, held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use whit_sys::process_files::stated_id;

    use crate::kept_files::KeptFilesPlan;
    use whit_perfdata::record::PROT_EXEC;
    use whit_sys::MappedFile as Map;

    fn own_program() -> String {
        let text = std::fs::read_to_string("/proc/self/maps").unwrap();
        let exe = std::env::current_exe().unwrap();
        text.lines().find(|line| line.ends_with(exe.to_str().unwrap())).unwrap().to_owned()
    }

    fn own_build_id() -> Option<BuildId> {
        let exe = std::env::current_exe().unwrap();
        build_id::of(&File::open(exe).unwrap()).unwrap()
    }

    #[test]
    fn this_test_program_has_the_id_of_its_file_and_is_where_it_was() {
        let (cache, roots, line) = (FileCache::default(), Roots::default(), own_program());
        let map = MapsLine::parse(line.as_bytes()).unwrap();
        assert_eq!(cache.build_id(&roots, whit_sys::system::pid(), &map), own_build_id());
        let home = tempfile::tempdir().unwrap();
        let mut kept = KeptFiles::new(KeptFilesPlan::new(home.path().join(".debug")));
        let files = cache.describe(&roots, Some(&mut kept), &MappedFiles::default());
        let exe = std::env::current_exe().unwrap().metadata().unwrap();
        let [MappedFile { id, path, found: Ok(found) }] = &files[..] else { panic!("{files:?}") };
        assert_eq!((*id, &path[..]), (map.file_id(), map.path));
        assert_eq!((found.size_bytes, found.is_kept), (exe.len(), false));
        let modified = exe.modified().unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(u128::from(found.modified_ns), modified.as_nanos());
        assert!(!home.path().join(".debug").exists());
    }

    #[test]
    fn a_file_is_tried_again_through_another_process() {
        let (cache, roots, line) = (FileCache::default(), Roots::default(), own_program());
        let exe = std::env::current_exe().unwrap();
        // Where nobody finds it by its path.
        let moved = line.replace(exe.to_str().unwrap(), "/not/there");
        let map = MapsLine::parse(moved.as_bytes()).unwrap();
        let missing = i32::MAX;
        assert_eq!(cache.build_id(&roots, missing, &map), None);
        assert!(own_build_id().is_some());
        assert_eq!(cache.build_id(&roots, whit_sys::system::pid(), &map), own_build_id());
        let other = MapsLine { inode: map.inode + 1, ..map };
        for wanted in [1, 2, 3, 3] {
            assert_eq!(cache.build_id(&roots, missing, &other), None);
            let files = cache.lock();
            let Known::Unopened { attempts, failure, .. } = &files[&other.file_id()] else {
                panic!("{files:?}")
            };
            assert_eq!((*attempts, *failure), (wanted, OpenFailure::Missing));
        }
    }

    /// A MMAP2 record's body.
    fn body(path: &Path, id: FileId, at: u64, protection: u32) -> Vec<u8> {
        let mut body = (whit_sys::system::pid() as u32).to_le_bytes().to_vec();
        body.extend([0; 4]);
        body.extend([at, 4096, 0].iter().flat_map(|word| word.to_le_bytes()));
        body.extend(id.device.0.to_le_bytes());
        body.extend(id.device.1.to_le_bytes());
        body.extend(id.inode.to_le_bytes());
        body.extend([0; 8]);
        body.extend(protection.to_le_bytes());
        body.extend([0; 4]);
        body.extend(path.as_os_str().as_bytes());
        body.resize(body.len() / 8 * 8 + 8, 0);
        body
    }

    #[test]
    fn a_storm_of_libraries_leaves_a_bounded_number_of_files_open() {
        let (dir, roots) = (tempfile::tempdir().unwrap(), Roots::default());
        // The file descriptors of this test's other threads are elsewhere.
        let held = || {
            let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
            targets.filter(|target| target.starts_with(dir.path())).count()
        };
        let cache = FileCache::for_copies();
        for number in 0..HELD_MAX + 8 {
            let path = dir.path().join(number.to_string());
            std::fs::copy("/bin/true", &path).unwrap();
            let map = Map::open(&path).unwrap();
            let id = stated_id(&path.metadata().unwrap());
            std::fs::remove_file(&path).unwrap();
            let start = map.as_ptr() as u64;
            let range = start..start + map.len().next_multiple_of(4096) as u64;
            let deleted = [path.as_os_str().as_bytes(), b" (deleted)"].concat();
            let through = Mapper { pid: whit_sys::system::pid(), range };
            assert!(cache.look_at(&roots, id, &deleted, &through).is_some(), "{number}");
        }
        assert_eq!(held(), HELD_MAX);
        drop(cache);
        assert_eq!(held(), 0);
    }

    #[test]
    fn mapped_files_are_described_and_deleted_ones_kept() {
        let (dir, roots) = (tempfile::tempdir().unwrap(), Roots::default());
        let exe = std::env::current_exe().unwrap();
        let (deleted, data) = (dir.path().join("deleted"), dir.path().join("data"));
        std::fs::copy(&exe, &deleted).unwrap();
        std::fs::write(&data, "no program").unwrap();
        let map = Map::open(&deleted).unwrap();
        let of = |path: &Path| stated_id(&path.metadata().unwrap());
        let (of_exe, of_deleted, of_data) = (of(&exe), of(&deleted), of(&data));
        std::fs::remove_file(&deleted).unwrap();
        let mut mapped = MappedFiles::default();
        let at = map.as_ptr() as u64;
        for body in [
            body(&exe, of_exe, 0, PROT_EXEC),
            body(&exe, of_exe, 0, PROT_EXEC),
            body(&deleted, of_deleted, at, PROT_EXEC),
            body(&data, of_data, 0, PROT_EXEC),
            // Another file at the same path, a mapping of data, and no file.
            body(&data, FileId { inode: 1, ..of_data }, 0, PROT_EXEC),
            body(Path::new("/bin/sh"), FileId { inode: 7, ..of_data }, 0, 0),
            body(Path::new("//anon"), FileId::default(), 0, PROT_EXEC),
            vec![1, 2, 3],
        ] {
            mapped.note(&body);
        }
        let mut all = MappedFiles::default();
        all.merge(&mapped);
        let cache = FileCache::default();
        let ids = cache.complete(&roots, &all);
        all.processes.note(whit_sys::system::pid() as u32);
        let mut kept = KeptFiles::new(KeptFilesPlan::new(dir.path().join(".debug")));
        let files = cache.describe(&roots, Some(&mut kept), &all);
        assert_eq!(files.len(), 4, "{files:?}");
        let find = |id| files.iter().find(|file| file.id == id).unwrap().found;
        assert_eq!(find(FileId { inode: 1, ..of_data }), Err(OpenFailure::Replaced));
        assert!(find(of_exe).is_ok_and(|found| found.is_kept && found.build_id == own_build_id()));
        assert!(find(of_data).is_ok_and(|found| !found.is_kept && found.build_id.is_none()));
        let own = own_build_id().unwrap();
        match find(of_deleted) {
            Ok(found) => {
                assert_eq!((found.build_id, found.is_kept), (Some(own), true));
                let kept = dir.path().join(".debug/.build-id").join(&own.to_string()[..2]);
                assert!(kept.is_dir());
                assert_eq!(ids.len(), 2);
            }
            // Without the right to open files through mappings.
            Err(failure) => assert_eq!((failure, ids.len()), (OpenFailure::Missing, 1)),
        }
    }
}
