//! Streams of records: plain or compressed, read in blocks of whole records.
//!
//! A block is at most about [`BLOCK_SIZE_BYTES`] long, so memory stays bounded whatever the size
//! of the recording and however well it was compressed. Blocks of plain streams, and of compressed
//! ones whose zstd frames begin and end with whole records, can be read again in any order (see
//! [`BlockRange`]), which is what lets several threads decode one file. A stream that is one long
//! zstd frame, as perf writes it, can only be read from the start.
//!
//! Which of the two a compressed stream is shows in the attempt alone. A row of compressed records
//! that begins with the magic number of a frame is decoded on its own, by the same steps as from
//! the start. If it does not end with a frame and a record, or decodes to too much, the stream is
//! read on in order from there, until a frame ends together with a record again.
//!
//! Where the caller asks for it, [most of a large stack dump](Stream::leaving_out_dumps) stays in the
//! file.
//!
//! [Packed](crate::packed) records come out as ordinary ones. Blocks are read again on their own only
//! behind the first reading, which has met all definitions of the stream.

mod block;
mod block_reader;
mod dumps;
mod inflate;
mod mapping;
mod read_ahead;
mod reader;
mod run;
mod source;

pub use block::Block;
pub use block_reader::{BlockReader, MAX_INFLATED_BLOCK_BYTES};
pub use read_ahead::ReadAhead;
pub use reader::StreamReader;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::packed::Unpacker;
use dumps::Dumps;

/// Target size of a block: small enough that its bytes are still in the CPU's second-level cache
/// when it is decoded, large enough that system calls do not count.
pub const BLOCK_SIZE_BYTES: usize = 256 << 10;

/// One stream of records in a file: the data section of a perf.data file, or a whole `data.N` of
/// a directory.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) file: Arc<File>,
    pub(crate) path: Arc<Path>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where some of its records are packed.
    pub(crate) unpacker: Option<Arc<Unpacker>>,
    /// Where readers leave out large stack dumps.
    pub(crate) dumps: Option<Arc<Dumps>>,
}

/// Why a stream could not be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The operating system refused a read.
    #[error("cannot read {path} at offset {offset}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// Offset of the read in the file.
        offset: u64,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// A record's header makes no sense.
    #[error(
        "{path} is corrupt: the record at offset {offset} says a size of {size_bytes} bytes; \
         the {lost_bytes} bytes from there on are not read"
    )]
    BadRecord {
        /// File.
        path: PathBuf,
        /// Where (in the decompressed stream where the recording is compressed).
        offset: u64,
        /// Size by the record's header.
        size_bytes: u16,
        /// Bytes of the stream that are not read.
        lost_bytes: u64,
    },
    /// A compressed record does not decompress.
    #[error(
        "{path} is corrupt: the compressed record at offset {offset} does not decompress \
         ({source}); the {lost_bytes} bytes from there on are not read"
    )]
    Decompress {
        /// File.
        path: PathBuf,
        /// Offset of the compressed record in the file.
        offset: u64,
        /// zstd's reason.
        source: std::io::Error,
        /// Bytes of the stream that are not read.
        lost_bytes: u64,
    },
    /// A block that was read before cannot be read again.
    #[error("the records at offset {offset} of {path} are no longer what they were")]
    Changed {
        /// File.
        path: PathBuf,
        /// Where the block begins.
        offset: u64,
    },
}

/// Where a block's bytes are, for reading it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// Offset of the first record in the file.
    pub offset: u64,
    /// Length in the file.
    pub size_bytes: u32,
    /// Whether these are compressed records, whose frames make the block.
    pub compressed: bool,
}

impl BlockRange {
    /// Where it ends in the file.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.size_bytes))
    }
}

/// Where a block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Position of the first record in the decoded stream: it grows from block to block, and a
    /// second reading finds the same record at the same position.
    pub position: u64,
    /// Where in the file reading has to [start](StreamReader::resume) to come to this block. All
    /// blocks of a row that can only be read in order have the same.
    pub start: u64,
    /// Set where the block can be read again on its own.
    pub range: Option<BlockRange>,
}

impl StreamError {
    /// Bytes of the stream that cannot be read because of it.
    pub fn lost_bytes(&self) -> u64 {
        match self {
            StreamError::Io { .. } | StreamError::Changed { .. } => 0,
            StreamError::BadRecord { lost_bytes, .. }
            | StreamError::Decompress { lost_bytes, .. } => *lost_bytes,
        }
    }
}

impl Stream {
    /// Where its records begin in the file, and their size.
    pub fn data(&self) -> (u64, u64) {
        (self.start, self.end.saturating_sub(self.start))
    }

    /// The file that holds the stream.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When its file was written last.
    ///
    /// # Errors
    /// The file's metadata.
    pub fn modified(&self) -> std::io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// Size in the file.
    pub fn size_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// The error for a block that was there in the first reading and no longer is.
    pub fn changed(&self, offset: u64) -> StreamError {
        StreamError::Changed { path: self.path.to_path_buf(), offset }
    }

    fn read_exact(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), StreamError> {
        // Only what grows is zeroed: `out` is reused from block to block.
        out.resize(len, 0);
        self.file.read_exact_at(out, offset).map_err(self.io_error(offset))
    }

    fn io_error(&self, offset: u64) -> impl Fn(std::io::Error) -> StreamError {
        move |source| StreamError::Io { path: self.path.to_path_buf(), offset, source }
    }
}

/// Bytes of a stream that hold no whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where in the file the first of them are; of a compressed record that begins in a compressed
    /// record before, the end of the file.
    pub offset: u64,
    /// How many they are.
    pub size_bytes: u64,
}

/// Records that blocks do not show because they wrap others, or because bytes that are no records
/// follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// AUX area data of a hardware tracer.
    pub auxtrace: u64,
    /// The formats of tracepoints, in a pipe.
    pub tracing_data: u64,
    /// COMPRESSED records, whose size may be odd.
    pub compressed: u64,
    /// COMPRESSED2 records: padded to a multiple of eight bytes.
    pub compressed2: u64,
    /// Bytes inside compressed records.
    pub compressed_bytes: u64,
    /// Bytes that they gave.
    pub decompressed_bytes: u64,
}

impl RecordCounts {
    /// Adds other counts.
    pub fn add(&mut self, other: RecordCounts) {
        self.auxtrace += other.auxtrace;
        self.tracing_data += other.tracing_data;
        self.compressed += other.compressed;
        self.compressed2 += other.compressed2;
        self.compressed_bytes += other.compressed_bytes;
        self.decompressed_bytes += other.decompressed_bytes;
    }
}
