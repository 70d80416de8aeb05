//! Reasons for which a file is no image.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why a file cannot be used as an ELF image. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file does not exist here.
    #[error("{}: no such file", path.display())]
    FileMissing {
        /// The file.
        path: Arc<Path>,
    },
    /// The file may not be read.
    #[error("{}: permission denied", path.display())]
    PermissionDenied {
        /// The file.
        path: Arc<Path>,
    },
    /// Reading failed otherwise.
    #[error("{}: cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: Arc<Path>,
        /// The answer of the system.
        error: Arc<str>,
    },
    /// The file is of another kind.
    #[error("{}: not an ELF file", path.display())]
    NotElf {
        /// The file.
        path: Arc<Path>,
    },
    /// The file's structure contradicts itself, or it was cut off.
    #[error("{}: corrupt ELF file: {part}", path.display())]
    Corrupt {
        /// The file.
        path: Arc<Path>,
        /// The part that was being read.
        part: Arc<str>,
    },
}

impl ElfError {
    /// An I/O error on `path`.
    pub fn from_io(path: &Path, error: &io::Error) -> ElfError {
        let path = Arc::from(path);
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ElfError::FileMissing { path }
            }
            io::ErrorKind::PermissionDenied => ElfError::PermissionDenied { path },
            _ => ElfError::Unreadable { path, error: Arc::from(error.to_string()) },
        }
    }

    /// `path` is broken at `part`.
    pub(crate) fn corrupt(path: &Path, part: impl fmt::Display) -> ElfError {
        ElfError::Corrupt { path: Arc::from(path), part: Arc::from(part.to_string()) }
    }
}
