//! The bytes of a stream in the file: the record at the front, and the ranges that may be decoded
//! on their own.

use super::{BLOCK_SIZE_BYTES, BlockRange, Stream, StreamError};
use crate::bytes::Cursor;
use crate::record::{HEADER_SIZE_BYTES, RecordHeader, record_type};

/// Begins every zstd frame. Compressed bytes may have it anywhere, so that it proves nothing.
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

/// Compressed records are taken together up to about this much, where a frame might begin behind
/// them: small frames are not worth a hand-over between threads each.
const RANGE_SIZE_BYTES: usize = 32 << 10;

/// How far a frame that is to be decoded on its own may reach.
const FRAME_WINDOW_BYTES: usize = 4 << 20;

/// Walks through a file and keeps a window of it in memory.
pub(super) struct Source {
    stream: Stream,
    /// Next byte of the file to use.
    offset: u64,
    /// Bytes that were read; the first `used` are in front of `offset`.
    window: Vec<u8>,
    used: usize,
}

/// The record at the front of the stream.
pub(super) enum Front {
    /// This many bytes of whole records.
    Plain(usize),
    /// A record that wraps others, or whose payload follows it.
    Special(RecordHeader),
    /// A record that cannot be, with the size that it says.
    Bad(u16),
    /// The end: so many bytes are left, and hold no whole record.
    End(u64),
}

/// How far records reach.
pub(super) enum WalkEnd {
    /// All whole records were walked; the rest is the start of one.
    Whole,
    /// A record that needs special handling stands here.
    Special(RecordHeader),
    /// A header that cannot be.
    Bad(u16),
}

/// Walks whole records from the front of `bytes`; gives back how far it came and why it stopped.
pub(super) fn walk(bytes: &[u8]) -> (usize, WalkEnd) {
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
pub(super) fn is_special(kind: u32) -> bool {
    is_compressed(kind) || matches!(kind, record_type::AUXTRACE | record_type::TRACING_DATA)
}

pub(super) fn is_compressed(kind: u32) -> bool {
    matches!(kind, record_type::COMPRESSED | record_type::COMPRESSED2)
}

/// The compressed bytes of a record: all of COMPRESSED; of COMPRESSED2, which is padded to eight
/// bytes, as many as its first word says.
pub(super) fn compressed_payload(kind: u32, record: &[u8]) -> &[u8] {
    let body = &record[HEADER_SIZE_BYTES..];
    if kind == record_type::COMPRESSED {
        return body;
    }
    let mut c = Cursor::new(body);
    let size = c.u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
    &c.rest()[..size.min(c.rest().len())]
}

/// The record at the front of `bytes`, if all of it is there and its size can be.
pub(super) fn whole_record(bytes: &[u8]) -> Option<(RecordHeader, &[u8])> {
    let header = RecordHeader::parse(bytes)?;
    let size = usize::from(header.size_bytes);
    let record = bytes.get(..size).filter(|_| size >= HEADER_SIZE_BYTES)?;
    Some((header, record))
}

/// Whether a compressed record may be the first of a frame.
fn may_begin_frame(header: RecordHeader, record: &[u8]) -> bool {
    is_compressed(header.kind) && compressed_payload(header.kind, record).starts_with(&FRAME_MAGIC)
}

/// How far compressed records reach that may be decoded on their own.
enum Reach {
    /// As far as this offset.
    To(usize),
    /// Further than the bytes do; in any case a frame may begin there.
    Beyond(Option<usize>),
    /// Nowhere: no frame begins with them.
    Nowhere,
}

/// `is_all` says that nothing follows `bytes`.
fn reach(bytes: &[u8], is_all: bool) -> Reach {
    let mut at = 0;
    let mut last_begin = None;
    loop {
        let Some((header, record)) = whole_record(&bytes[at..]) else {
            let is_bad = RecordHeader::parse(&bytes[at..])
                .is_some_and(|header| usize::from(header.size_bytes) < HEADER_SIZE_BYTES);
            return if is_all || is_bad { Reach::To(at) } else { Reach::Beyond(last_begin) };
        };
        let begins = may_begin_frame(header, record);
        if at == 0 && !begins {
            return Reach::Nowhere;
        }
        if !is_compressed(header.kind) || (begins && at >= RANGE_SIZE_BYTES) {
            return Reach::To(at);
        }
        if begins && at > 0 {
            last_begin = Some(at);
        }
        at += record.len();
    }
}

impl Source {
    pub(super) fn new(stream: Stream) -> Source {
        Source { offset: stream.start, stream, window: Vec::new(), used: 0 }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// For a record, found at `offset`, of a size that cannot be: nothing is read from `lost_from` of
    /// the file on.
    pub(super) fn bad_record(&self, offset: u64, size_bytes: u16, lost_from: u64) -> StreamError {
        let (path, lost_bytes) = (self.stream.path.to_path_buf(), self.stream.end - lost_from);
        StreamError::BadRecord { path, offset, size_bytes, lost_bytes }
    }

    pub(super) fn decompress_error(&self, offset: u64, source: std::io::Error) -> StreamError {
        let (path, lost_bytes) = (self.stream.path.to_path_buf(), self.stream.end - offset);
        StreamError::Decompress { path, offset, source, lost_bytes }
    }

    pub(super) fn io_error(&self, source: std::io::Error) -> StreamError {
        StreamError::Io { path: self.stream.path.to_path_buf(), offset: self.offset, source }
    }

    pub(super) fn left(&self) -> u64 {
        self.stream.end - self.offset
    }

    /// The bytes from the front on that are in memory.
    pub(super) fn rest(&self) -> &[u8] {
        &self.window[self.used..]
    }

    /// Goes on at another place.
    pub(super) fn seek(&mut self, offset: u64) {
        self.offset = offset.clamp(self.stream.start, self.stream.end);
        // The bytes stay, to be overwritten: what an empty buffer grows by is zeroed.
        self.used = self.window.len();
    }

    pub(super) fn advance(&mut self, len: u64) {
        self.offset += len.min(self.left());
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.used = self.window.len().min(self.used.saturating_add(len));
    }

    /// Makes the first `len` bytes the content of `out`, and goes on behind them.
    pub(super) fn take(&mut self, len: usize, out: &mut Vec<u8>) {
        // Copying costs time; dropping the bytes behind it costs reading them again.
        if self.used == 0 && len >= self.window.len() / 2 {
            std::mem::swap(out, &mut self.window);
            out.truncate(len);
            self.seek(self.offset + len as u64);
        } else {
            out.clear();
            out.extend(&self.rest()[..len]);
            self.advance(len as u64);
        }
    }

    /// Steps over a hole, if there is one at the front: zeros where a record should begin. It ends
    /// with the first other byte, since no kind of record has a zero for its lowest one. Says how
    /// long it was.
    pub(super) fn skip_hole(&mut self) -> Result<u64, StreamError> {
        let begin = self.offset;
        if !self.is_hole() {
            return Ok(0);
        }
        loop {
            let found = self.rest().iter().position(|byte| *byte != 0);
            self.advance(found.unwrap_or(self.rest().len()) as u64);
            if found.is_some() || !self.refill(BLOCK_SIZE_BYTES)? {
                return Ok(self.offset - begin);
            }
        }
    }

    /// Whether there is a hole at the front.
    pub(super) fn is_hole(&self) -> bool {
        self.rest().get(..HEADER_SIZE_BYTES).is_some_and(|header| header.iter().all(|b| *b == 0))
    }

    pub(super) fn front(&mut self) -> Result<Front, StreamError> {
        loop {
            let (whole, end) = walk(self.rest());
            match end {
                _ if whole > 0 => return Ok(Front::Plain(whole)),
                WalkEnd::Bad(size) => return Ok(Front::Bad(size)),
                WalkEnd::Special(header) if whole_record(self.rest()).is_some() => {
                    return Ok(Front::Special(header));
                }
                _ if self.refill(BLOCK_SIZE_BYTES)? => {}
                _ => return Ok(Front::End(self.left())),
            }
        }
    }

    /// The header of the record at the front, which is wholly in memory then; its size may be an
    /// impossible one. `None` where no whole record is left.
    pub(super) fn header(&mut self) -> Result<Option<RecordHeader>, StreamError> {
        loop {
            let header = RecordHeader::parse(self.rest())
                .filter(|header| usize::from(header.size_bytes) <= self.rest().len());
            if header.is_some() || !self.refill(BLOCK_SIZE_BYTES)? {
                return Ok(header);
            }
        }
    }

    /// Whether a compressed record stands at the front that may be the first of a frame.
    pub(super) fn may_begin_frame(&mut self) -> Result<bool, StreamError> {
        self.header()?;
        Ok(whole_record(self.rest())
            .is_some_and(|(header, record)| may_begin_frame(header, record)))
    }

    /// The compressed records from the front on, if it may be that they decode on their own.
    pub(super) fn frame_range(&mut self) -> Result<Option<BlockRange>, StreamError> {
        loop {
            let len = match reach(self.rest(), self.rest().len() as u64 == self.left()) {
                Reach::To(len) => len,
                Reach::Beyond(_) if self.refill(FRAME_WINDOW_BYTES)? => continue,
                Reach::Beyond(Some(len)) => len,
                Reach::Beyond(None) | Reach::Nowhere => return Ok(None),
            };
            let offset = self.offset;
            return Ok(Some(BlockRange { offset, size_bytes: len as u32, compressed: true }));
        }
    }

    /// Fills the window with the bytes from the front on, up to a limit. `false` where it holds all
    /// of them, or as many as it may, already.
    fn refill(&mut self, limit_bytes: usize) -> Result<bool, StreamError> {
        let len = self.left().min(limit_bytes as u64) as usize;
        if len <= self.rest().len() {
            return Ok(false);
        }
        self.used = 0;
        let read = self.stream.read_records(self.offset, len, &mut self.window);
        // Where it failed, the window has bytes of another place.
        read.inspect_err(|_| self.window.clear())?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::StreamReader;
    use super::*;
    use crate::encode::push_record;
    use std::io::Write;
    use std::sync::Arc;

    #[test]
    fn a_read_that_fails_gives_no_records_of_another_place() {
        let mut records = Vec::new();
        while records.len() < 4 * BLOCK_SIZE_BYTES {
            push_record(&mut records, record_type::SAMPLE, 0, &[7; 56]);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&records).unwrap();
        let (path, end) = (std::path::Path::new("cut").into(), records.len() as u64);
        let shared = Arc::new(file.try_clone().unwrap());
        let stream = Stream { file: shared, path, start: 0, end, unpacker: None, dumps: None };
        let (mut reader, mut block) = (StreamReader::new(stream), Vec::new());
        assert!(reader.next_block(&mut block).unwrap().is_some());
        file.set_len(1000).unwrap();
        let offset = block.len() as u64;
        let error = reader.next_block(&mut block).unwrap_err();
        assert!(matches!(error, StreamError::Io { offset: at, .. } if at == offset), "{error}");
    }
}
