//! Settings of a symbolizer.

use std::path::PathBuf;
use std::sync::Arc;

use whit_unwind::Bytes;

use crate::companion::DebugDirs;
use crate::embedded::EmbeddedNames;
use crate::kernel_config::KernelConfig;

/// Where to look, and how much to look for.
#[derive(Clone, Debug)]
pub struct SymbolizerConfig {
    /// Debug companions, perf's cache, symfs.
    pub debug_dirs: DebugDirs,
    /// The kernel that was recorded.
    pub kernel: KernelConfig,
    /// Directories of perf-map files.
    pub perf_map_dirs: Vec<PathBuf>,
    /// The vdso that was recorded, for example [`own_vdso`](whit_elf::own_vdso) where the recording was
    /// made under the running kernel.
    pub vdso: Option<Bytes>,
    /// Look for inlined functions.
    pub inlines: bool,
    /// Look for files and lines.
    pub lines: bool,
    /// Make names readable.
    pub demangle: bool,
    /// Names that the recording carries itself: used before those of binaries.
    pub embedded: Option<Arc<EmbeddedNames>>,
    /// Note all answers, for a [`NamesWriter`](crate::NamesWriter).
    pub notes: bool,
}

impl SymbolizerConfig {
    /// Everything on, in the places of `debug_dirs` and `/tmp`.
    pub fn new(debug_dirs: DebugDirs) -> SymbolizerConfig {
        SymbolizerConfig {
            debug_dirs,
            kernel: KernelConfig::default(),
            perf_map_dirs: vec![PathBuf::from("/tmp")],
            vdso: None,
            inlines: true,
            lines: true,
            demangle: true,
            embedded: None,
            notes: false,
        }
    }
}
