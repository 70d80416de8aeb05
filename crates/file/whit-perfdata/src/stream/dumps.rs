//! Reading records without the bodies of large stack dumps.
//!
//! Unwinding looks at one or two KiB of a dump of up to 64, and the first pass over a recording at
//! none. Copying the others out of the page cache was three quarters of a report. So records are
//! read in pieces: the end of one, and the next up to the wanted bytes of its dump. Everything else
//! of a record is always read; a record that makes no sense, and all behind it, is read as it is.
//!
//! Pieces are read without waiting. Where that fails, the bytes are not in the page cache. Then the
//! kernel is asked for all bytes from there on, [`AHEAD_BYTES`] at a time: a disk gives them faster
//! in a row than it gives pieces one by one.

use super::block::Block;
use super::mapping::Mapping;
use super::source::is_special;
use super::{Stream, StreamError};
use crate::event_table::EventTable;
use crate::record::{HEADER_SIZE_BYTES, RecordHeader, record_type};
use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Fewer bytes are not worth a system call of their own.
const MIN_GAP_BYTES: usize = 3 << 10;

/// The first piece, before the size of pieces is known; also, pieces begin with it again where no
/// dump is met.
const FIRST_PIECE_BYTES: usize = 1 << 10;

/// Where no dumps are, pieces grow up to this.
const MAX_PIECE_BYTES: usize = 64 << 10;

/// Call chains in front of dumps differ in length by less than this, mostly.
const SPAN_SLACK_BYTES: usize = 128;

/// Bytes that the kernel is asked for ahead, where they come from a disk.
const AHEAD_BYTES: u64 = 8 << 20;

/// Where dumps are larger than this, reading the few bytes between them costs less than mapping all of their pages.
const MAX_MAPPED_DUMP_BYTES: u32 = 8 << 10;

/// How a stream leaves out dumps.
#[derive(Debug)]
pub(crate) struct Dumps {
    events: Arc<EventTable>,
    /// Bytes of each dump that are read all the same.
    kept_bytes: usize,
    /// Bytes from the end of a dump to the last one that is wanted of the next, as it was last.
    span: AtomicUsize,
    /// The part of the file that the kernel was asked for last.
    asked: Mutex<Range<u64>>,
    failure: Mutex<Option<StreamError>>,
    /// Where the bytes come from a mapping, as far as they are in memory.
    mapping: Option<Mapping>,
}

impl Stream {
    /// The same stream, whose [readers](super::BlockReader) leave out all but the first `kept_bytes`
    /// of large stack dumps where that is worth the while. Compressed and packed records are read
    /// whole.
    pub fn leaving_out_dumps(&self, events: &Arc<EventTable>, kept_bytes: usize) -> Stream {
        let dumps = self.dumps_left_out(events, kept_bytes);
        Stream { dumps: dumps.map(Arc::new), ..self.clone() }
    }

    /// The same without the dumps, for one reading from front to back. It maps the file where that is faster.
    pub(super) fn mapped_without_dumps(&self, events: &Arc<EventTable>) -> Stream {
        let mut dumps = self.dumps_left_out(events, 0);
        if let Some(dumps) = &mut dumps
            && events.user_stack_bytes() <= MAX_MAPPED_DUMP_BYTES
        {
            dumps.mapping = Mapping::new(&self.file);
        }
        Stream { dumps: dumps.map(Arc::new), ..self.clone() }
    }

    fn dumps_left_out(&self, events: &Arc<EventTable>, kept_bytes: usize) -> Option<Dumps> {
        let is_worthwhile = self.unpacker.is_none() && events.has_user_stacks();
        is_worthwhile.then(|| Dumps {
            events: events.clone(),
            kept_bytes,
            span: AtomicUsize::new(FIRST_PIECE_BYTES),
            asked: Mutex::default(),
            failure: Mutex::default(),
            mapping: None,
        })
    }

    /// Reads the records of a part of the file that holds whole ones.
    pub(super) fn read_block(
        &self,
        offset: u64,
        len: usize,
        out: &mut Block,
    ) -> Result<(), StreamError> {
        out.forget_gaps();
        let Some(dumps) = &self.dumps else { return self.read_exact(offset, len, &mut out.bytes) };
        let mut pieces = Pieces::new(self, dumps, offset, len, &mut out.bytes, &mut out.gaps);
        pieces.read_records().and_then(|()| pieces.reach(len)).map_err(self.io_error(offset))?;
        out.source = (!out.gaps.is_empty()).then(|| (self.clone(), offset));
        Ok(())
    }

    /// Reads records that may end before the part of the file does: all whole ones, or all bytes if
    /// there is none. Dumps may be left out.
    pub(super) fn read_records(
        &self,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StreamError> {
        let Some(dumps) = &self.dumps else { return self.read_exact(offset, len, out) };
        let mut gaps = Vec::new();
        let mut pieces = Pieces::new(self, dumps, offset, len, out, &mut gaps);
        pieces.read_records().map_err(self.io_error(offset))?;
        let filled = pieces.filled;
        out.truncate(filled);
        Ok(())
    }
}

impl Dumps {
    pub(super) fn keep_failure(&self, error: StreamError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    pub(super) fn take_failure(&self) -> Option<StreamError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has the kernel read from an offset on, unless it was asked before.
    fn ask_ahead(&self, file: &File, offset: u64) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.contains(&offset) && offset + AHEAD_BYTES / 2 <= asked.end {
            return;
        }
        let from = if asked.contains(&offset) { asked.end } else { offset };
        *asked = offset..offset.saturating_add(AHEAD_BYTES);
        let len = NonZeroU64::new(asked.end - from);
        drop(asked);
        // Advice: without it, the reads are as slow as the kernel's own guesses make them.
        let _ = fadvise(file, from, len, Advice::WillNeed);
    }

    /// Where in a record its dump is, behind the bytes that are kept. `Err` where the first bytes of
    /// the record, with its header, do not say it.
    fn unwanted(&self, record: &[u8], size: usize) -> Result<Option<Range<usize>>, ()> {
        let body = record.get(HEADER_SIZE_BYTES..).ok_or(())?;
        let is_whole = record.len() >= size;
        let layout = self.events.event_of_sample(body).and_then(|e| self.events.layout(e));
        let dump = match layout {
            Some(layout) if !layout.has_user_stack() => return Ok(None),
            Some(layout) => layout.user_stack_at(body),
            None => None,
        };
        let Some(dump) = dump else { return if is_whole { Ok(None) } else { Err(()) } };
        let end = dump.start.checked_add(dump.len()).filter(|end| *end <= size - HEADER_SIZE_BYTES);
        let from = dump.start + self.kept_bytes;
        let gap = from + HEADER_SIZE_BYTES..end.unwrap_or(0) + HEADER_SIZE_BYTES;
        Ok(Some(gap).filter(|gap| gap.end >= gap.start.saturating_add(MIN_GAP_BYTES)))
    }
}

/// Reads a part of a file in pieces.
struct Pieces<'a> {
    stream: &'a Stream,
    dumps: &'a Dumps,
    offset: u64,
    out: &'a mut Vec<u8>,
    gaps: &'a mut Vec<Range<usize>>,
    /// The bytes up to here were read or are gaps.
    filled: usize,
    /// Size of the next piece.
    piece: usize,
    /// Where the last gap ended.
    gap_end: Option<usize>,
    /// The bytes come from a disk.
    waits: bool,
    /// All bytes, where they are in this process's memory.
    mapped: Option<&'a [u8]>,
}

impl<'a> Pieces<'a> {
    fn new(
        stream: &'a Stream,
        dumps: &'a Dumps,
        offset: u64,
        len: usize,
        out: &'a mut Vec<u8>,
        gaps: &'a mut Vec<Range<usize>>,
    ) -> Self {
        // Only what grows is zeroed: `out` is reused from block to block.
        out.resize(len, 0);
        let piece = dumps.span.load(Ordering::Relaxed);
        let mapping = dumps.mapping.as_ref();
        let mapped = mapping.and_then(|mapping| mapping.part(&stream.file, offset, len));
        let (filled, gap_end, waits) = (0, None, false);
        Pieces { stream, dumps, offset, out, gaps, filled, piece, gap_end, waits, mapped }
    }

    /// Reads whole records up to the last one that fits; where none fits or one makes no sense, all.
    fn read_records(&mut self) -> std::io::Result<()> {
        let (mut at, len) = (0, self.out.len());
        while at + HEADER_SIZE_BYTES <= len {
            self.reach(at + HEADER_SIZE_BYTES)?;
            let Some(header) = RecordHeader::parse(&self.out[at..]) else { break };
            let size = usize::from(header.size_bytes);
            if size < HEADER_SIZE_BYTES || is_special(header.kind) {
                return self.reach(len);
            }
            if at + size > len {
                break;
            }
            if header.kind == record_type::SAMPLE {
                self.leave_out(at, size)?;
            }
            self.reach(at + size)?;
            at += size;
        }
        if at == 0 {
            return self.reach(len);
        }
        // A part of the next record may be there, which nobody has to know.
        self.filled = at;
        Ok(())
    }

    /// Steps over the unwanted bytes of a sample, if it has any.
    fn leave_out(&mut self, at: usize, size: usize) -> std::io::Result<()> {
        let unwanted = loop {
            let known = &self.out[at..self.filled.min(at + size)];
            if let Ok(unwanted) = self.dumps.unwanted(known, size) {
                break unwanted;
            }
            self.reach((self.filled + 1).min(at + size))?;
        };
        let Some(Range { start, end }) = unwanted else { return Ok(()) };
        let (start, end) = (at + start, at + end);
        self.reach(start)?;
        let span = self.gap_end.map(|gap_end| start - gap_end + SPAN_SLACK_BYTES);
        if self.filled + MIN_GAP_BYTES / 2 <= end {
            self.gaps.push(self.filled..end);
            (self.filled, self.gap_end) = (end, Some(end));
            self.piece = self.dumps.span.load(Ordering::Relaxed);
        }
        if let Some(span) = span {
            self.dumps.span.store(span.min(MAX_PIECE_BYTES), Ordering::Relaxed);
            self.piece = span;
        }
        Ok(())
    }

    /// Reads up to a place, or to where the next piece ends.
    fn reach(&mut self, end: usize) -> std::io::Result<()> {
        if end > self.filled {
            let to = end.max(self.filled + self.piece).min(self.out.len());
            let offset = self.offset + self.filled as u64;
            let piece = &mut self.out[self.filled..to];
            if let Some(bytes) = self.mapped.and_then(|bytes| bytes.get(self.filled..to)) {
                piece.copy_from_slice(bytes);
            } else if self.waits {
                self.stream.file.read_exact_at(piece, offset)?;
            } else {
                self.waits = read_piece(&self.stream.file, self.dumps, piece, offset)?;
            }
            self.filled = to;
            self.piece = (self.piece * 2).clamp(FIRST_PIECE_BYTES, MAX_PIECE_BYTES);
        }
        Ok(())
    }
}

/// Fills `piece`, and says whether that took waiting for a disk.
fn read_piece(file: &File, dumps: &Dumps, piece: &mut [u8], offset: u64) -> std::io::Result<bool> {
    let in_memory = preadv2(file, &mut [IoSliceMut::new(piece)], offset, ReadWriteFlags::NOWAIT);
    match in_memory {
        Ok(read) if read == piece.len() => return Ok(false),
        // At the end of the file, where nothing is to be waited for, or at the first byte that is
        // not in memory. A file system that cannot say which may be a slow one.
        Ok(_) | Err(_) => dumps.ask_ahead(file, offset),
    }
    file.read_exact_at(piece, offset)?;
    Ok(in_memory != Err(Errno::OPNOTSUPP))
}
