//! Datasets: the tables of many recordings and hosts in Parquet files.
//!
//! [`export`] adds a recording; [`Dataset`] reads the tables again. A dataset is a folder with a folder for each table,
//! and in them a file for each recording: `sample/host=web1/date=2026-01-31/part-0123456789.parquet`. Other engines read
//! such folders as they are.
//!
//! ```
//! use std::path::Path;
//! use std::time::SystemTime;
//! use whit_dataset::{Dataset, Facts, Outcome, export};
//! use whit_perfdata::reader::Recording;
//! use whit_profile::ReadOptions;
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//! use whit_tables::{Cancel, Database};
//!
//! let golden = Path::new("../../../tests/recordings/golden/perf-fp/recording.data");
//! let options = ReadOptions::new(2, SymbolizerConfig::new(DebugDirs::none()));
//! let database = Database::new(vec![(Recording::open(golden)?, options)], Cancel::default());
//! let now = SystemTime::now();
//! let facts = Facts { version: "1.0.0", now, modified: now, force: false };
//! # let folder = std::env::temp_dir().join(format!("whit-dataset-{}", std::process::id()));
//! assert!(matches!(export(&folder, &database, facts)?, Outcome::Written(_)));
//! assert_eq!(Dataset::open(&folder, Cancel::default())?.len(), 1);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - A file has its name when all of its bytes are on the disk, and `recording` gets its file last: a recording is in a
//!   dataset with all its rows, or not at all.
//! - Files are added, and removed with their recording ([`remove`]), never changed. The number of a recording is made of its header, so that the same recording is
//!   known again, and numbers of different hosts do not meet.
//! - Memory does not grow with rows: one group of rows is held ([`GROUP_ROWS`], [`GROUP_TEXT_BYTES`]).
//! - Files from elsewhere are hostile: their numbers are checked, and an error names the file.
#![forbid(unsafe_code)]

mod batch;
mod buffer;
mod cache;
mod cursor;
mod dataset;
mod error;
mod export;
mod identity;
mod inner;
mod layout;
mod part_reader;
mod part_writer;
mod publish;
mod removal;
mod schema;
mod sum_tasks;
mod sums;
mod writing_folder;

pub use buffer::{GROUP_ROWS, GROUP_TEXT_BYTES};
pub use dataset::Dataset;
pub use error::DatasetError;
pub use export::{Export, Exported, Facts, Outcome, export};
pub use part_reader::panics_are_caught;
pub use removal::{Stored, remove, stored};
