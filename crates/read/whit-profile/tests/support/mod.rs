//! Shared by tests of whole recordings.

use std::path::Path;
use whit_profile::ReadOptions;
use whit_symbolize::{DebugDirs, SymbolizerConfig};

/// Options that look into no file of this machine.
pub(crate) fn options(threads: usize) -> ReadOptions {
    let nowhere = Path::new("/nonexistent/whit-test");
    let mut symbols =
        SymbolizerConfig::new(DebugDirs { symfs: Some(nowhere.into()), ..DebugDirs::none() });
    symbols.kernel.kallsyms = Some(nowhere.join("kallsyms"));
    symbols.perf_map_dirs.clear();
    ReadOptions::new(threads, symbols)
}
