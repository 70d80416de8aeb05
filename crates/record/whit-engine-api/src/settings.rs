//! Settings of a recording that the recorder and the engines both read.

use std::path::PathBuf;

/// Default size of a dump of the user's stack.
pub const DEFAULT_STACK_DUMP_BYTES: u32 = 8192;
/// Largest dump: what a 16-bit size holds, in whole words.
pub const MAX_STACK_DUMP_BYTES: u32 = 65_528;

/// How call chains are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// Samples have no call chains.
    #[default]
    None,
    /// The kernel follows frame pointers.
    FramePointer,
    /// The kernel copies this much of the user's stack and its registers, to be unwound later.
    Dwarf {
        /// Multiple of 8, at most [`MAX_STACK_DUMP_BYTES`].
        stack_dump_bytes: u32,
    },
    /// The CPU keeps the user's call chain in its branch records.
    Lbr,
}

/// Fields of samples beyond those that everything needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ExtraFields {
    pub physical_addresses: bool,
    pub data_page_sizes: bool,
    pub code_page_sizes: bool,
    pub data_sources: bool,
    pub weights: bool,
    pub transactions: bool,
    /// The event's id at the start of every sample, at the same offset for all sample types.
    pub identifier: bool,
}

/// Size of a ring's data area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingSize {
    /// As much as `perf_event_mlock_kb` allows every user per CPU.
    #[default]
    Default,
    /// This many pages, rounded up to a power of two.
    Pages(usize),
    /// This many bytes, rounded up to a power of two pages.
    Bytes(usize),
}

/// Where the system looks for commands and libraries: what the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoaderPaths {
    /// Directories of commands (`PATH`).
    pub commands: Vec<PathBuf>,
    /// Directories of libraries (`LD_LIBRARY_PATH`).
    pub libraries: Vec<PathBuf>,
    /// Libraries that every program gets (`LD_PRELOAD`).
    pub preloaded: Vec<PathBuf>,
}
