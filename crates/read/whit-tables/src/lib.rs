//! The tables of recordings: names, columns and rows, for SQL engines and files of columns.
//!
//! [`TABLES`] defines each table once: name, columns, their meaning, and the code that fills them. `docs/tables.md` is
//! made from it. [`Database`] opens recordings when a table of theirs is first read; a [`Cursor`] gives rows.
//! Numbers of rows (`id`, `utid`, `upid`) are unique over all recordings of a database: those of the recording with
//! number *n* begin at *n* × 2²⁸.
//!
//! ```
//! use std::path::Path;
//! use whit_perfdata::reader::Recording;
//! use whit_profile::ReadOptions;
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//! use whit_tables::{Cancel, Database, Value, Wanted, find};
//!
//! let golden = Path::new("../../../tests/recordings/golden");
//! let recording = Recording::open(&golden.join("perf-fp/recording.data"))?;
//! let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
//! let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
//! let database = Database::new(vec![(recording, options)], Cancel::default());
//!
//! let table = find("sample").expect("a table");
//! let weight = table.columns().iter().position(|column| column.name == "weight").expect("a column");
//! let (mut rows, mut sum) = (table.open(&database, &Wanted::everything()), 0);
//! while rows.advance()? {
//!     if let Value::Int(value) = rows.value(weight) {
//!         sum += value;
//!     }
//! }
//! assert_eq!(sum, 12_000_000, "six samples of 2 ms");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Rows of `sample`, `sched`, `thread_state` and `wait` come as a stream: memory does not grow with them.
//! - [`SAMPLE_SUM`] holds its rows within a [`Budget`]; where they do not fit, it gives samples one by one.
//! - Constraints ([`Wanted`]) leave rows out where that saves work; a reader has to check them all the same.
//! - A cursor that waits ends soon after [`Cancel::cancel`].
#![forbid(unsafe_code)]

mod budget;
mod column;
mod cursor;
mod database;
mod dimension_tables;
mod interval_tables;
mod numbered;
mod page;
mod recording_tables;
mod request_table;
mod sample_table;
mod store;
mod stream;
mod sum_table;
mod table;
mod tables;
mod value;

pub use budget::{Budget, Held};
pub use column::{ColumnInfo, ColumnRole, Kind};
pub use cursor::{Cursor, MAX_RECORDINGS, ROW_BITS, Wanted};
pub use database::{Cancel, Database, TableError};
pub use page::{FILE as PAGE, page};
pub use store::{Defect, Store};
pub use sum_table::SAMPLE_SUM;
pub use table::{AnyTable, Size};

pub use tables::{SAMPLE, SCHEMA, TABLES, find, query_tables};
pub use value::Value;
