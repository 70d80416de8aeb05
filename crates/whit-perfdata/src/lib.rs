//! The perf.data format, read and written: headers, records, features, directories, pipes,
//! compressed frames. `docs/format.md` says byte by byte what is read and written.
//!
//! Invariants:
//! - No `unsafe`, no panic on any input: whatever a file says about lengths and offsets is
//!   checked against what is there.
//! - This crate touches no `/proc`, no clock and no symbols.
//! - Reading holds a bounded amount of the recording in memory, whatever its size.
//! - Recordings are little-endian, as x86-64 and arm64 write them; others are refused by name.
#![forbid(unsafe_code)]

pub mod attr;
mod bytes;
pub mod encode;
pub mod event_table;
pub mod existing;
pub mod export;
pub mod feature;
pub mod header;
pub mod ledger;
pub mod loss;
pub mod mapped_file;
pub mod packed;
pub mod reader;
pub mod record;
pub mod sample;
pub mod stream;
pub mod tracing_data;
pub mod writer;
