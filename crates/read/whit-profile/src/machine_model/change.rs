//! Changes of the process model: mappings, names, forks.

use whit_perfdata::interpreted::InterpretedFunction;
use whit_perfdata::record::Task;
use whit_types::{Avma, BuildId, FileId, Pid, Tid, TimestampNs};

/// A change of the process model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Map {
        pid: Pid,
        start: Avma,
        len_bytes: u64,
        file_offset: u64,
        build_id: Option<BuildId>,
        file: Option<FileId>,
        kernel: bool,
        executable: bool,
        path: Box<[u8]>,
    },
    Comm {
        pid: Pid,
        tid: Tid,
        exec: bool,
        name: Box<[u8]>,
    },
    Fork {
        task: Task,
        /// False for processes that existed before the recording: their maps follow.
        copies_maps: bool,
    },
    KernelSymbol {
        start: Avma,
        len_bytes: u32,
        name: Box<[u8]>,
    },
    Cgroup {
        number: u64,
        path: Box<[u8]>,
    },
    /// A function of an interpreter. Its frames may be older.
    Function(Box<InterpretedFunction>),
}

/// A change and when it happened.
#[derive(Clone, Debug)]
pub(crate) struct TimedChange {
    pub(crate) time: TimestampNs,
    pub(crate) change: Change,
}
