//! Why a query failed, and the way out.

use crate::names::Names;
use rusqlite::ffi::ErrorCode;
use std::io;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The statement is wrong; the text names the nearest names.
    #[error("{0}")]
    Wrong(String),
    /// The statement could not be run to its end.
    #[error("{0}")]
    Failed(String),
    /// The query needs more memory than it may have.
    #[error(
        "the query needs more than {mib} MiB of memory: allow more with --memory, choose fewer columns, or keep a part \
         of it with CREATE TEMP TABLE"
    )]
    Memory {
        /// The limit.
        mib: u64,
    },
    /// Sorting needs room on a disk.
    #[error(
        "there is no room for temporary files: make room in /var/tmp, set SQLITE_TMPDIR to another folder, or allow \
         more memory with --memory"
    )]
    DiskFull,
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The output took no more.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl QueryError {
    /// The error of a statement that runs.
    pub(crate) fn of(error: &rusqlite::Error, sql: &str, names: &Names, max_bytes: u64) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OutOfMemory) => QueryError::Memory { mib: max_bytes >> 20 },
            Some(ErrorCode::DiskFull) => QueryError::DiskFull,
            Some(ErrorCode::OperationInterrupted) => QueryError::Interrupted,
            _ => QueryError::Failed(advise(&plain(error), sql, names)),
        }
    }
}

/// The message without the statement that some errors repeat.
fn plain(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

/// The message with the nearest names.
fn advise(message: &str, sql: &str, names: &Names) -> String {
    let rest = |begin: &str| message.strip_prefix(begin).map(str::trim);
    if let Some(name) = rest("no such column:") {
        return match names.nearest_column(name, sql) {
            Some((column, table)) => {
                format!("there is no column {name}: the nearest is {column} of {table}")
            }
            None => format!("there is no column {name}: .schema lists the columns of each table"),
        };
    }
    if let Some(name) = rest("no such table:") {
        return match names.nearest_table(name) {
            Some(table) => format!("there is no table {name}: the nearest is {table}"),
            None => {
                let all: Vec<_> = names.tables.iter().map(|(table, _)| table.as_str()).collect();
                format!("there is no table {name}: there are {}", all.join(", "))
            }
        };
    }
    if let Some(name) = rest("no such function:") {
        return match names.nearest_function(name) {
            Some(function) => format!("there is no function {name}: the nearest is {function}"),
            None => format!("there is no function {name}"),
        };
    }
    message.to_owned()
}
