//! Why there is no symbol.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use whit_elf::ElfError;
use whit_sys::Errno;
use whit_types::{BuildId, Pid};

/// How there would be a copy.
const NO_COPY: &str =
    " (whit record without -N keeps a copy; perf buildid-cache -a FILE adds the right file)";
/// The kernel's mark behind paths.
const DELETED: &str = " (deleted)";

/// Why an address, or a whole binary, has no symbols. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file does not exist here.
    FileMissing {
        /// The file.
        path: Arc<Path>,
    },
    /// A process of this machine mapped the file, and nothing leads to it any more.
    Gone {
        /// The file.
        path: Arc<Path>,
    },
    /// The file may not be read.
    PermissionDenied {
        /// The file.
        path: Arc<Path>,
    },
    /// The file was deleted, and no process leads to it any more.
    Deleted {
        /// The file.
        path: Arc<Path>,
    },
    /// Another file has the path now. It is not used.
    Replaced {
        /// The file.
        path: Arc<Path>,
    },
    /// The file was written after the recording. It is not used.
    ChangedSince {
        /// The file.
        path: Arc<Path>,
    },
    /// The path is one of another mount namespace, which may not be entered.
    OtherNamespace {
        /// The file.
        path: Arc<Path>,
    },
    /// Reading failed otherwise.
    Unreadable {
        /// The file.
        path: Arc<Path>,
        /// Error of the system.
        error: Arc<str>,
    },
    /// The file is no ELF file.
    NotElf {
        /// The file.
        path: Arc<Path>,
    },
    /// The file's structure contradicts itself, or it was cut off.
    Corrupt {
        /// The file.
        path: Arc<Path>,
        /// Table or section that was being read.
        what: Arc<str>,
    },
    /// The file is not the one that was recorded. It is not used.
    BuildIdDiffers {
        /// The file.
        path: Arc<Path>,
        /// The recording's build id.
        recorded: BuildId,
        /// The file's build id, if it has one.
        found: Option<BuildId>,
    },
    /// The file has no symbols for code, and no companion file has any.
    NoSymbols {
        /// The file.
        path: Arc<Path>,
    },
    /// There are symbols; none of them covers the address.
    OutsideSymbols,
    /// The kernel hides its addresses from this user (`kernel.kptr_restrict`).
    KallsymsHidden {
        /// The list of symbols.
        path: Arc<Path>,
    },
    /// The recording was made under another kernel, and no copy of its symbols is at hand.
    OtherKernel {
        /// Build id of the recorded kernel.
        recorded: BuildId,
    },
    /// The recording was made under a kernel of another release, and does not name its build id.
    OtherRelease {
        /// Release of the recorded kernel.
        release: Arc<str>,
    },
    /// No perf-map and no jitdump file names the JIT code of this process.
    NoJitNames {
        /// The process.
        pid: Pid,
    },
    /// There is no perf-map and no jitdump file of this process, which has ended.
    JitNamesGone {
        /// The process.
        pid: Pid,
    },
    /// The process's jitdump file does not name the code, and there is no perf-map.
    NotInJitDump {
        /// The jitdump file.
        path: Arc<Path>,
    },
    /// The jitdump file has several functions at the address, each from another time on, and the recording does not say
    /// how its clock is related to the file's.
    JitClockUnknown {
        /// The jitdump file.
        path: Arc<Path>,
    },
    /// The jitdump file says that its times are those of a counter of the CPU, and has several functions at the address.
    JitClockIsCpus {
        /// The jitdump file.
        path: Arc<Path>,
    },
    /// All code that the jitdump file has at the address is of a later time than the samples.
    JitCodeLater {
        /// The jitdump file.
        path: Arc<Path>,
    },
    /// The perf-map belongs to neither the process's user nor root. It is not used.
    ForeignPerfMap {
        /// The file.
        path: Arc<Path>,
        /// The number of its user.
        owner: u32,
    },
    /// The perf-map was written before the process began: an earlier process of the same number wrote it. It is not
    /// used.
    StalePerfMap {
        /// The file.
        path: Arc<Path>,
    },
    /// The image of the vdso that was recorded is not at hand.
    VdsoUnknown,
    /// Memory that no file or JIT compiler stands behind.
    NotCode,
    /// As the recording itself has it: the reason on the machine that wrote its names.
    Recorded {
        /// The reason in words.
        text: Arc<str>,
        /// The file was not opened.
        unopened: bool,
    },
}

impl Reason {
    /// An I/O error on `path`.
    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Reason {
        ElfError::from_io(path, error).into()
    }

    /// Why [`whit_sys::process_files`] did not open a file.
    pub(crate) fn unopened(path: &Path, errno: Errno) -> Reason {
        match errno {
            Errno::INVAL => {
                Reason::Unreadable { path: path.into(), error: Arc::from("not a regular file") }
            }
            errno => Reason::from_io(path, &errno.into()),
        }
    }

    /// Another process cut the file while it was read.
    pub(crate) fn cut(path: &Arc<Path>) -> Reason {
        Reason::Unreadable { path: path.clone(), error: Arc::from("it was cut while it was read") }
    }

    /// Whether the file was not opened, so that its contents are unknown.
    pub fn is_unopened(&self) -> bool {
        matches!(
            self,
            Reason::FileMissing { .. }
                | Reason::Gone { .. }
                | Reason::PermissionDenied { .. }
                | Reason::Deleted { .. }
                | Reason::Replaced { .. }
                | Reason::ChangedSince { .. }
                | Reason::OtherNamespace { .. }
                | Reason::Unreadable { .. }
                | Reason::BuildIdDiffers { .. }
                | Reason::Recorded { unopened: true, .. }
        )
    }

    /// `path` is broken at `what`.
    pub(crate) fn corrupt(path: &Path, what: impl fmt::Display) -> Reason {
        Reason::Corrupt { path: Arc::from(path), what: Arc::from(what.to_string()) }
    }
}

impl From<ElfError> for Reason {
    fn from(error: ElfError) -> Reason {
        match error {
            ElfError::FileMissing { path } => Reason::FileMissing { path },
            ElfError::PermissionDenied { path } => Reason::PermissionDenied { path },
            ElfError::Unreadable { path, error } => Reason::Unreadable { path, error },
            ElfError::NotElf { path } => Reason::NotElf { path },
            ElfError::Corrupt { path, part } => Reason::Corrupt { path, what: part },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::FileMissing { path } => write!(
                f,
                "{}: no such file (if it lies elsewhere, name the root with --symfs)",
                path.display()
            ),
            Reason::Gone { path } => write!(
                f,
                "{}: not there any more (deleted, moved, or of a container that has ended), and no process leads to \
                 it{NO_COPY}",
                path.display()
            ),
            Reason::PermissionDenied { path } => {
                write!(f, "{}: permission denied (read it as its owner or root)", path.display())
            }
            Reason::Deleted { path } => write!(
                f,
                "{}: deleted, and no process leads to it{NO_COPY}",
                path.to_string_lossy().trim_end_matches(DELETED)
            ),
            Reason::Replaced { path } => write!(
                f,
                "{}: another file than the recorded one (inode, size or time of the last change \
                 differ); it is not used{NO_COPY}",
                path.display()
            ),
            Reason::ChangedSince { path } => write!(
                f,
                "{}: changed after the recording was made, and neither has a build id; it is not \
                 used",
                path.display()
            ),
            Reason::OtherNamespace { path } => write!(
                f,
                "{}: a path of another mount namespace (as root, whit looks there)",
                path.display()
            ),
            Reason::Unreadable { path, error } => {
                write!(f, "{}: cannot be read: {error}", path.display())
            }
            Reason::NotElf { path } => write!(f, "{}: not an ELF file", path.display()),
            Reason::Corrupt { path, what } => {
                write!(f, "{}: corrupt file: {what}", path.display())
            }
            Reason::BuildIdDiffers { path, recorded, found: Some(found) } => write!(
                f,
                "{}: is another build ({found}) than the recorded one ({recorded}){NO_COPY}",
                path.display()
            ),
            Reason::BuildIdDiffers { path, recorded, found: None } => write!(
                f,
                "{}: has no build id, so it is not known to be the recorded one ({recorded})",
                path.display()
            ),
            Reason::NoSymbols { path } => write!(
                f,
                "{}: no symbols (install its debug symbols, or build without strip)",
                path.display()
            ),
            Reason::OutsideSymbols => f.write_str("no symbol covers the address"),
            Reason::KallsymsHidden { path } => write!(
                f,
                "{}: the kernel hides its addresses (sysctl kernel.kptr_restrict=0, or as root)",
                path.display()
            ),
            Reason::OtherKernel { recorded } => write!(
                f,
                "the recording was made under another kernel ({recorded}); name its symbols with \
                 --vmlinux or --kallsyms"
            ),
            Reason::OtherRelease { release } => write!(
                f,
                "the recording was made under another kernel (release {release}); name its symbols \
                 with --vmlinux or --kallsyms"
            ),
            Reason::NoJitNames { pid } => {
                write!(f, "process {} has neither a perf-map nor a jitdump file", pid.0)
            }
            Reason::JitNamesGone { pid } => write!(
                f,
                "process {} has ended, and there is neither a perf-map nor a jitdump file of it here, nor a copy; a \
                 container's go with it (whit record without -N keeps copies)",
                pid.0
            ),
            Reason::NotInJitDump { path } => {
                write!(
                    f,
                    "{}: has no code at these addresses, and no perf-map names it",
                    path.display()
                )
            }
            Reason::JitClockUnknown { path } => write!(
                f,
                "{}: has other code at these addresses at other times, and the recording does not state how its clock \
                 is related to that of the file (record with -k mono)",
                path.display()
            ),
            Reason::JitClockIsCpus { path } => write!(
                f,
                "{}: has other code at these addresses at other times, by a counter of the CPU, which the recording \
                 does not state (let the compiler stamp its code by CLOCK_MONOTONIC)",
                path.display()
            ),
            Reason::JitCodeLater { path } => write!(
                f,
                "{}: has code at these addresses from a later time on than the samples (a compiler has to stamp its \
                 code by CLOCK_MONOTONIC)",
                path.display()
            ),
            Reason::ForeignPerfMap { path, owner } => write!(
                f,
                "{}: belongs to user {owner}, neither to the process's user nor to root; it is not used (if it is \
                 right, change its owner: chown root)",
                path.display()
            ),
            Reason::StalePerfMap { path } => write!(
                f,
                "{}: older than the process, so that another process of the same number wrote it; it is not used",
                path.display()
            ),
            Reason::VdsoUnknown => f.write_str("the recorded vdso is not this kernel's"),
            Reason::NotCode => f.write_str("memory without a file"),
            Reason::Recorded { text, .. } => f.write_str(text),
        }
    }
}
