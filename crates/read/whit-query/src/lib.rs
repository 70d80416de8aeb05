//! SQL over recordings: SQLite with virtual tables over the tables of `whit-tables`.
//!
//! A [`Session`] has the recordings, the views of `sql/*.sql`, and the functions `percentile`, `sqrt`, `interval_intersect`
//! and `summary_tree`. [`run`] runs statements and writes their rows in an [`OutputForm`]; [`shell`] asks for them.
//! [`Session::profiles`] makes profiles of the recordings of a [`Selection`], [`Session::waits`] and [`Session::requests`]
//! their waits and requests.
//!
//! ```
//! use std::path::Path;
//! use whit_perfdata::reader::Recording;
//! use whit_profile::ReadOptions;
//! use whit_query::{Options, OutputForm, Session, run};
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//! use whit_tables::{Cancel, Database};
//!
//! let golden = Path::new("../../../tests/recordings/golden");
//! let recording = Recording::open(&golden.join("perf-fp/recording.data"))?;
//! let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
//! let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
//!
//! let database = Database::new(vec![(recording, options)], Cancel::default());
//! let session = Session::new(database, Options { memory_bytes: 64 << 20 })?;
//! let sql = "SELECT name FROM top_functions ORDER BY self_weight DESC LIMIT 1";
//! let mut out = Vec::new();
//! run(&session, sql, OutputForm::Csv, &mut out)?;
//! assert_eq!(String::from_utf8(out)?.lines().last(), Some("burn"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - SQLite's memory stays below [`Options::memory_bytes`]. Sorts and temporary tables go to files; a query that needs
//!   more all the same fails, and the error says so.
//! - [`Interrupter::interrupt`] ends a query from another thread, also while a recording is read.
//! - A name out of a recording is escaped, except in JSON.
//! - Unsafe code is in `virtual_table` alone, where SQLite's interface for tables asks for it.
#![deny(unsafe_code)]

mod call_tree;
mod error;
mod functions;
mod intersect;
mod names;
mod output;
mod percentile;
mod plan;
mod profiles;
mod selection;
mod session;
pub mod shell;
mod square_root;
mod table_function;
mod views;
mod virtual_table;

pub use error::QueryError;
pub use names::Names;
pub use output::OutputForm;
pub use profiles::{RecordedRequests, RequestsOfName};
pub use selection::{Selection, SelectionError};
pub use session::{Interrupter, MIN_MEMORY_BYTES, Options, Session, run};
pub use views::{VIEWS, View};
