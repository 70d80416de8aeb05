//! Why a dataset cannot be written or read.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};
use whit_tables::TableError;
use whit_types::escape;

/// Why a dataset cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// Not a dataset.
    #[error("there is no dataset in {0}: `whit export --parquet {0} -i FILE` makes one")]
    Absent(String),
    /// A file or folder cannot be used.
    #[error("{path}: {source}{}", way_out(source))]
    Io {
        /// The path for messages.
        path: String,
        /// Reported by the system.
        source: io::Error,
    },
    /// A file is not as it should be.
    #[error("{path}: {problem}")]
    Part {
        /// The path for messages.
        path: String,
        /// Its cause with the remedy.
        problem: String,
    },
    /// Two recordings have one number.
    #[error(
        "two recordings of the dataset have the number {id}: {one} and {other}. Where one is a copy, take it away; else \
         keep them in two datasets"
    )]
    SameNumber {
        /// The number.
        id: i64,
        /// The file of the former.
        one: String,
        /// The file of the latter.
        other: String,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Recording(#[from] TableError),
    /// A table has more rows than numbers.
    #[error(
        "the recording has too many rows in {table}: export parts of it (whit record --switch-output makes smaller ones)"
    )]
    TooManyRows {
        /// Name of the table.
        table: &'static str,
    },
}

/// The remedy for a refusal of the system, where there is one.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": use a folder that this user may read and write, or run as its owner"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": name a folder in which files can be made",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": make room, then run the same command again; what the dataset has is whole"
        }
        _ => "",
    }
}

impl DatasetError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> DatasetError + use<> {
        let path = shown(path);
        move |source| DatasetError::Io { path, source }
    }

    /// Why the library of Parquet cannot write; it wraps refusals of the system.
    pub(crate) fn written(path: &Path, error: ParquetError) -> DatasetError {
        let problem = error.to_string();
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => DatasetError::io(path)(*source),
                Err(_) => DatasetError::part(path, problem),
            },
            _ => DatasetError::part(path, problem),
        }
    }

    pub(crate) fn part(path: &Path, problem: impl Into<String>) -> DatasetError {
        DatasetError::Part { path: shown(path), problem: problem.into() }
    }
}

impl From<DatasetError> for TableError {
    fn from(error: DatasetError) -> TableError {
        match error {
            DatasetError::Recording(error) => error,
            DatasetError::Io { path, source } => {
                TableError::Load { path, problem: source.to_string() }
            }
            DatasetError::Part { path, problem } => TableError::Load { path, problem },
            other => {
                TableError::Load { path: "the dataset".to_owned(), problem: other.to_string() }
            }
        }
    }
}

/// A path for messages: names of hosts are in it.
pub(crate) fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy()).to_string()
}

/// The entries of a folder by name; none where it is not there.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let read = match std::fs::read_dir(folder) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DatasetError::io(folder)(error)),
    };
    let mut paths = Vec::new();
    for entry in read {
        paths.push(entry.map_err(DatasetError::io(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_system_name_the_way_out() {
        let said = |kind: io::ErrorKind| DatasetError::io(Path::new("ds"))(kind.into()).to_string();
        assert!(said(io::ErrorKind::PermissionDenied).contains("run as its owner"));
        assert!(said(io::ErrorKind::ReadOnlyFilesystem).contains("name a folder"));
        assert!(said(io::ErrorKind::StorageFull).contains("make room"));
        assert!(said(io::ErrorKind::NotFound).ends_with("not found"));
        let full = ParquetError::External(Box::new(io::Error::from(io::ErrorKind::StorageFull)));
        let full = DatasetError::written(Path::new("ds"), full).to_string();
        assert!(full.contains("make room"), "{full}");
        let other = DatasetError::written(Path::new("ds"), ParquetError::EOF("cut".to_owned()));
        assert!(other.to_string().contains("cut"), "{other}");
    }
}
