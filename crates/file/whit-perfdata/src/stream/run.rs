//! A part of a stream that can only be read in order.

use super::inflate::{Filling, InflateError, Inflater};
use super::source::{Source, compressed_payload, is_compressed, is_special, whole_record};
use super::{RecordCounts, StreamError};
use crate::record::RecordHeader;

/// Records from a place on where nothing is left over from before: compressed ones, and plain ones
/// between them.
pub(super) struct Run {
    /// Where it begins in the file.
    start: u64,
    /// False until the first record was used.
    begun: bool,
    inflater: Inflater,
    /// Payload of the current compressed record, and the record's place in the file.
    payload: Vec<u8>,
    payload_used: usize,
    payload_offset: u64,
    pub(super) counts: RecordCounts,
}

/// How a step of a run ended.
pub(super) enum Step {
    /// The run goes on behind this step.
    Further,
    /// A frame ended together with a record, and another may begin: the rest may be readable on its
    /// own.
    Clean,
    /// So many bytes are left, and hold no whole record.
    End(u64),
    /// A record with a payload behind it that is to be stepped over.
    Payload(RecordHeader),
    /// Nothing was written here: the rest does not depend on earlier bytes.
    Hole,
}

impl Run {
    pub(super) fn new(start: u64) -> std::io::Result<Run> {
        Ok(Run {
            start,
            begun: false,
            inflater: Inflater::new()?,
            payload: Vec::new(),
            payload_used: 0,
            payload_offset: start,
            counts: RecordCounts::default(),
        })
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Bytes of a record whose end did not come.
    pub(super) fn partial_bytes(&self) -> usize {
        self.inflater.partial_bytes()
    }

    /// One bounded step. The block that is being filled begins at `position` of the decoded stream.
    pub(super) fn step(
        &mut self,
        source: &mut Source,
        position: u64,
        filling: &mut Filling<'_>,
    ) -> Result<Step, StreamError> {
        if self.payload_used < self.payload.len() || self.inflater.has_more_output() {
            return self.inflate(source, position, filling);
        }
        if self.begun && self.inflater.is_clean() && source.may_begin_frame()? {
            return Ok(Step::Clean);
        }
        self.next_record(source, filling)
    }

    /// Takes the next record of the file: a compressed one becomes the current payload, any other
    /// is copied out.
    fn next_record(
        &mut self,
        source: &mut Source,
        filling: &mut Filling<'_>,
    ) -> Result<Step, StreamError> {
        self.begun = true;
        let Some(header) = source.header()? else { return Ok(Step::End(source.left())) };
        if source.is_hole() {
            return Ok(Step::Hole);
        }
        let Some((_, record)) = whole_record(source.rest()) else {
            return Err(source.bad_record(source.offset(), header.size_bytes, source.offset()));
        };
        if is_compressed(header.kind) {
            let payload = compressed_payload(header.kind, record);
            self.payload.clear();
            self.payload.extend(payload);
            self.payload_used = 0;
            self.payload_offset = source.offset();
            self.counts.compressed(header.kind, payload.len());
        } else if is_special(header.kind) {
            return Ok(Step::Payload(header));
        } else {
            filling.push(record);
        }
        source.advance(u64::from(header.size_bytes));
        Ok(Step::Further)
    }

    fn inflate(
        &mut self,
        source: &Source,
        position: u64,
        filling: &mut Filling<'_>,
    ) -> Result<Step, StreamError> {
        let before_bytes = self.inflater.produced_bytes();
        let used = self.inflater.step(&self.payload[self.payload_used..], filling);
        self.counts.decompressed_bytes += self.inflater.produced_bytes() - before_bytes;
        let offset = self.payload_offset;
        self.payload_used += used.map_err(|error| match error {
            InflateError::Zstd(reason) => source.decompress_error(offset, reason),
            InflateError::Record(size) => {
                source.bad_record(position + filling.len() as u64, size, offset)
            }
        })?;
        Ok(Step::Further)
    }
}
