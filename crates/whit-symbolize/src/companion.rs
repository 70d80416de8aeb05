//! Where the debug companion of a stripped binary may lie, and the cached copies that perf keeps.
//!
//! Places and order are those of perf (`util/symbol.c`, `util/dso.c`) and of GDB's manual ("Debugging
//! Information in Separate Files").

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whit_types::{BuildId, FileId, FileStamp, Pid};

use crate::reason::Reason;
use whit_elf::{ElfImage, TableKind};

/// Where to look for binaries and their companions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugDirs {
    /// Roots of separate debug information.
    pub roots: Vec<PathBuf>,
    /// perf's cache of recorded binaries.
    pub perf_cache: Option<PathBuf>,
    /// A directory that stands for `/` of the machine that was recorded.
    pub symfs: Option<PathBuf>,
}

impl DebugDirs {
    /// `/usr/lib/debug`, and `.debug` in `home`.
    pub fn standard(home: Option<&Path>) -> DebugDirs {
        DebugDirs {
            roots: vec![PathBuf::from("/usr/lib/debug")],
            perf_cache: home.map(|home| home.join(".debug")),
            symfs: None,
        }
    }

    /// Nowhere but at the recorded path itself.
    pub fn none() -> DebugDirs {
        DebugDirs { roots: Vec::new(), perf_cache: None, symfs: None }
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

    /// Where the binary itself may lie.
    fn binaries(&self, path: &Path, build_id: Option<BuildId>, pid: Option<Pid>) -> Vec<PathBuf> {
        let mut paths = vec![self.in_symfs(path)];
        // A process in a mount namespace of its own sees its own files.
        if let (Some(pid), None) = (pid, &self.symfs) {
            let inside = path.strip_prefix("/").unwrap_or(path);
            paths.push(PathBuf::from(format!("/proc/{}/root", pid.0)).join(inside));
        }
        paths.extend(build_id.and_then(|id| self.cached(id, "elf")));
        paths
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

    /// Opens the binary that was recorded, checking its build id. A companion that has the build id
    /// stands in for a binary that is gone.
    pub fn open_binary(
        &self,
        path: &Path,
        build_id: Option<BuildId>,
        pid: Option<Pid>,
    ) -> Result<ElfImage, Reason> {
        let mut first_failure = None;
        for candidate in self.binaries(path, build_id, pid) {
            let opened = ElfImage::open(&candidate).map_err(Reason::from);
            let opened = opened.and_then(|image| check(image, build_id));
            match opened {
                Ok(image) => return Ok(image),
                Err(reason) => {
                    first_failure.get_or_insert(reason);
                }
            }
        }
        let stand_in = build_id.and_then(|id| {
            let paths = self.roots().map(|root| by_build_id(&root, id, ".debug"));
            paths.into_iter().find_map(|path| check(ElfImage::open(&path).ok()?, Some(id)).ok())
        });
        stand_in.ok_or_else(|| {
            first_failure.unwrap_or_else(|| Reason::FileMissing { path: Arc::from(path) })
        })
    }

    /// The companions of `binary` that exist and belong to it, best first. `path` is the recorded
    /// path.
    pub(crate) fn open_companions<'a>(
        &'a self,
        path: &Path,
        binary: &'a ElfImage,
    ) -> impl Iterator<Item = ElfImage> + 'a {
        let link = binary.debug_link();
        let own_path = std::fs::canonicalize(binary.path()).ok();
        self.companions(path, link.as_deref(), binary.build_id())
            .into_iter()
            .filter(move |candidate| {
                std::fs::canonicalize(candidate).is_ok_and(|real| Some(real) != own_path)
            })
            .filter_map(|candidate| ElfImage::open(&candidate).ok())
            .filter(|image| binary.build_id().is_none() || image.build_id() == binary.build_id())
    }

    /// The file of debug information that several binaries share, as `dwz` makes it:
    /// `.gnu_debugaltlink` gives its path and build id.
    pub(crate) fn open_supplement(&self, image: &ElfImage) -> Option<ElfImage> {
        let link = image.section_contents(".gnu_debugaltlink")?;
        let name_size = link.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(&link[..name_size]).ok()?;
        let id = BuildId::new(&link[name_size + 1..])?;
        let beside = image.path().parent()?.join(name);
        let mut paths = vec![beside, self.in_symfs(Path::new(name))];
        paths.extend(self.roots().map(|root| by_build_id(&root, id, ".debug")));
        paths.into_iter().find_map(|path| check(ElfImage::open(&path).ok()?, Some(id)).ok())
    }
}

/// The name of a binary in its directory of perf's cache.
pub const KEPT_NAME: &str = "elf";

/// Where in perf's cache whit keeps a file without a build id; perf has no place for such.
pub fn kept_directory(stamp: &FileStamp) -> PathBuf {
    let FileStamp { id: FileId { device: (major, minor), inode }, size_bytes, modified_ns } = stamp;
    let name = format!("{major:x}-{minor:x}-{inode:x}-{size_bytes:x}-{modified_ns:x}");
    Path::new(".whit-files").join(name)
}

/// `root/.build-id/ab/cdef…` and `suffix`.
fn by_build_id(root: &Path, build_id: BuildId, suffix: &str) -> PathBuf {
    let hex = build_id.to_string();
    let (first, rest) = hex.split_at(2);
    root.join(".build-id").join(first).join(format!("{rest}{suffix}"))
}

/// Refuses a file that is not the one that was recorded.
fn check(image: ElfImage, recorded: Option<BuildId>) -> Result<ElfImage, Reason> {
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
fn is_same(found: Option<BuildId>, recorded: BuildId) -> bool {
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
        let paths = dirs.binaries(Path::new("/usr/bin/x"), None, Some(Pid(1)));
        assert_eq!(paths, [PathBuf::from("/sys root/usr/bin/x")]);
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
