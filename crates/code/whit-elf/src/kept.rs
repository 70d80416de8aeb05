//! Where recorders keep copies of files that nobody will find any more, in perf's cache.

use std::path::{Path, PathBuf};

use whit_types::{FileId, FileStamp};

/// The name of a binary in its directory of perf's cache.
pub const KEPT_NAME: &str = "elf";

/// Where in perf's cache whit keeps a file without a build id; perf has no place for such.
pub fn kept_directory(stamp: &FileStamp) -> PathBuf {
    let FileStamp { id: FileId { device: (major, minor), inode }, size_bytes, modified_ns } = stamp;
    let name = format!("{major:x}-{minor:x}-{inode:x}-{size_bytes:x}-{modified_ns:x}");
    Path::new(".whit-files").join(name)
}
