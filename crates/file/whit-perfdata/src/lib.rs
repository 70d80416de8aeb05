//! The perf.data format, read and written: headers, records, features, directories, pipes,
//! compressed frames. `docs/format.md` describes both directions byte by byte.
//!
//! ```
//! use std::path::Path;
//! use whit_perfdata::reader::Recording;
//! use whit_perfdata::record::{RawRecord, record_type};
//! use whit_perfdata::stream::StreamReader;
//!
//! let path = Path::new("perf.data");
//! # let path = Path::new("../../../tests/recordings/golden/perf-fp/recording.data");
//! let recording = Recording::open(path)?;
//! assert_eq!(recording.events[0].name, "cpu-clock:u");
//!
//! let mut samples = 0;
//! for stream in recording.streams {
//!     let mut reader = StreamReader::new(stream);
//!     let mut block = Vec::new();
//!     while reader.next_block(&mut block)?.is_some() {
//!         let mut rest = block.as_slice();
//!         while let Some((record, behind)) = RawRecord::split(rest) {
//!             samples += u32::from(record.header.kind == record_type::SAMPLE);
//!             rest = behind;
//!         }
//!     }
//! }
//! assert_eq!(samples, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller reads all streams: records of one time stand in several. It looks at [`reader::Recording::warnings`] and
//! [`stream::StreamReader::truncation`], which name the missing parts.
//!
//! Invariants:
//! - No `unsafe`, no panic on any input: each length and offset in a file is checked against the
//!   bytes that are there.
//! - This crate touches no `/proc`, no clock and no symbols.
//! - Reading holds a bounded amount of the recording in memory, whatever its size.
//! - Recordings are little-endian, as x86-64 and arm64 write them; others are refused by name.
#![forbid(unsafe_code)]

pub mod append;
pub mod attr;
mod attr_fields;
pub mod blocked;
pub mod budget;
pub mod budget_history;
mod bytes;
pub mod chained;
pub mod clocks;
pub mod cpu_account;
pub mod deferred;
pub mod dump_cause;
pub mod dump_rest;
pub mod encode;
pub mod event_table;
pub mod existing;
pub mod export;
pub mod feature;
pub mod feature_lists;
pub mod goroutine;
pub mod header;
pub mod interpreted;
pub mod ledger;
pub mod let_go;
pub mod loss;
pub mod mapped_file;
pub mod names;
pub mod off_cpu;
pub mod packed;
pub mod read_split;
pub mod reader;
mod ready_file;
pub mod record;
pub mod request;
pub mod sample;
pub mod sample_head;
pub mod shared_record;
mod simpleperf;
pub mod stream;
pub mod tracing_data;
pub mod unwound;
pub mod wait_object;
pub mod writer;
