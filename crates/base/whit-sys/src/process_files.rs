//! Opens the files that a process has mapped, and files as a process sees them.
//!
//! A path in `/proc/PID/maps` or in a mapping record says little: the file may be deleted, another file may
//! have its path by now, and the process may live in another mount namespace or below another root. So a
//! file is opened through the process as long as that runs, and by its path only then. However it was
//! opened, it is used only if the kernel names a mapping of it as the mapping that was recorded.
//!
//! Processes are hostile. Links of theirs are resolved below their own root, and nothing but a regular file
//! is opened for reading: to open a pipe can block, and to open a device can have effects. Files of procfs, tracefs and
//! their like are no regular ones here: reading `kmsg` or `trace_pipe` takes messages away from others.
//!
//! The file itself is always opened with the rights of whit's user. Borrowed capabilities serve to look into
//! the process's directory in `/proc` and no further.

mod file_facts;
mod foreign_file;
mod helper;
mod process;
mod process_file;
mod walk;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, Stat, major, minor, openat, readlinkat};
use whit_types::{FileId, OpenFailure};

use crate::maps::MapsLine;
use crate::{Errno, MappedFile};
pub use file_facts::FileFacts;
pub use foreign_file::{ForeignFile, Reader};
pub use helper::start as start_helper;
use process::Process;
pub use process::{
    living, open_as_seen_by, open_foreign, open_regular, open_regular_or_kernels, path_id,
    real_path,
};
pub use process_file::ProcessFile;
use walk::READ;

/// Mark that the kernel puts behind the path of a file that has none any more.
pub const DELETED: &[u8] = b" (deleted)";
/// Directory of a process's links to the files that it maps, named by addresses.
const LINKS: &str = "map_files/";
/// Bytes of a list of mappings that are read at once.
pub const MAPS_BYTES: usize = 64 << 10;

/// Why a file was not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// In which of the ways that are told apart.
    pub failure: OpenFailure,
    /// Last error of the kernel.
    pub errno: Option<Errno>,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.failure, self.errno) {
            (OpenFailure::Unreadable, Some(errno)) => write!(f, "{}", io::Error::from(errno)),
            (failure, _) => f.write_str(failure.text()),
        }
    }
}

impl std::error::Error for OpenError {}

impl OpenError {
    /// The file was opened, and reading it failed.
    pub fn reading(error: &io::Error) -> OpenError {
        match Errno::from_io_error(error) {
            Some(Errno::TIMEDOUT) => OpenError { failure: OpenFailure::NoAnswer, errno: None },
            errno => OpenError { failure: OpenFailure::Unreadable, errno },
        }
    }
}

/// Facts that tell the file from others that have had its path.
#[derive(Clone, Copy)]
pub enum Identity<'a> {
    /// Its number in a mapping.
    Mapping(FileId),
    /// A property of the opened file, such as its build id.
    Test(&'a dyn Fn(&ForeignFile) -> bool),
    /// No facts: any file at the path is taken.
    Path,
}

/// A mapped file.
#[derive(Clone)]
pub struct WantedFile<'a> {
    /// A process that maps it, if one is known.
    pub pid: Option<i32>,
    /// Processes that may see the same files, its parents for instance: it may have ended meanwhile.
    pub relatives: &'a [i32],
    /// Where the process maps it, if that is known.
    pub range: Option<Range<u64>>,
    /// Which file it is.
    pub identity: Identity<'a>,
    /// The path as the kernel gives it, with its mark for deleted files.
    pub path: &'a [u8],
}

/// Why one way did not lead to the file.
enum Miss {
    Errno(Errno),
    /// It led to another file.
    Another,
    NotRegular,
}

impl From<Errno> for Miss {
    fn from(errno: Errno) -> Miss {
        Miss::Errno(errno)
    }
}

impl Miss {
    fn into_errno(self) -> Errno {
        match self {
            Miss::Errno(errno) => errno,
            Miss::Another | Miss::NotRegular => Errno::INVAL,
        }
    }
}

/// Findings of the ways that did not lead to the file.
#[derive(Default)]
struct Misses {
    /// Another file is at the path.
    is_replaced: bool,
    is_not_regular: bool,
    /// Its file system does not answer.
    is_silent: bool,
    /// The kernel refused the path.
    is_refused: bool,
    /// Any error of the kernel other than that there is no file.
    other: Option<Errno>,
}

/// How a file is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a link of the process to the very file.
    Link,
    /// Opened by its path in our view of files.
    Path,
}

impl Misses {
    fn note(&mut self, way: Way, miss: Miss) {
        match miss {
            // A process that maps something else by now says nothing of the file.
            Miss::Another => self.is_replaced |= way == Way::Path,
            Miss::NotRegular => self.is_not_regular = true,
            Miss::Errno(Errno::NOENT | Errno::NOTDIR | Errno::SRCH) => {}
            Miss::Errno(Errno::ACCESS | Errno::PERM) => self.is_refused |= way == Way::Path,
            Miss::Errno(Errno::TIMEDOUT) => self.is_silent = true,
            Miss::Errno(errno) => self.other = Some(errno),
        }
    }

    fn verdict(&self, path: &[u8], is_elsewhere: bool) -> OpenError {
        let failure = match self {
            Misses { is_silent: true, .. } => OpenFailure::NoAnswer,
            Misses { is_replaced: true, .. } => OpenFailure::Replaced,
            Misses { is_not_regular: true, .. } => OpenFailure::NotRegular,
            _ if path.ends_with(DELETED) => OpenFailure::Deleted,
            Misses { is_refused: true, .. } => OpenFailure::PermissionDenied,
            _ if is_elsewhere => OpenFailure::OtherNamespace,
            Misses { other: Some(_), .. } => OpenFailure::Unreadable,
            _ => OpenFailure::Missing,
        };
        OpenError { failure, errno: self.other }
    }
}

impl WantedFile<'_> {
    /// Opens the file for reading. `proc` is where procfs is mounted.
    ///
    /// # Errors
    ///
    /// Why nothing led to the file.
    pub fn open(&self, proc: &Path) -> Result<ForeignFile, OpenError> {
        let mut misses = Misses::default();
        let mut is_elsewhere = false;
        if let Some(process) = self.pid.and_then(|pid| Process::find(proc, pid).ok()) {
            match self.through(&process, &mut misses) {
                Ok(file) => return Ok(file),
                Err(miss) => misses.note(Way::Link, miss),
            }
            is_elsewhere = process.has_other_mounts(proc);
        }
        let is_identified = !matches!(self.identity, Identity::Path);
        if is_identified {
            let relatives = self.relatives.iter().filter_map(|pid| Process::find(proc, *pid).ok());
            for process in relatives {
                if let Ok(file) = self.below_root(&process) {
                    return Ok(file);
                }
                is_elsewhere |= process.has_other_mounts(proc);
            }
        }
        // Where a process sees other files, a file in our view at the same path proves nothing,
        // whether it is the same or another.
        if !is_elsewhere || is_identified {
            match self.by_path() {
                Ok(file) => return Ok(file),
                Err(miss) if !is_elsewhere => misses.note(Way::Path, miss),
                Err(_) => {}
            }
        }
        Err(misses.verdict(self.path, is_elsewhere))
    }

    /// Tries one way after the other, the surest first. The last miss is one of a link.
    fn through(&self, process: &Process, misses: &mut Misses) -> Result<ForeignFile, Miss> {
        let found = self.at_its_range(process).or_else(|miss| {
            misses.note(Way::Link, miss);
            self.as_program(process)
        });
        let found = found.or_else(|miss| {
            misses.note(Way::Link, miss);
            self.below_root(process)
        });
        found.or_else(|miss| {
            misses.note(Way::Path, miss);
            self.anywhere(process)
        })
    }

    /// The link that leads to the very file of a mapping, even if its path is gone. It takes
    /// `cap_sys_admin`, or `cap_checkpoint_restore` since Linux 5.9.
    fn at_its_range(&self, process: &Process) -> Result<ForeignFile, Miss> {
        let Some(range) = &self.range else { return Err(Errno::NOENT.into()) };
        self.linked(process, &link_of(range))
    }

    /// The program that the process runs.
    fn as_program(&self, process: &Process) -> Result<ForeignFile, Miss> {
        self.linked(process, "exe")
    }

    fn linked(&self, process: &Process, link: &str) -> Result<ForeignFile, Miss> {
        let found = helper::follow_of_process(&process.directory, process.pid, Path::new(link))?;
        let leads_to_it = || {
            let target = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()));
            target.is_ok_and(|target| self.is_path(target.as_os_str().as_bytes()))
        };
        if !matches!(self.identity, Identity::Mapping(_)) && !leads_to_it() {
            return Err(Miss::Another);
        }
        self.check(ForeignFile::open(found)?, link.starts_with(LINKS))
    }

    /// The path as the process sees it.
    fn below_root(&self, process: &Process) -> Result<ForeignFile, Miss> {
        let root = process.root()?;
        // The path is told from the root of the mount namespace, which need not be that of the process.
        let above = readlinkat(&process.directory, "root", []).unwrap_or_default();
        let below = self.path.strip_prefix(above.as_bytes()).filter(|path| path.starts_with(b"/"));
        self.first_of([Some(self.path), below, self.unmarked()], |path| {
            helper::look(Some(&root), path)
        })
    }

    /// The path as whit sees it.
    fn by_path(&self) -> Result<ForeignFile, Miss> {
        self.first_of([Some(self.path), self.unmarked(), None], |path| helper::look(None, path))
    }

    /// Where the file was before it was deleted, if the present directory shows it.
    fn unmarked(&self) -> Option<&[u8]> {
        let path = self.path.strip_suffix(DELETED)?;
        (!matches!(self.identity, Identity::Path)).then_some(path)
    }

    /// Whether the kernel may mean the file by this path. With a test, the mark does not matter.
    fn is_path(&self, path: &[u8]) -> bool {
        let strip = |path| <[u8]>::strip_suffix(path, DELETED).unwrap_or(path);
        match self.identity {
            Identity::Path => path == self.path,
            _ => strip(path) == strip(self.path),
        }
    }

    /// The first of some paths that leads to the file.
    fn first_of(
        &self,
        paths: [Option<&[u8]>; 3],
        open: impl Fn(&Path) -> Result<OwnedFd, Errno>,
    ) -> Result<ForeignFile, Miss> {
        let mut result = Err(Errno::NOENT.into());
        for path in paths.into_iter().flatten() {
            match open(Path::new(OsStr::from_bytes(path))) {
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                found => {
                    result = ForeignFile::open(found?).and_then(|file| self.check(file, false));
                    if result.is_ok() {
                        break;
                    }
                }
            }
        }
        result
    }

    /// A mapping of the file that lies elsewhere than was said: linkers map over parts of it.
    fn anywhere(&self, process: &Process) -> Result<ForeignFile, Miss> {
        let maps = openat(&process.directory, "maps", READ, Mode::empty())?;
        let maps = BufReader::with_capacity(MAPS_BYTES, ProcessFile::of(maps, process.pid));
        let mut lines = maps.split(b'\n').map_while(Result::ok);
        let range = lines.find_map(|line| {
            let line = MapsLine::parse(&line)?;
            let is_it = match self.identity {
                // The device number of a file on overlayfs, in records and maps, differs between
                // kernels.
                Identity::Mapping(id) => {
                    line.inode == id.inode && (line.file_id() == id || self.is_path(line.path))
                }
                _ => self.is_path(line.path),
            };
            is_it.then(|| line.range())
        });
        self.linked(process, &link_of(&range.ok_or(Errno::NOENT)?))
    }

    /// Lets nothing through but the file that was mapped.
    fn check(&self, file: ForeignFile, is_of_mapping: bool) -> Result<ForeignFile, Miss> {
        let is_it = match self.identity {
            Identity::Path => true,
            Identity::Test(is_it) => is_it(&file),
            Identity::Mapping(id) => has_id(&file, id, is_of_mapping),
        };
        if is_it { Ok(file) } else { Err(Miss::Another) }
    }
}

/// Whether the kernel calls a file so in mappings.
fn has_id(file: &ForeignFile, id: FileId, is_of_mapping: bool) -> bool {
    let stated = file.facts().id;
    // Some kernels (Linux 6.8 to 6.17) name in mapping records the file that lies below the overlay.
    let is_overlaid = || is_of_mapping && stated.inode == id.inode && file.is_overlaid();
    stated == id || file.id_when_mapped() == Some(id) || is_overlaid()
}

/// Whether a file at a path that a process chose may count as its own: a file of its user, or one that root wrote for
/// it. The process may lead to any file of root's, by a link or a mount; those that not everybody may read are root's
/// secrets.
pub fn may_be_written_for(user: u32, facts: &FileFacts) -> bool {
    const ROOT: u32 = 0;
    const READ_BY_ALL: u32 = 0o004;
    let is_public = facts.mode & READ_BY_ALL != 0;
    facts.user == user || facts.user == ROOT && is_public
}

/// A file as `stat` names it.
pub fn stated_id(metadata: &std::fs::Metadata) -> FileId {
    let device = metadata.dev();
    FileId { device: (major(device), minor(device)), inode: metadata.ino() }
}

fn stated(stat: &Stat) -> FileId {
    FileId { device: (major(stat.st_dev), minor(stat.st_dev)), inode: stat.st_ino }
}

/// The kernel's names of the files that hold these addresses of this process.
pub fn ids_of_own(addresses: &[u64]) -> Vec<Option<FileId>> {
    let text = std::fs::read("/proc/self/maps").unwrap_or_default();
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').filter_map(MapsLine::parse).collect();
    let of = |address: &u64| {
        let after = lines.partition_point(|line| line.start <= *address);
        let line = lines.get(after.checked_sub(1)?).filter(|line| *address < line.end)?;
        Some(line.file_id()).filter(|id| id.inode != 0)
    };
    addresses.iter().map(of).collect()
}

/// The kernel's name of the file in a mapping of it. Nothing for an empty one.
pub fn id_when_mapped(file: &File) -> Option<FileId> {
    let map = MappedFile::map(file).ok().filter(|map| !map.is_empty())?;
    *ids_of_own(&[map.as_ptr() as u64]).first()?
}

fn link_of(range: &Range<u64>) -> String {
    format!("{LINKS}{:x}-{:x}", range.start, range.end)
}

#[cfg(test)]
mod tests;
