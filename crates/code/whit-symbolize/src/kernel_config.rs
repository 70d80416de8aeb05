//! The kernel that was recorded, as a recording and the user describe it.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use whit_types::{Avma, BuildId};

/// Known facts of the recorded kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelConfig {
    /// An image with symbols, to be used before anything else.
    pub vmlinux: Option<PathBuf>,
    /// A list of symbols, to be used before the running kernel's.
    pub kallsyms: Option<PathBuf>,
    /// The running kernel's list, where it was opened with more rights than this process has by
    /// now; else it is opened when it is needed.
    pub running_list: Option<RunningList>,
    /// Build id as recorded.
    pub build_id: Option<BuildId>,
    /// Release of the recorded kernel, as `uname -r` prints it, where that is not the running one's:
    /// without a build id, the running kernel's symbols are then not used.
    pub other_release: Option<String>,
    /// A symbol (`_text` or `_stext`) and where it was, as the recording's kernel mapping says: tells
    /// how far the kernel was moved from the addresses that its image states.
    pub reference: Option<(String, Avma)>,
}

/// `/proc/kallsyms`, open. Whether the kernel shows addresses is decided at the opening.
#[derive(Clone, Debug)]
pub struct RunningList(pub(crate) Arc<File>);

impl RunningList {
    pub(crate) const PATH: &str = "/proc/kallsyms";

    /// Opens `/proc/kallsyms`, once for all later reads.
    pub fn open() -> io::Result<RunningList> {
        File::open(RunningList::PATH).map(RunningList::from)
    }

    /// The open file, for a program that this one becomes.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl From<File> for RunningList {
    fn from(file: File) -> RunningList {
        RunningList(Arc::new(file))
    }
}

impl PartialEq for RunningList {
    fn eq(&self, other: &RunningList) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RunningList {}
