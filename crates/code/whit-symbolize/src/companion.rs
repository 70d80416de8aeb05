//! Where the debug companion of a stripped binary may lie, and the cached copies that perf keeps.
//!
//! Places and order are those of perf (`util/symbol.c`, `util/dso.c`) and of GDB's manual ("Debugging
//! Information in Separate Files").

use std::path::{Path, PathBuf};

use whit_companion::Cache;
use whit_sys::process_files::{living, open_as_seen_by, real_path};
use whit_types::{BuildId, FileStamp, Pid};

use crate::dso_spec::DsoSpec;
use crate::reason::Reason;
use whit_elf::{ElfImage, KEPT_NAME, TableKind, kept_directory};

/// Where processes are.
pub(crate) const PROC: &str = "/proc";

/// Where to look for binaries and their companions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugDirs {
    /// Roots of separate debug information.
    pub roots: Vec<PathBuf>,
    /// perf's cache of recorded binaries.
    pub perf_cache: Option<PathBuf>,
    /// A directory that stands for `/` of the machine that was recorded.
    pub symfs: Option<PathBuf>,
    /// Files that debuginfod's clients fetched.
    pub fetched: Option<Cache>,
}

impl DebugDirs {
    /// `/usr/lib/debug`, and `.debug` in `home`.
    pub fn standard(home: Option<&Path>) -> DebugDirs {
        DebugDirs::with_cache(home.map(|home| home.join(".debug")))
    }

    /// `/usr/lib/debug`, and a cache of perf's.
    pub fn with_cache(perf_cache: Option<PathBuf>) -> DebugDirs {
        DebugDirs {
            roots: vec![PathBuf::from("/usr/lib/debug")],
            perf_cache,
            symfs: None,
            fetched: None,
        }
    }

    /// Nowhere but at the recorded path itself.
    pub fn none() -> DebugDirs {
        DebugDirs { roots: Vec::new(), perf_cache: None, symfs: None, fetched: None }
    }

    /// `path` below the symfs directory.
    pub(crate) fn in_symfs(&self, path: &Path) -> PathBuf {
        match &self.symfs {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }

    /// A file of perf's cache for `build_id`, for example `elf` or `kallsyms`.
    pub(crate) fn cached(&self, build_id: BuildId, file: &str) -> Option<PathBuf> {
        Some(by_build_id(self.perf_cache.as_ref()?, build_id, "").join(file))
    }

    /// The copy of a file without a build id that a recorder kept.
    pub(crate) fn kept(&self, stamp: &FileStamp) -> Option<PathBuf> {
        Some(self.perf_cache.as_ref()?.join(kept_directory(stamp)).join(KEPT_NAME))
    }

    /// Where the companion of a binary may lie.
    fn companions(&self, path: &Path, link: Option<&str>, id: Option<BuildId>) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        let recorded = path.strip_prefix("/").unwrap_or(path);
        if let (Some(link), Some(dir)) = (link, path.parent()) {
            let here = self.in_symfs(dir);
            paths.extend([here.join(link), here.join(".debug").join(link)]);
            let below = dir.strip_prefix("/").unwrap_or(dir);
            paths.extend(self.roots().map(|root| root.join(below).join(link)));
        }
        paths.extend(id.and_then(|id| self.cached(id, "elf")));
        paths.extend(id.and_then(|id| self.cached(id, "debug")));
        for root in self.roots() {
            let mut with_suffix = root.join(recorded).into_os_string();
            with_suffix.push(".debug");
            paths.push(PathBuf::from(with_suffix));
            paths.push(root.join(recorded));
        }
        if let Some(id) = id {
            paths.extend(self.roots().map(|root| by_build_id(&root, id, ".debug")));
        }
        paths
    }

    fn roots(&self) -> impl Iterator<Item = PathBuf> {
        self.roots.iter().map(|root| self.in_symfs(root))
    }

    /// Companions by build id: they stand in for a binary that is gone.
    pub(crate) fn by_build_id(&self, id: BuildId) -> impl Iterator<Item = PathBuf> {
        self.roots().map(move |root| by_build_id(&root, id, ".debug"))
    }

    /// The companions of a binary that exist and belong to it, best first.
    pub(crate) fn open_companions<'a>(
        &'a self,
        spec: &'a DsoSpec,
        binary: &'a ElfImage,
    ) -> impl Iterator<Item = ElfImage> + 'a {
        let link = binary.debug_link();
        let own_path = real_path(binary.path());
        let places = self.companions(&spec.path, link.as_deref(), binary.build_id());
        let here = move |place: &PathBuf| {
            real_path(place).filter(|real| Some(real) != own_path.as_ref())?;
            ElfImage::open(place).ok()
        };
        let elsewhere = self.other_namespaces(spec);
        places
            .into_iter()
            .flat_map(move |place| [here(&place), open_in(&elsewhere, &place)])
            .flatten()
            .filter(move |image| is_companion(image, binary))
            .chain(std::iter::once_with(move || self.fetched_companions(binary)).flatten())
    }

    /// The files at a place, here and as the binary's processes see it.
    pub(crate) fn open_all(
        &self,
        spec: &DsoSpec,
        place: &Path,
    ) -> impl Iterator<Item = ElfImage> + use<> {
        let below = open_in(&self.other_namespaces(spec), place);
        [ElfImage::open(place).ok(), below].into_iter().flatten()
    }

    /// Processes with mounts of their own, which may bring files along.
    fn other_namespaces(&self, spec: &DsoSpec) -> Vec<Pid> {
        let pids = spec.pids.iter().copied().filter(|_| self.symfs.is_none());
        pids.filter(|pid| sees_other_files(*pid)).collect()
    }

    /// The file of debug information that several binaries share, as `dwz` makes it:
    /// `.gnu_debugaltlink` gives its path and build id.
    pub(crate) fn open_supplement(&self, image: &ElfImage) -> Option<ElfImage> {
        let link = image.section_contents(".gnu_debugaltlink")?;
        let name_size = link.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(&link[..name_size]).ok()?;
        let id = BuildId::new(&link[name_size + 1..])?;
        let sibling = image.path().parent()?.join(name);
        let mut paths = vec![sibling, self.in_symfs(Path::new(name))];
        paths.extend(self.roots().map(|root| by_build_id(&root, id, ".debug")));
        let local = paths.into_iter();
        let local = local.filter_map(|path| check(ElfImage::open(&path).ok()?, Some(id)).ok());
        local.chain(self.fetched_supplement(image, id)).next()
    }
}

fn open_in(namespaces: &[Pid], place: &Path) -> Option<ElfImage> {
    let opened = |pid: &Pid| open_as_seen_by(Path::new(PROC), pid.0, place).ok();
    ElfImage::from_foreign(place, &namespaces.iter().find_map(opened)?).ok()
}

/// `root/.build-id/ab/cdef…` and `suffix`.
fn by_build_id(root: &Path, build_id: BuildId, suffix: &str) -> PathBuf {
    let hex = build_id.to_string();
    let (first, rest) = hex.split_at(2);
    root.join(".build-id").join(first).join(format!("{rest}{suffix}"))
}

/// Whether debug information belongs to a binary: by the build id, or by the checksum that the binary has of it.
fn is_companion(image: &ElfImage, binary: &ElfImage) -> bool {
    match (binary.build_id(), binary.debug_link_checksum()) {
        (Some(id), _) => image.build_id() == Some(id),
        (None, Some(checksum)) => libdeflater::crc32(image.bytes()) == checksum,
        (None, None) => true,
    }
}

/// True where the process still runs and has a mount namespace of its own.
pub(crate) fn sees_other_files(pid: Pid) -> bool {
    let namespace = |process: &Path| std::fs::read_link(process.join("ns/mnt")).ok();
    let proc = Path::new(PROC);
    let theirs = namespace(&living(proc, pid.0));
    theirs.is_some() && theirs != namespace(&proc.join("self"))
}

/// Refuses a file that is not the one that was recorded.
pub(crate) fn check(image: ElfImage, recorded: Option<BuildId>) -> Result<ElfImage, Reason> {
    match recorded {
        Some(recorded) if !is_same(image.build_id(), recorded) => Err(Reason::BuildIdDiffers {
            path: image.path().clone(),
            recorded,
            found: image.build_id(),
        }),
        _ => Ok(image),
    }
}

/// Old recordings pad build ids with zeros to 20 bytes.
pub(crate) fn is_same(found: Option<BuildId>, recorded: BuildId) -> bool {
    let Some(found) = found else { return false };
    let (found, recorded) = (found.as_bytes(), recorded.as_bytes());
    recorded.strip_prefix(found).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// True where the file itself names its functions, not only those that it exports.
pub(crate) fn has_symtab(image: &ElfImage) -> bool {
    image.string_table(TableKind::Symtab).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_perf() {
        let mut dirs = DebugDirs::standard(Some(Path::new("/home/me")));
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        let paths = dirs.companions(Path::new("/usr/bin/x"), Some("x.dbg"), Some(id));
        let expected = [
            "/usr/bin/x.dbg",
            "/usr/bin/.debug/x.dbg",
            "/usr/lib/debug/usr/bin/x.dbg",
            "/home/me/.debug/.build-id/ab/cdef/elf",
            "/home/me/.debug/.build-id/ab/cdef/debug",
            "/usr/lib/debug/usr/bin/x.debug",
            "/usr/lib/debug/usr/bin/x",
            "/usr/lib/debug/.build-id/ab/cdef.debug",
        ];
        assert_eq!(paths, expected.map(PathBuf::from));
        dirs.symfs = Some(PathBuf::from("/sys root"));
        assert_eq!(dirs.in_symfs(Path::new("/usr/bin/x")), Path::new("/sys root/usr/bin/x"));
    }

    #[test]
    fn padded_build_ids_are_the_same() {
        let id = |bytes: &[u8]| BuildId::new(bytes).unwrap();
        assert!(is_same(Some(id(&[1, 2])), id(&[1, 2])));
        assert!(is_same(Some(id(&[1, 2])), id(&[1, 2, 0, 0])));
        assert!(!is_same(Some(id(&[1, 2])), id(&[1, 2, 3])));
        assert!(!is_same(Some(id(&[1, 2, 3])), id(&[1, 2])));
        assert!(!is_same(None, id(&[1])));
    }
}
