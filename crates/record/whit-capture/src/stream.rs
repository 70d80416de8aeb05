//! The way of records from a ring to the disk.
//!
//! A [`StreamSink`] takes whole records of one reader. Without compression and asynchronous writes
//! they go from the ring into the file with one system call and no copy. Otherwise they are copied
//! or compressed into a block, the ring is free at once, and full blocks are written: by the
//! reader itself, or by the kernel or a thread while the reader goes on.

mod blocks;
mod buffered;
mod compress;
mod engine;
mod file;
mod out;
mod sink;
mod writer_thread;

pub use engine::AsyncEngine;
#[cfg(test)]
pub(crate) use file::Medium;
pub use file::StreamFile;
pub use out::{SinkError, WriteCounts};
pub use sink::{Sink, StreamOptions, StreamSink};

/// Largest content of one compressed record. A reader of the recording needs a buffer of this size.
pub const DECODED_BYTES_MAX: u32 = compress::DECODED_BYTES_MAX as u32;
