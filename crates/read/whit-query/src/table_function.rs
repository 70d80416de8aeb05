//! Functions that give rows, from rows of statements.

use rusqlite::types::Value;
use rusqlite::{Connection, Error, Result, Row};
use std::sync::Arc;
use whit_tables::Budget;

/// Parts of a function's row, one after the other.
pub(crate) trait Rows {
    /// Goes to the next row; false behind the last one.
    fn advance(&mut self) -> Result<bool>;

    /// A value of the current row.
    fn value(&self, column: usize) -> Value;
}

/// Starts a function with its arguments and the memory that it may take.
type Run = fn(&Connection, &[Option<String>], Arc<Budget>) -> Result<Box<dyn Rows>>;

/// A function that stands behind FROM.
pub(crate) struct TableFunction {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) arguments: &'static [&'static str],
    pub(crate) run: Run,
}

pub(crate) fn wrong(function: &str, problem: impl std::fmt::Display) -> Error {
    Error::ModuleError(format!("{function}: {problem}"))
}

/// Reads the rows of a table, a view or a SELECT. The names are those of the columns.
pub(crate) fn read(
    connection: &Connection,
    function: &str,
    source: &str,
    mut take: impl FnMut(&[String], &Row<'_>) -> Result<()>,
) -> Result<()> {
    let is_name = source.chars().all(|c| c.is_alphanumeric() || c == '_') && !source.is_empty();
    // In brackets, a text is one SELECT and nothing else.
    let sql = match is_name {
        true => format!("SELECT * FROM \"{source}\""),
        false => format!("SELECT * FROM ({}\n)", source.trim().trim_end_matches(';')),
    };
    let of_source = |error: Error| match error {
        Error::SqliteFailure(code, _) if code.code == rusqlite::ErrorCode::OperationInterrupted => {
            Error::SqliteFailure(code, None)
        }
        Error::SqlInputError { msg, .. } => wrong(function, msg),
        Error::ModuleError(message) => Error::ModuleError(message),
        other => wrong(function, other),
    };
    let mut statement = connection.prepare(&sql).map_err(of_source)?;
    if !statement.readonly() {
        return Err(wrong(function, "it takes statements that only read"));
    }
    let names: Vec<String> =
        statement.column_names().map(|name| name.to_ascii_lowercase()).collect();
    let mut rows = statement.query([]).map_err(of_source)?;
    while let Some(row) = rows.next().map_err(of_source)? {
        take(&names, row)?;
    }
    Ok(())
}

/// The place of a column that a function needs.
pub(crate) fn needed(function: &str, names: &[String], name: &str) -> Result<usize> {
    names.iter().position(|it| it == name).ok_or_else(|| {
        wrong(
            function,
            format_args!("its statement gives no column {name}: it gives {}", names.join(", ")),
        )
    })
}
