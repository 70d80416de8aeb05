//! Reading a block on its own, wherever it stands.

use super::block::Block;
use super::inflate::{Filling, Inflater};
use super::source::{compressed_payload, whole_record};
use super::{BlockRange, RecordCounts, Stream, StreamError};
use crate::record::record_type;

/// A block of compressed records is full where a frame ends behind so many bytes of records.
const FULL_BYTES: usize = 512 << 10;

/// A row that inflates to more than this without an end of a frame is not read on its own: a block
/// has to fit into memory for each thread. Frames of whit's have 8 MiB and a chunk at most.
pub const MAX_INFLATED_BLOCK_BYTES: usize = 9 << 20;

/// Reads blocks in any order. One per thread: it keeps the decoder's memory.
#[derive(Default)]
pub struct BlockReader {
    /// Compressed records.
    input: Vec<u8>,
    /// Packed ones.
    packed: Vec<u8>,
    inflater: Option<Inflater>,
}

/// Records that were decoded on their own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnBlock {
    /// Bytes of the range that make the block; the bytes behind them are independent of it.
    pub(super) size_bytes: u32,
    pub(super) counts: RecordCounts,
}

impl OwnBlock {
    /// Records that wrap no others.
    fn plain(range: BlockRange) -> OwnBlock {
        OwnBlock { size_bytes: range.size_bytes, counts: RecordCounts::default() }
    }
}

impl RecordCounts {
    /// Counts a record that wraps others.
    pub(super) fn compressed(&mut self, kind: u32, payload_bytes: usize) {
        match kind {
            record_type::COMPRESSED => self.compressed += 1,
            _ => self.compressed2 += 1,
        }
        self.compressed_bytes += payload_bytes as u64;
    }
}

impl BlockReader {
    /// Reads a block that a [`StreamReader`](super::StreamReader) of this stream has given out, and
    /// replaces the contents of `out`.
    pub fn read(
        &mut self,
        stream: &Stream,
        range: BlockRange,
        out: &mut Block,
    ) -> Result<(), StreamError> {
        let block = self.decode(stream, range, out)?;
        let is_whole = block.is_some_and(|block| block.size_bytes == range.size_bytes);
        if is_whole { Ok(()) } else { Err(stream.changed(range.offset)) }
    }

    /// Decodes the records of a range as far as they make one block. `None` where they do not
    /// decode on their own, or to too much.
    pub(super) fn decode(
        &mut self,
        stream: &Stream,
        range: BlockRange,
        out: &mut Block,
    ) -> Result<Option<OwnBlock>, StreamError> {
        if stream.dumps.is_some() && !range.compressed {
            stream.read_block(range.offset, range.size_bytes as usize, out)?;
            return Ok(Some(OwnBlock::plain(range)));
        }
        out.forget_gaps();
        let out = &mut out.bytes;
        let Some(unpacker) = &stream.unpacker else { return self.inflate(stream, range, out) };
        let mut packed = std::mem::take(&mut self.packed);
        let block = self.inflate(stream, range, &mut packed);
        out.clear();
        if let Ok(Some(_)) = block {
            unpacker.unpack(&packed, out);
        }
        self.packed = packed;
        block
    }

    /// The same, with packed records as they are.
    fn inflate(
        &mut self,
        stream: &Stream,
        range: BlockRange,
        out: &mut Vec<u8>,
    ) -> Result<Option<OwnBlock>, StreamError> {
        let size = range.size_bytes as usize;
        if !range.compressed {
            stream.read_exact(range.offset, size, out)?;
            return Ok(Some(OwnBlock::plain(range)));
        }
        stream.read_exact(range.offset, size, &mut self.input)?;
        // Without memory for a decoder, the reading in order says so.
        let Some(inflater) = ready(&mut self.inflater) else { return Ok(None) };
        let block = inflate_block(inflater, &self.input, out);
        Ok(Some(block).filter(|block| block.size_bytes > 0))
    }
}

/// An inflater that knows of nothing before.
fn ready(inflater: &mut Option<Inflater>) -> Option<&mut Inflater> {
    let mut kept = inflater.take().or_else(|| Inflater::new().ok())?;
    if !kept.is_clean() {
        kept.reset().ok()?;
    }
    Some(inflater.insert(kept))
}

/// Gives back how far it came: up to the last end of both a frame and a record.
fn inflate_block(inflater: &mut Inflater, records: &[u8], out: &mut Vec<u8>) -> OwnBlock {
    let (mut counts, mut block) = (RecordCounts::default(), OwnBlock::default());
    let (mut at, mut decoded_bytes) = (0, 0);
    let mut filling = Filling::new(out);
    let before_bytes = inflater.produced_bytes();
    while let Some((header, record)) = whole_record(&records[at..]) {
        let payload = compressed_payload(header.kind, record);
        counts.compressed(header.kind, payload.len());
        if !inflate_payload(inflater, payload, &mut filling) {
            break;
        }
        at += record.len();
        if inflater.is_clean() {
            counts.decompressed_bytes = inflater.produced_bytes() - before_bytes;
            block = OwnBlock { size_bytes: at as u32, counts };
            decoded_bytes = filling.len();
            if decoded_bytes >= FULL_BYTES {
                break;
            }
        }
    }
    filling.finish(decoded_bytes);
    block
}

/// Whether all of the payload came out, and all in all not too much.
fn inflate_payload(inflater: &mut Inflater, payload: &[u8], filling: &mut Filling<'_>) -> bool {
    let mut used = 0;
    while used < payload.len() || inflater.has_more_output() {
        let Ok(taken) = inflater.step(&payload[used..], filling) else { return false };
        used += taken;
        if filling.len() > MAX_INFLATED_BLOCK_BYTES {
            return false;
        }
    }
    true
}
