//! The tables of recordings: names, columns and rows, for SQL engines and files of columns.
//!
//! [`TABLES`] defines each table once: name, columns, their meaning, and the code that fills them. `docs/tables.md` is
//! made from it. [`Database`] opens recordings when a table of theirs is first read; a [`Cursor`] gives rows.
//! Numbers of rows (`id`, `utid`, `upid`) are unique over all recordings of a database: those of the recording with
//! number *n* begin at *n* × 2³².
//!
//! Invariants:
//! - Rows of `sample`, `sched`, `thread_state` and `wait` come as a stream: memory does not grow with them.
//! - Constraints ([`Wanted`]) leave rows out where that saves work; a reader has to check them all the same.
//! - A cursor that waits ends soon after [`Cancel::cancel`].
#![forbid(unsafe_code)]

mod column;
mod cursor;
mod database;
mod dimension_tables;
mod interval_tables;
mod numbered;
mod page;
mod recording_tables;
mod sample_table;
mod stream;
mod table;
mod tables;
mod value;

pub use column::{ColumnInfo, ColumnRole, Kind};
pub use cursor::{Cursor, Wanted};
pub use database::{Cancel, Database, TableError};
pub use page::{FILE as PAGE, page};
pub use table::{AnyTable, Size};
pub use tables::{SCHEMA, TABLES, find};
pub use value::Value;
