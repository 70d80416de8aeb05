//! The records of the last while.

use crate::compress::{Compressor, decoded};
use crate::dump::Newer;
use crate::frozen::Frozen;
use crate::piece::{Piece, is_needed_later, records};
use crate::sampled::Sampled;
use crate::sideband::Sideband;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use whit_perfdata::encode::RecordEncoder;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::header::PIPE_HEADER_SIZE_BYTES;
use whit_perfdata::let_go::LetGo;
use whit_perfdata::reader::event_of_attr_record;
use whit_perfdata::record::{HEADER_SIZE_BYTES, RawRecord, RecordHeader, record_type};
use whit_perfdata::sample::SampleId;
use whit_types::TimestampNs;

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

/// Records that went although somebody still wanted them ([`Window::want_from`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lost {
    /// Records that later samples need no more.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time of the last one.
    pub until: TimestampNs,
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

/// Sees the records of a stream as they come, in the order in which the recorder has written them.
pub trait Observer: fmt::Debug + Send {
    /// The records that come describe themselves by this head of a stream.
    fn begin(&mut self, head: &[u8]);
    /// The next record: of the kernel, or a mark that the recorder has emptied its rings.
    fn see(&mut self, record: RawRecord<'_>);
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
    drained: Option<u64>,
    /// When the first sample came: records of processes that exist come before.
    sampled_since_ns: Option<u64>,
    /// The time of the last call.
    now_ns: u64,
    /// The state at the beginning of the first piece.
    base: Sideband,
    /// Somebody else may hold a piece: then it is whole.
    pieces: VecDeque<Arc<Piece>>,
    bytes: usize,
    wanted_from_ns: Option<u64>,
    lost: Lost,
    compressor: Option<Compressor>,
    observer: Option<Box<dyn Observer>>,
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
            drained: None,
            sampled_since_ns: None,
            now_ns: 0,
            base: Sideband::default(),
            pieces: VecDeque::new(),
            bytes: 0,
            wanted_from_ns: None,
            lost: Lost::default(),
            compressor: None,
            observer: None,
        }
    }

    /// Shows the records that still come to an observer, in place of the one before.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
        if self.has_samples {
            self.begin_observing();
        }
    }

    fn begin_observing(&mut self) {
        let head = &self.head;
        self.observer.iter_mut().for_each(|observer| observer.begin(head));
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
                if kind == record_type::SAMPLE {
                    if !std::mem::replace(&mut self.has_samples, true) {
                        self.begin_observing();
                    }
                    self.sampled_since_ns.get_or_insert(now_ns);
                }
                self.show(record);
                self.keep(record, whole, now_ns);
                Ok(())
            }
            record_type::FINISHED_ROUND => {
                self.show(record);
                self.has_rounds = true;
                let number = record.body.first_chunk().map(|number| u64::from_le_bytes(*number));
                self.drained = number.or(self.drained);
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

    /// Records without a sample in front need no observer: they are of no event.
    fn show(&mut self, record: RawRecord<'_>) {
        if self.has_samples {
            self.observer.iter_mut().for_each(|observer| observer.see(record));
        }
    }

    fn keep(&mut self, record: RawRecord<'_>, whole: &[u8], now_ns: u64) {
        let wanted_from_ns = self.wanted_from_ns;
        let is_open = |piece: &Arc<Piece>| {
            Arc::strong_count(piece) == 1
                && piece.bytes.len() < PIECE_BYTES
                && now_ns.saturating_sub(piece.begun_ns) < PIECE_NS
                && wanted_from_ns.is_none_or(|from_ns| piece.begun_ns >= from_ns)
        };
        if !self.pieces.back().is_some_and(is_open) {
            self.close_last();
            self.pieces.push_back(Arc::new(Piece { begun_ns: now_ns, ..Piece::default() }));
        }
        if let Some(piece) = self.pieces.back_mut().and_then(Arc::get_mut) {
            piece.bytes.extend_from_slice(whole);
            self.bytes += whole.len();
            match record.header.kind {
                record_type::SAMPLE => piece.sampled.add_sample(record, &self.table),
                record_type::FORK => piece.parents.add_parent(record),
                _ => {}
            }
        }
    }

    /// A piece to which nothing is added any more.
    fn close_last(&mut self) {
        let Some(piece) = self.pieces.back_mut().and_then(Arc::get_mut) else { return };
        piece.close();
        let Some(compressor) = &mut self.compressor else { return };
        // Where zstd has no memory, the records stay as they are.
        let Ok(small) = compressor.records(&piece.bytes) else { return };
        self.bytes -= piece.size_bytes();
        piece.compress(small);
        self.bytes += piece.size_bytes();
    }

    /// Compresses records from now on, when they stand in a piece that is closed.
    ///
    /// # Errors
    /// zstd has no memory.
    pub fn compress(&mut self) -> io::Result<()> {
        self.compressor = Some(Compressor::new()?);
        Ok(())
    }

    /// Keeps another number of records from now on.
    pub fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// Lets records go that are too old or too many.
    pub fn forget_old(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let keep_ns = self.bounds.keep_ns;
        let is_old = |piece: &Arc<Piece>| now_ns.saturating_sub(piece.begun_ns) >= keep_ns;
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
        self.bytes -= piece.size_bytes();
        if self.wanted_from_ns.is_some_and(|from_ns| piece.begun_ns >= from_ns) {
            match piece.compressed_from {
                None => self.count_lost(&piece.bytes),
                // It was made here: it can be unpacked.
                Some(_) => self.count_lost(&decoded(&piece.bytes).unwrap_or_default()),
            }
        }
        self.base.apply_all(piece.sideband(), &self.table);
        true
    }

    fn count_lost(&mut self, bytes: &[u8]) {
        for (record, whole) in records(bytes) {
            if is_needed_later(record) {
                continue;
            }
            let time = match record.header.kind {
                record_type::SAMPLE => {
                    let event = self.table.event_of_sample(record.body);
                    let layout = event.and_then(|event| self.table.layout(event));
                    layout.and_then(|layout| layout.sample_time(record.body))
                }
                _ => self.table.parse_id_trailer(record).time,
            };
            self.lost.until = self.lost.until.max(time.unwrap_or_default());
            self.lost.records += 1;
            self.lost.bytes += whole.len() as u64;
        }
    }

    /// Somebody will write the records that came from this time on ([`Window::write_since`]). Gives the losses since
    /// the call before.
    pub fn want_from(&mut self, from_ns: u64) -> Lost {
        self.wanted_from_ns = Some(from_ns);
        std::mem::take(&mut self.lost)
    }

    /// Nobody will write records: those that go are no loss.
    pub fn want_nothing(&mut self) {
        (self.wanted_from_ns, self.lost) = (None, Lost::default());
    }

    /// Forgets processes that are gone, and were gone at a call that is older than the window: no sample that is kept is
    /// one of theirs.
    pub fn prune(&mut self, is_alive: impl FnMut(i32) -> bool) {
        self.base.retain(self.now_ns, self.bounds.keep_ns, is_alive);
    }

    /// The number of the last order to empty all rings that the recorder has carried out.
    pub fn drained(&self) -> Option<u64> {
        self.drained
    }

    /// The records from this time on, to be written while the stream goes on.
    pub fn freeze(&self, from_ns: u64) -> Frozen {
        // All records of a piece came before the next one began.
        let is_older = |next: &&Arc<Piece>| next.begun_ns < from_ns;
        let older = self.pieces.iter().skip(1).take_while(is_older).count();
        self.frozen(older)
    }

    /// The records that came since; `None` where some of them are gone, or where the stream describes more by now.
    pub fn newer_than(&self, frozen: &Frozen) -> Option<Newer> {
        // A piece that somebody else has gets no further records.
        let last = frozen.pieces.last().filter(|_| frozen.head.len() == self.head.len())?;
        let at = self.pieces.iter().rposition(|piece| Arc::ptr_eq(piece, last))?;
        let pieces = self.pieces.iter().skip(at + 1).cloned().collect();
        Some(Newer { pieces, sampled_since_ns: self.sampled_since_ns })
    }

    /// Only the sideband of so many pieces is wanted.
    fn frozen(&self, older: usize) -> Frozen {
        Frozen {
            lost: Vec::new(),
            let_go: None,
            sampled: None,
            sampled_since_ns: self.sampled_since_ns,
            head: self.head.clone(),
            base: self.base.clone(),
            older: self.pieces.iter().take(older).cloned().collect(),
            pieces: self.pieces.iter().skip(older).cloned().collect(),
        }
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
        self.frozen(0).write_to(out)
    }

    /// Writes a recording of the records that came from this time on. From those before, it has only the
    /// records that later samples need. A record in front says how many were lost.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_since(&self, from_ns: u64, out: &mut impl Write) -> io::Result<()> {
        self.freeze_since(from_ns).write_to(out)
    }

    /// The records that [`Window::write_since`] writes, to be written while the stream goes on.
    pub fn freeze_since(&self, from_ns: u64) -> Frozen {
        let older = self.pieces.iter().take_while(|piece| piece.begun_ns < from_ns).count();
        let mut lost = Vec::new();
        self.write_lost(&mut lost);
        // The processes of the samples that are wanted, and the parents of those that began meanwhile.
        let mut sampled = Sampled::default();
        self.pieces.iter().for_each(|piece| sampled.merge(&piece.parents));
        self.pieces.iter().skip(older).for_each(|piece| sampled.merge(&piece.sampled));
        let Lost { records, bytes, until } = self.lost;
        let let_go = (!lost.is_empty()).then_some(LetGo { records, bytes, until });
        Frozen { lost, let_go, sampled: Some(sampled), ..self.frozen(older) }
    }

    /// The same, and lets these records go: only what later samples need of them stays. Those that come from now on are
    /// wanted.
    pub fn take_since(&mut self, from_ns: u64, now_ns: u64) -> (Frozen, Lost) {
        let frozen = self.freeze_since(from_ns);
        self.wanted_from_ns = None;
        self.forget_all();
        (frozen, self.want_from(now_ns))
    }

    fn write_lost(&self, out: &mut Vec<u8>) {
        let Some(layout) = self.table.layout(0).filter(|_| self.lost.records > 0) else { return };
        let event = self.events.first().and_then(|event| event.ids.first().copied()).unwrap_or(0);
        let id = SampleId { time: Some(self.lost.until), id: Some(event), ..SampleId::default() };
        RecordEncoder::new(*layout).lost(out, event, self.lost.records, None, id);
    }
}

/// The size of the first record with its payload; `None` where its end is still to come.
fn whole_size(bytes: &[u8]) -> Result<Option<usize>, StreamError> {
    let Some(header) = RecordHeader::parse(bytes) else { return Ok(None) };
    let size = usize::from(header.size_bytes);
    if size < HEADER_SIZE_BYTES {
        return Err(StreamError::Damaged(header.size_bytes));
    }
    let payload = match header.kind {
        // A recorder of samples alone has no AUX area.
        record_type::TRACING_DATA => {
            match RawRecord::bytes_behind(header, &bytes[HEADER_SIZE_BYTES..]) {
                Some(payload) => usize::try_from(payload).unwrap_or(usize::MAX),
                None => return Ok(None),
            }
        }
        _ => 0,
    };
    if payload > HEAD_BYTES_MAX {
        return Err(StreamError::HeadTooLarge);
    }
    Ok(Some(size + payload).filter(|size| *size <= bytes.len()))
}
