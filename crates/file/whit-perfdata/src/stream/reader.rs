//! Reading a stream from the start, block by block.

use super::block::Block;
use super::block_reader::OwnBlock;
use super::inflate::Filling;
use super::read_ahead::ReadAhead;
use super::run::{Run, Step};
use super::source::{Front, Source, is_compressed};
use super::{BLOCK_SIZE_BYTES, BlockInfo, BlockRange, Missing, RecordCounts, Stream, StreamError};
use crate::event_table::EventTable;
use crate::packed::Unpacker;
use crate::record::{HEADER_SIZE_BYTES, RawRecord, RecordHeader, record_type};
use std::sync::Arc;

/// Reads a stream from the start, block by block.
pub struct StreamReader {
    source: Source,
    /// Position in the decoded stream.
    position: u64,
    /// Where the last block ended in the file.
    consumed_offset: u64,
    /// True behind the first compressed record: positions are then those of decoded bytes.
    in_compressed: bool,
    /// Blocks behind the current one that are decoded meanwhile.
    ahead: ReadAhead,
    /// True where nothing more can be read ahead before all that is has been taken.
    ahead_ends: bool,
    /// Blocks that may be read ahead: few behind one that could not be read on its own, since all
    /// blocks ahead of it are read in vain.
    ahead_limit: usize,
    run: Option<Box<Run>>,
    /// The error behind the last block.
    failure: Option<StreamError>,
    truncation: Option<Missing>,
    holes: Option<Missing>,
    records: RecordCounts,
    /// Unpacks blocks of a recording with packed records. It stands behind all reading ahead, since
    /// earlier blocks define the stacks of later ones.
    unpacker: Option<Arc<Unpacker>>,
    /// A block as it stands in the file, and bytes that blocks have become.
    packed: Vec<u8>,
    unpacked_bytes: u64,
}

impl StreamReader {
    /// Starts at the stream's first record.
    pub fn new(stream: Stream) -> StreamReader {
        StreamReader::with_threads(stream, 1)
    }

    /// The same; blocks that can be read on their own are decoded by up to so many threads, where
    /// there are several. They end with the reader.
    pub fn with_threads(stream: Stream, threads: usize) -> StreamReader {
        StreamReader::as_it_leaves_out(Stream { dumps: None, ..stream }, threads)
    }

    /// The same, for callers that look at no user stack: of the dumps that the stream
    /// [leaves out](Stream::leaving_out_dumps), any bytes come out.
    pub fn without_dumps(
        stream: &Stream,
        events: &Arc<EventTable>,
        threads: usize,
    ) -> StreamReader {
        StreamReader::as_it_leaves_out(stream.leaving_out_dumps(events, 0), threads)
    }

    /// The same, from the start to the end of the stream alone. The file may be mapped meanwhile.
    pub fn mapped_without_dumps(
        stream: &Stream,
        events: &Arc<EventTable>,
        threads: usize,
    ) -> StreamReader {
        StreamReader::as_it_leaves_out(stream.mapped_without_dumps(events), threads)
    }

    fn as_it_leaves_out(mut stream: Stream, threads: usize) -> StreamReader {
        let unpacker = stream.unpacker.take();
        StreamReader {
            position: stream.start,
            consumed_offset: stream.start,
            in_compressed: false,
            source: Source::new(stream),
            ahead: ReadAhead::new(threads),
            ahead_ends: false,
            ahead_limit: usize::MAX,
            run: None,
            failure: None,
            truncation: None,
            holes: None,
            records: RecordCounts::default(),
            unpacker,
            packed: Vec::new(),
            unpacked_bytes: 0,
        }
    }

    /// Starts at a block's [start](BlockInfo::start), and gives out the same blocks from there on
    /// that the first reading did, up to the next that has a range. Positions are not the same.
    pub fn resume(stream: Stream, start: u64) -> Result<StreamReader, StreamError> {
        let mut reader = StreamReader::new(stream);
        reader.begin_run(start)?;
        reader.consumed_offset = reader.source.offset();
        Ok(reader)
    }

    /// Bytes of the file used so far, for progress.
    pub fn consumed_bytes(&self) -> u64 {
        self.consumed_offset - self.source.stream().start
    }

    /// The end of the stream, if it holds no whole record. Valid once the reader has come to the
    /// end.
    pub fn truncation(&self) -> Option<Missing> {
        self.truncation
    }

    /// Zeros where records should begin, which were stepped over: a recorder that was killed had
    /// not written there yet, but behind it.
    pub fn holes(&self) -> Option<Missing> {
        self.holes
    }

    /// Counts of wrapping records so far.
    pub fn record_counts(&self) -> RecordCounts {
        self.records
    }

    /// Reads the next block of whole records into `out`, and replaces its contents. `None` at the
    /// end. After an error the stream cannot be read on; all blocks before stay valid.
    pub fn next_block(&mut self, out: &mut Vec<u8>) -> Result<Option<BlockInfo>, StreamError> {
        let info = match self.unpacker.clone() {
            None => self.read_block(out),
            Some(unpacker) => self.read_packed(&unpacker, out),
        };
        if !matches!(info, Ok(Some(_))) {
            self.source.seek(self.source.stream().end);
            self.consumed_offset = self.source.offset();
        }
        info
    }

    /// The same, into a block without gaps. `false` at the end.
    pub fn fill(&mut self, out: &mut Block) -> Result<bool, StreamError> {
        out.forget_gaps();
        self.next_block(&mut out.bytes).map(|info| info.is_some())
    }

    /// The same for a stream with packed records: positions count ordinary ones.
    fn read_packed(
        &mut self,
        unpacker: &Unpacker,
        out: &mut Vec<u8>,
    ) -> Result<Option<BlockInfo>, StreamError> {
        let mut packed = std::mem::take(&mut self.packed);
        let info = self.read_block(&mut packed);
        out.clear();
        if let Ok(Some(_)) = info {
            unpacker.unpack(&packed, out);
        }
        self.packed = packed;
        let position = self.source.stream().start + self.unpacked_bytes;
        self.unpacked_bytes += out.len() as u64;
        Ok(info?.map(|info| BlockInfo { position, ..info }))
    }

    fn read_block(&mut self, out: &mut Vec<u8>) -> Result<Option<BlockInfo>, StreamError> {
        loop {
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            let info = if let Some(run) = self.run.take() {
                self.next_of_run(run, out)
            } else if self.reads_ahead() {
                self.next_ahead(out)?
            } else {
                match self.source.front()? {
                    Front::Plain(len) => Some(self.hand_out(len, out)),
                    Front::Special(header) => self.step_over(header)?,
                    Front::Bad(size) => self.step_over_hole(size)?,
                    Front::End(left) => {
                        self.truncate(self.source.offset(), left);
                        return Ok(None);
                    }
                }
            };
            if info.is_some() {
                return Ok(info);
            }
        }
    }

    /// Hands compressed records that may decode on their own, and the records between them, to the
    /// threads that read ahead. `false` if there are none at the front.
    fn reads_ahead(&mut self) -> bool {
        self.ahead_ends &= !self.ahead.is_empty();
        while self.ahead.len() < self.ahead_limit && self.ahead.has_room() && !self.ahead_ends {
            // Errors are met again when all before them has been given out.
            let range = match self.source.front() {
                Ok(Front::Special(header)) if is_compressed(header.kind) => {
                    self.source.frame_range().ok().flatten()
                }
                Ok(Front::Plain(len)) if !self.ahead.is_empty() => {
                    let (offset, size_bytes) = (self.source.offset(), len as u32);
                    Some(BlockRange { offset, size_bytes, compressed: false })
                }
                _ => None,
            };
            self.ahead_ends = range.is_none();
            if let Some(range) = range {
                self.source.advance(u64::from(range.size_bytes));
                self.ahead.push(self.source.stream(), range);
            }
        }
        !self.ahead.is_empty()
    }

    /// The next block of those read ahead. `None` where it holds no record, or can only be read in
    /// order.
    fn next_ahead(&mut self, out: &mut Vec<u8>) -> Result<Option<BlockInfo>, StreamError> {
        let mut block = Block::from(std::mem::take(out));
        let taken = self.ahead.take(&mut block);
        *out = block.bytes;
        let Some((range, outcome)) = taken else { return Ok(None) };
        let Ok(Some(OwnBlock { size_bytes, counts })) = outcome else {
            self.ahead.clear();
            self.ahead_limit = 1;
            return self.begin_run(range.offset).map(|()| None);
        };
        let own = BlockRange { size_bytes, ..range };
        if own != range {
            let rest_bytes = range.size_bytes - size_bytes;
            let rest = BlockRange { offset: own.end(), size_bytes: rest_bytes, ..range };
            self.ahead.push_front(self.source.stream(), rest);
        }
        self.ahead_limit = self.ahead_limit.saturating_mul(2);
        self.in_compressed = true;
        self.records.add(counts);
        self.consumed_offset = own.end();
        let info = BlockInfo { position: self.position, start: own.offset, range: Some(own) };
        self.position += out.len() as u64;
        Ok((!out.is_empty()).then_some(info))
    }

    /// Goes on in order, from a place where nothing is left over from before.
    fn begin_run(&mut self, start: u64) -> Result<(), StreamError> {
        self.source.seek(start);
        let run = Run::new(start).map_err(|reason| self.source.io_error(reason))?;
        self.in_compressed = true;
        self.run = Some(Box::new(run));
        Ok(())
    }

    fn next_of_run(&mut self, mut run: Box<Run>, out: &mut Vec<u8>) -> Option<BlockInfo> {
        let mut filling = Filling::new(out);
        let mut continues = true;
        while continues && filling.len() < BLOCK_SIZE_BYTES {
            match run.step(&mut self.source, self.position, &mut filling) {
                Ok(Step::Further) => {}
                Ok(Step::Payload(header)) => self.skip_payload(header),
                Ok(Step::Clean) => continues = false,
                Ok(Step::Hole) => {
                    self.truncate(self.source.offset(), run.partial_bytes() as u64);
                    continues = false;
                }
                Ok(Step::End(left)) => {
                    self.truncate(self.source.offset(), left);
                    self.source.seek(self.source.stream().end);
                    self.truncate(self.source.offset(), run.partial_bytes() as u64);
                    continues = false;
                }
                Err(error) => {
                    self.failure = Some(error);
                    continues = false;
                }
            }
        }
        let len = filling.len();
        filling.finish(len);
        self.records.add(std::mem::take(&mut run.counts));
        self.consumed_offset = self.source.offset();
        let info = BlockInfo { position: self.position, start: run.start(), range: None };
        self.position += len as u64;
        self.run = Some(run).filter(|_| continues);
        (len > 0).then_some(info)
    }

    /// Gives out plain records. The next call meets the obstacle behind them again, at the front.
    fn hand_out(&mut self, len: usize, out: &mut Vec<u8>) -> BlockInfo {
        let offset = self.source.offset();
        self.source.take(len, out);
        self.consumed_offset = self.source.offset();
        let range = BlockRange { offset, size_bytes: len as u32, compressed: false };
        let info = BlockInfo { position: self.position, start: offset, range: Some(range) };
        self.position += len as u64;
        info
    }

    /// An error where a record says this size, and there is no hole.
    fn step_over_hole(&mut self, size: u16) -> Result<Option<BlockInfo>, StreamError> {
        let offset = self.source.offset();
        let size_bytes = self.source.skip_hole()?;
        if size_bytes == 0 {
            return Err(self.source.bad_record(offset, size, offset));
        }
        let known = self.holes.unwrap_or(Missing { offset, size_bytes: 0 });
        self.holes = Some(Missing { size_bytes: known.size_bytes + size_bytes, ..known });
        self.consumed_offset = self.source.offset();
        if !self.in_compressed {
            self.position += size_bytes;
        }
        Ok(None)
    }

    fn step_over(&mut self, header: RecordHeader) -> Result<Option<BlockInfo>, StreamError> {
        if is_compressed(header.kind) {
            self.begin_run(self.source.offset())?;
        } else {
            self.skip_payload(header);
        }
        Ok(None)
    }

    /// Steps over the record at the front and the bytes that follow it (AUX area, tracepoint
    /// formats).
    fn skip_payload(&mut self, header: RecordHeader) {
        let body = self.source.rest().get(HEADER_SIZE_BYTES..).unwrap_or_default();
        let payload = RawRecord::bytes_behind(header, body);
        let count = match header.kind {
            record_type::AUXTRACE => &mut self.records.auxtrace,
            _ => &mut self.records.tracing_data,
        };
        let skip = u64::from(header.size_bytes).saturating_add(payload.unwrap_or(u64::MAX));
        let left = self.source.left();
        if skip <= left {
            *count += 1;
        } else {
            self.truncate(self.source.offset(), left);
        }
        let skip = skip.min(left);
        self.source.advance(skip);
        self.consumed_offset = self.source.offset();
        if !self.in_compressed {
            self.position += skip;
        }
    }

    fn truncate(&mut self, offset: u64, size_bytes: u64) {
        if size_bytes > 0 {
            let known = self.truncation.unwrap_or(Missing { offset, size_bytes: 0 });
            let size_bytes = known.size_bytes + size_bytes;
            self.truncation = Some(Missing { size_bytes, ..known });
        }
    }
}
