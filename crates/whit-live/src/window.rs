//! The records of the last while.

use crate::sideband::Sideband;
use std::collections::VecDeque;
use std::io::{self, Write};
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::header::PIPE_HEADER_SIZE_BYTES;
use whit_perfdata::reader::event_of_attr_record;
use whit_perfdata::record::{HEADER_SIZE_BYTES, RawRecord, RecordHeader, record_type};

/// Bytes that describe the recording: events, features, formats of tracepoints.
const HEAD_BYTES_MAX: usize = 64 << 20;
/// Records go together when they become old, in pieces of at most so many bytes and so much time.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_NS: u64 = 1_000_000_000;

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Records become old after this time.
    pub keep_ns: u64,
    /// Bytes of records; the oldest ones go first.
    pub bytes_max: usize,
}

/// Why a stream cannot be read on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// It does not begin as a stream of a recorder does.
    #[error("the recorder's stream does not begin with the header of a recording")]
    NotAStream,
    /// A record has an impossible size.
    #[error("the recorder's stream is damaged: a record of {0} bytes")]
    Damaged(u16),
    /// The description of the recording does not end.
    #[error("the recorder describes its events and features in more than {} MiB", HEAD_BYTES_MAX >> 20)]
    HeadTooLarge,
}

#[derive(Debug)]
struct Piece {
    begun_ns: u64,
    bytes: Vec<u8>,
}

/// The records of the last while of a stream.
#[derive(Debug)]
pub struct Window {
    bounds: Bounds,
    /// The beginning of a record whose end is still to come.
    input: Vec<u8>,
    head: Vec<u8>,
    events: Vec<EventDesc>,
    table: EventTable,
    has_samples: bool,
    has_rounds: bool,
    /// The state at the beginning of the first piece.
    base: Sideband,
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Window {
    /// Without records.
    pub fn new(bounds: Bounds) -> Window {
        Window {
            bounds,
            input: Vec::new(),
            head: Vec::new(),
            events: Vec::new(),
            table: EventTable::new(&[]),
            has_samples: false,
            has_rounds: false,
            base: Sideband::default(),
            pieces: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Takes more of the stream, cut anywhere.
    ///
    /// # Errors
    /// The stream is none, or damaged.
    pub fn push(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), StreamError> {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let taken = self.take_all(&input, now_ns)?;
        input.drain(..taken);
        self.input = input;
        self.forget_old(now_ns);
        Ok(())
    }

    /// Takes whole records; gives their bytes.
    fn take_all(&mut self, input: &[u8], now_ns: u64) -> Result<usize, StreamError> {
        let mut at = 0;
        if self.head.is_empty() {
            let Some(head) = input.get(..PIPE_HEADER_SIZE_BYTES) else { return Ok(0) };
            let mut expected = b"PERFILE2".to_vec();
            expected.extend((PIPE_HEADER_SIZE_BYTES as u64).to_le_bytes());
            if head != expected {
                return Err(StreamError::NotAStream);
            }
            self.head = expected;
            at = PIPE_HEADER_SIZE_BYTES;
        }
        while let Some(size) = whole_size(&input[at..])? {
            self.take(&input[at..at + size], now_ns)?;
            at += size;
        }
        Ok(at)
    }

    fn take(&mut self, whole: &[u8], now_ns: u64) -> Result<(), StreamError> {
        let Some((record, _)) = RawRecord::split(whole) else { return Ok(()) };
        match record.header.kind {
            kind if kind < record_type::USER_START => {
                self.has_samples |= kind == record_type::SAMPLE;
                self.keep(whole, now_ns);
                Ok(())
            }
            record_type::FINISHED_ROUND => {
                self.has_rounds = true;
                Ok(())
            }
            record_type::FINISHED_INIT => Ok(()),
            // Later ones describe the end of the recording, which no reader of a pipe takes.
            _ if self.has_samples => Ok(()),
            kind => {
                if self.head.len() + whole.len() > HEAD_BYTES_MAX {
                    return Err(StreamError::HeadTooLarge);
                }
                self.head.extend_from_slice(whole);
                if kind == record_type::HEADER_ATTR {
                    self.events.extend(event_of_attr_record(record.body));
                    self.table = EventTable::new(&self.events);
                }
                Ok(())
            }
        }
    }

    fn keep(&mut self, whole: &[u8], now_ns: u64) {
        let is_open = |piece: &Piece| {
            piece.bytes.len() < PIECE_BYTES && now_ns.saturating_sub(piece.begun_ns) < PIECE_NS
        };
        if !self.pieces.back().is_some_and(is_open) {
            self.pieces.push_back(Piece { begun_ns: now_ns, bytes: Vec::new() });
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.bytes.extend_from_slice(whole);
            self.bytes += whole.len();
        }
    }

    /// Lets records go that are too old or too many.
    pub fn forget_old(&mut self, now_ns: u64) {
        let keep_ns = self.bounds.keep_ns;
        let is_old = |piece: &Piece| now_ns.saturating_sub(piece.begun_ns) >= keep_ns;
        while self.bytes > self.bounds.bytes_max || self.pieces.front().is_some_and(is_old) {
            if !self.forget_first() {
                return;
            }
        }
    }

    /// Lets all records go; those that still come count anew.
    pub fn forget_all(&mut self) {
        while self.forget_first() {}
    }

    fn forget_first(&mut self) -> bool {
        let Some(piece) = self.pieces.pop_front() else { return false };
        self.bytes -= piece.bytes.len();
        self.base.apply(&piece.bytes, &self.table);
        true
    }

    /// Forgets processes that are gone by now.
    pub fn prune(&mut self, is_alive: impl FnMut(i32) -> bool) {
        self.base.retain(is_alive);
    }

    /// When the first of its records came.
    pub fn begun_ns(&self) -> Option<u64> {
        self.pieces.front().map(|piece| piece.begun_ns)
    }

    /// Bytes of records.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The state that old records left.
    pub fn sideband(&self) -> &Sideband {
        &self.base
    }

    /// Whether the stream has named its events.
    pub fn has_begun(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the recorder has emptied its rings once.
    pub fn has_rounds(&self) -> bool {
        self.has_rounds
    }

    /// Writes a recording of the records, in the form of a pipe.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        let mut state = Vec::new();
        self.base.write_to(&mut state);
        out.write_all(&state)?;
        self.pieces.iter().try_for_each(|piece| out.write_all(&piece.bytes))
    }
}

/// The size of the first record with its payload; `None` where its end is still to come.
fn whole_size(bytes: &[u8]) -> Result<Option<usize>, StreamError> {
    let Some(header) = RecordHeader::parse(bytes) else { return Ok(None) };
    let size = usize::from(header.size_bytes);
    if size < HEADER_SIZE_BYTES {
        return Err(StreamError::Damaged(header.size_bytes));
    }
    let payload = match (header.kind, bytes.get(HEADER_SIZE_BYTES..HEADER_SIZE_BYTES + 4)) {
        (record_type::TRACING_DATA, Some(word)) => {
            word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word) as usize)
        }
        (record_type::TRACING_DATA, None) => return Ok(None),
        _ => 0,
    };
    if payload > HEAD_BYTES_MAX {
        return Err(StreamError::HeadTooLarge);
    }
    Ok(Some(size + payload).filter(|size| *size <= bytes.len()))
}
