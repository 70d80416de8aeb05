//! Streams of records: plain or compressed, read in blocks of whole records.
//!
//! A block is at most about [`BLOCK_SIZE_BYTES`] long, so memory stays bounded whatever the size
//! of the recording and however well it was compressed. Blocks of plain streams can be read again
//! in any order (see [`BlockRange`]), which is what lets several threads decode one file;
//! streams that perf compressed are one long zstd stream and can only be read from the start.

use crate::bytes::Cursor;
use crate::record::{HEADER_SIZE_BYTES, RecordHeader, record_type};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Target size of a block: small enough that what was read is still in the CPU's second-level cache
/// when it is decoded, large enough that system calls do not count.
pub const BLOCK_SIZE_BYTES: usize = 256 << 10;

/// How much one step of decompression may produce.
const DECOMPRESS_STEP_BYTES: usize = 128 << 10;

/// One stream of records in a file: the data section of a perf.data file, or a whole `data.N` of
/// a directory.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Why a stream could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The operating system refused a read.
    #[error("cannot read {path} at offset {offset}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// Why.
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
        /// What the record says.
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
        /// Where.
        offset: u64,
        /// zstd's reason.
        source: std::io::Error,
        /// Bytes of the stream that are not read.
        lost_bytes: u64,
    },
}

/// Where a block's bytes are, for reading it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// Offset of the first record in the file.
    pub offset: u64,
    /// Length.
    pub size_bytes: u32,
}

/// Where a block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Position of the first record in the decoded stream: it grows from block to block, and a
    /// second reading finds the same record at the same position.
    pub position: u64,
    /// Set where the block can be read again on its own.
    pub range: Option<BlockRange>,
}

impl StreamError {
    /// Bytes of the stream that cannot be read because of it.
    pub fn lost_bytes(&self) -> u64 {
        match self {
            StreamError::Io { .. } => 0,
            StreamError::BadRecord { lost_bytes, .. }
            | StreamError::Decompress { lost_bytes, .. } => *lost_bytes,
        }
    }
}

impl Stream {
    /// The file that holds the stream.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in the file.
    pub fn size_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Reads a block that a [`StreamReader`] has seen.
    pub fn read_block(&self, range: BlockRange, out: &mut Vec<u8>) -> Result<(), StreamError> {
        self.read_exact(range.offset, range.size_bytes as usize, out)
    }

    fn read_exact(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<(), StreamError> {
        // Only what grows is zeroed: `out` is reused from block to block.
        out.resize(len, 0);
        self.file.read_exact_at(out, offset).map_err(|source| StreamError::Io {
            path: self.path.clone(),
            offset,
            source,
        })
    }
}

/// Reads a stream from the start, block by block.
pub struct StreamReader {
    stream: Stream,
    /// Next byte of the file to read.
    offset: u64,
    /// Position in the decoded stream.
    position: u64,
    /// Bytes from `offset` on that were read together with a block and are not part of it.
    window: Window,
    truncation: Option<Truncation>,
    records: RecordCounts,
    compressed: Option<Box<CompressedState>>,
}

/// The end of a stream that holds no whole record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Where in the file it begins; of a compressed record that begins in a compressed record
    /// before, the end of the file.
    pub offset: u64,
    /// How long it is.
    pub size_bytes: u64,
}

/// Records that blocks do not show because they wrap others, or because bytes that are no records
/// follow them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// AUXTRACE.
    pub auxtrace: u64,
    /// TRACING_DATA.
    pub tracing_data: u64,
    /// COMPRESSED.
    pub compressed: u64,
    /// COMPRESSED2.
    pub compressed2: u64,
    /// Bytes inside compressed records.
    pub compressed_bytes: u64,
    /// Bytes that they gave.
    pub decompressed_bytes: u64,
}

/// Bytes read from the file, of which the first are used up.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    used: usize,
}

impl Window {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    fn advance(&mut self, len: usize) {
        self.used = self.bytes.len().min(self.used.saturating_add(len));
    }

    /// Uses up all bytes. They stay, to be overwritten: what an empty buffer grows by is zeroed.
    fn clear(&mut self) {
        self.used = self.bytes.len();
    }
}

struct CompressedState {
    decoder: Decoder<'static>,
    /// Rest of the payload of the current compressed record, and its place in the file.
    payload: Vec<u8>,
    payload_used: usize,
    payload_offset: u64,
    /// zstd may hold output back until it is asked again.
    more_output: bool,
    /// Start of a record whose end is in the next compressed record.
    partial: Vec<u8>,
}

enum WalkEnd {
    /// All whole records were walked; the rest is the start of one.
    Whole,
    /// A record that needs special handling stands here.
    Special(RecordHeader),
    /// A header that cannot be.
    Bad(u16),
}

/// Walks whole records from the front of `bytes`; gives back how far it came and why it stopped.
fn walk(bytes: &[u8]) -> (usize, WalkEnd) {
    let mut at = 0;
    while let Some(header) = bytes.get(at..).and_then(RecordHeader::parse) {
        let size = header.size_bytes as usize;
        if size < HEADER_SIZE_BYTES {
            return (at, WalkEnd::Bad(header.size_bytes));
        }
        if is_special(header.kind) {
            return (at, WalkEnd::Special(header));
        }
        if size > bytes.len() - at {
            break;
        }
        at += size;
    }
    (at, WalkEnd::Whole)
}

/// Records whose payload is not made of fields: it wraps other records or follows the record.
fn is_special(kind: u32) -> bool {
    matches!(
        kind,
        record_type::COMPRESSED
            | record_type::COMPRESSED2
            | record_type::AUXTRACE
            | record_type::TRACING_DATA
    )
}

impl StreamReader {
    /// Starts at the stream's first record.
    pub fn new(stream: Stream) -> StreamReader {
        StreamReader {
            offset: stream.start,
            position: stream.start,
            stream,
            window: Window::default(),
            truncation: None,
            records: RecordCounts::default(),
            compressed: None,
        }
    }

    /// Bytes of the file used so far, for progress.
    pub fn consumed_bytes(&self) -> u64 {
        self.offset - self.stream.start
    }

    /// The end of the stream, if it holds no whole record. Valid once the reader has come to the
    /// end.
    pub fn truncation(&self) -> Option<Truncation> {
        self.truncation
    }

    fn truncate(&mut self, offset: u64, size_bytes: u64) {
        if size_bytes > 0 {
            let known = self.truncation.unwrap_or(Truncation { offset, size_bytes: 0 });
            let size_bytes = known.size_bytes + size_bytes;
            self.truncation = Some(Truncation { size_bytes, ..known });
        }
    }

    /// Counts of wrapping records so far.
    pub fn record_counts(&self) -> RecordCounts {
        self.records
    }

    /// Reads the next block of whole records into `out`, replacing what is there. `None` at the
    /// end. After an error the stream cannot be read on; all blocks before stay valid.
    pub fn next_block(&mut self, out: &mut Vec<u8>) -> Result<Option<BlockInfo>, StreamError> {
        let info = match self.compressed.take() {
            Some(state) => self.next_compressed(state, out),
            None => self.next_plain(out),
        };
        if info.is_err() {
            self.offset = self.stream.end;
        }
        info
    }

    fn next_plain(&mut self, out: &mut Vec<u8>) -> Result<Option<BlockInfo>, StreamError> {
        loop {
            let left = self.stream.end - self.offset;
            if left == 0 {
                return Ok(None);
            }
            let (whole, end) = walk(self.window.rest());
            if whole > 0 {
                return Ok(Some(self.hand_out(whole, out)));
            }
            match end {
                WalkEnd::Bad(size) => return Err(self.bad_record(self.offset, size, left)),
                WalkEnd::Special(header) if is_compressed(header.kind) => {
                    self.window.clear();
                    let state = CompressedState::new().map_err(|source| self.io(source))?;
                    return self.next_compressed(Box::new(state), out);
                }
                WalkEnd::Special(header) => self.skip_payload(header),
                WalkEnd::Whole if self.refill()? => {}
                WalkEnd::Whole => {
                    self.truncate(self.offset, left);
                    self.offset = self.stream.end;
                }
            }
        }
    }

    /// Makes the first `whole` bytes of the window the block. What stopped the walk behind them is
    /// met again, at the front, by the next call.
    fn hand_out(&mut self, whole: usize, out: &mut Vec<u8>) -> BlockInfo {
        // Copying the block costs time, dropping what was read behind it costs reading it again.
        if self.window.used == 0 && whole >= self.window.bytes.len() / 2 {
            std::mem::swap(out, &mut self.window.bytes);
            out.truncate(whole);
            self.window.clear();
        } else {
            out.clear();
            out.extend(&self.window.rest()[..whole]);
            self.window.advance(whole);
        }
        let range = BlockRange { offset: self.offset, size_bytes: whole as u32 };
        let info = BlockInfo { position: self.position, range: Some(range) };
        self.advance_plain(whole as u64);
        info
    }

    fn advance_plain(&mut self, bytes: u64) {
        self.offset += bytes;
        self.position += bytes;
    }

    /// Steps over the record at the front of the window and the bytes that follow it (AUX area,
    /// tracepoint formats).
    fn skip_payload(&mut self, header: RecordHeader) {
        let rest = self.window.rest();
        let mut c = Cursor::new(rest.get(HEADER_SIZE_BYTES..).unwrap_or_default());
        let (payload, count) = match header.kind {
            record_type::AUXTRACE => (c.u64(), &mut self.records.auxtrace),
            _ => (c.u32().map(u64::from), &mut self.records.tracing_data),
        };
        let skip = u64::from(header.size_bytes).saturating_add(payload.unwrap_or(u64::MAX));
        let left = self.stream.end - self.offset;
        if skip <= left {
            *count += 1;
        } else {
            self.truncate(self.offset, left);
        }
        let skip = skip.min(left);
        self.window.advance(usize::try_from(skip).unwrap_or(usize::MAX));
        self.advance_plain(skip);
    }

    fn io(&self, source: std::io::Error) -> StreamError {
        StreamError::Io { path: self.stream.path.clone(), offset: self.offset, source }
    }

    fn bad_record(&self, offset: u64, size_bytes: u16, lost_bytes: u64) -> StreamError {
        StreamError::BadRecord { path: self.stream.path.clone(), offset, size_bytes, lost_bytes }
    }

    fn next_compressed(
        &mut self,
        mut state: Box<CompressedState>,
        out: &mut Vec<u8>,
    ) -> Result<Option<BlockInfo>, StreamError> {
        out.clear();
        let position = self.position;
        while out.len() < BLOCK_SIZE_BYTES {
            let progressed = if state.has_payload() {
                self.decompress_step(&mut state, out)?;
                true
            } else {
                self.next_wrapped(&mut state, out)?
            };
            if !progressed {
                break;
            }
        }
        self.position += out.len() as u64;
        if out.is_empty() {
            self.truncate(self.stream.end, state.partial.len() as u64);
            state.partial.clear();
        }
        self.compressed = Some(state);
        Ok((!out.is_empty()).then_some(BlockInfo { position, range: None }))
    }

    /// Takes the next record of the file: a compressed one becomes the current payload, any other
    /// is copied out. `false` at the end.
    fn next_wrapped(
        &mut self,
        state: &mut CompressedState,
        out: &mut Vec<u8>,
    ) -> Result<bool, StreamError> {
        let rest = self.window.rest();
        let header = RecordHeader::parse(rest);
        let whole = header.is_some_and(|h| usize::from(h.size_bytes) <= rest.len());
        let Some(header) = header.filter(|_| whole) else {
            return self.next_window();
        };
        let size = header.size_bytes as usize;
        if size < HEADER_SIZE_BYTES {
            let left = self.stream.end - self.offset;
            return Err(self.bad_record(self.offset, header.size_bytes, left));
        }
        let record = &rest[..size];
        if is_compressed(header.kind) {
            let payload = compressed_payload(header.kind, record);
            state.payload.clear();
            state.payload.extend(payload);
            state.payload_used = 0;
            state.payload_offset = self.offset;
            self.count_compressed(header.kind, state.payload.len());
        } else if is_special(header.kind) {
            // Positions in a compressed stream are those of its decoded bytes.
            let position = self.position;
            self.skip_payload(header);
            self.position = position;
            return Ok(true);
        } else {
            out.extend(record);
        }
        self.window.advance(size);
        self.offset += size as u64;
        Ok(true)
    }

    fn count_compressed(&mut self, kind: u32, payload_bytes: usize) {
        if kind == record_type::COMPRESSED {
            self.records.compressed += 1;
        } else {
            self.records.compressed2 += 1;
        }
        self.records.compressed_bytes += payload_bytes as u64;
    }

    /// Reads the next window of a compressed stream. `false` where no whole record is left: the
    /// rest is the start of one.
    fn next_window(&mut self) -> Result<bool, StreamError> {
        if self.refill()? {
            return Ok(true);
        }
        self.truncate(self.offset, self.stream.end - self.offset);
        self.offset = self.stream.end;
        self.window.clear();
        Ok(false)
    }

    /// Fills the window with the bytes from `offset` on. `false` where it holds all of them, or as
    /// many as it may, already.
    fn refill(&mut self) -> Result<bool, StreamError> {
        let left = self.stream.end - self.offset;
        let len = left.min(BLOCK_SIZE_BYTES as u64) as usize;
        if len <= self.window.rest().len() {
            return Ok(false);
        }
        self.window.used = 0;
        self.stream.read_exact(self.offset, len, &mut self.window.bytes)?;
        Ok(true)
    }

    fn decompress_step(
        &mut self,
        state: &mut CompressedState,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        let before = state.partial.len();
        state.decompress().map_err(|source| StreamError::Decompress {
            path: self.stream.path.clone(),
            offset: state.payload_offset,
            source,
            lost_bytes: self.stream.end - state.payload_offset,
        })?;
        self.records.decompressed_bytes += (state.partial.len() - before) as u64;
        let (whole, end) = walk(&state.partial);
        out.extend(&state.partial[..whole]);
        state.partial.drain(..whole);
        match end {
            WalkEnd::Whole => Ok(()),
            WalkEnd::Bad(size) => {
                let left = self.stream.end - state.payload_offset;
                Err(self.bad_record(self.position + out.len() as u64, size, left))
            }
            // Records that wrap others are never compressed themselves.
            WalkEnd::Special(header) => {
                let left = self.stream.end - state.payload_offset;
                Err(self.bad_record(self.position + out.len() as u64, header.size_bytes, left))
            }
        }
    }
}

fn is_compressed(kind: u32) -> bool {
    matches!(kind, record_type::COMPRESSED | record_type::COMPRESSED2)
}

/// The compressed bytes of a record: all of COMPRESSED; of COMPRESSED2, which is padded to eight
/// bytes, as many as its first word says.
fn compressed_payload(kind: u32, record: &[u8]) -> &[u8] {
    let body = &record[HEADER_SIZE_BYTES..];
    if kind == record_type::COMPRESSED {
        return body;
    }
    let mut c = Cursor::new(body);
    let size = c.u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    &c.rest()[..size.min(c.rest().len())]
}

impl CompressedState {
    fn new() -> std::io::Result<CompressedState> {
        Ok(CompressedState {
            decoder: Decoder::new()?,
            payload: Vec::new(),
            payload_used: 0,
            payload_offset: 0,
            more_output: false,
            partial: Vec::new(),
        })
    }

    fn has_payload(&self) -> bool {
        self.payload_used < self.payload.len() || self.more_output
    }

    /// One bounded step: appends decompressed bytes to `partial`.
    fn decompress(&mut self) -> std::io::Result<()> {
        let start = self.partial.len();
        self.partial.resize(start + DECOMPRESS_STEP_BYTES, 0);
        let mut input = InBuffer::around(&self.payload[self.payload_used..]);
        let mut output = OutBuffer::around(&mut self.partial[start..]);
        let result = self.decoder.run(&mut input, &mut output);
        let (used, produced) = (input.pos(), output.pos());
        self.partial.truncate(start + produced);
        self.payload_used += used;
        // A full output buffer may mean that more is waiting inside the decoder.
        self.more_output = produced == DECOMPRESS_STEP_BYTES;
        result?;
        if used == 0 && produced == 0 && self.payload_used < self.payload.len() {
            return Err(std::io::Error::other("the decoder makes no progress"));
        }
        Ok(())
    }
}
