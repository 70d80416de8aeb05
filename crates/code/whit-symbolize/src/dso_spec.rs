//! Names a binary by all that a recording says of it.

use std::path::PathBuf;
use std::time::SystemTime;

use whit_types::{BuildId, Pid};

use crate::file_identity::FileIdentity;

/// Kind of object that holds the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DsoKind {
    /// An ELF file. Addresses are as the file states them.
    Elf,
    /// The vdso. Addresses are as its image states them.
    Vdso,
    /// The kernel. Addresses are actual ones.
    Kernel,
    /// A kernel module. Addresses are actual ones.
    KernelModule,
    /// Memory that a JIT compiler of process `pid` may have named in a perf-map. Addresses are actual
    /// ones.
    PerfMap,
    /// A jitdump file. Addresses are offsets in the file, as [`locate_jit`](crate::DsoSymbols::locate_jit) gives them.
    JitDump,
    /// Memory without a file: heap, stack, anonymous.
    Unknown,
}

/// Which binary.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DsoSpec {
    /// Kind of object that holds the code.
    pub kind: DsoKind,
    /// Path as recorded; without meaning for the kernel and for perf-maps.
    pub path: PathBuf,
    /// Build id as recorded: a file with another one is not used.
    pub build_id: Option<BuildId>,
    /// Further facts about a file.
    pub identity: FileIdentity,
    /// Processes of this machine that mapped it, the likeliest to run still first: needed for perf-maps, and
    /// to find files that have no path here.
    pub pids: Vec<Pid>,
    /// When the process of a perf-map began, if the recording saw that: an older file is not used.
    pub process_began: Option<SystemTime>,
    /// The jitdump file that the process of a perf-map mapped.
    pub jitdump: Option<PathBuf>,
    /// Its number among the names that the recording carries itself.
    pub embedded: Option<u32>,
}

impl DsoSpec {
    /// The recorded kernel, which the symbolizer's configuration describes.
    pub fn kernel() -> DsoSpec {
        DsoSpec::new(DsoKind::Kernel, PathBuf::new())
    }

    /// A file with no known facts but the path.
    pub fn new(kind: DsoKind, path: PathBuf) -> DsoSpec {
        DsoSpec {
            kind,
            path,
            build_id: None,
            identity: FileIdentity::default(),
            pids: Vec::new(),
            process_began: None,
            jitdump: None,
            embedded: None,
        }
    }
}
