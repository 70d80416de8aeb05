//! Where perf's cache of binaries is, by this process's environment.

use std::path::PathBuf;

use whit_host::perf_cache::CacheEnvironment;

/// The cache's directory; `None` for a user without a home.
pub(crate) fn directory() -> Option<PathBuf> {
    let environment = CacheEnvironment {
        home: std::env::home_dir(),
        buildid_dir: std::env::var_os("PERF_BUILDID_DIR"),
        config: std::env::var_os("PERF_CONFIG"),
    };
    environment.directory()
}
