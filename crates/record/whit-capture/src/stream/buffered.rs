//! Records by way of blocks: compressed or not, written at once or while the next block fills.

use std::io;
use std::time::Instant;

use whit_engine_api::ring_slices::RingSlices;

use super::blocks::{Block, BlockPool, Written};
use super::compress::{self, Compressor};
use super::engine::Engine;
use super::out::{Out, SinkError};
use crate::loss::{ScannedRecords, Tally};

/// The blocks of one stream.
#[derive(Debug)]
pub(super) struct Buffered {
    compressor: Option<Compressor>,
    whole_frames: bool,
    engine: Engine,
    pool: BlockPool,
    current: Option<Block>,
    /// Blocks that were written ahead of others that are still under way, by offset: should one of
    /// those fail, these are lost too.
    ahead: Vec<(u64, Tally)>,
    /// Offsets of the blocks under way.
    under_way: Vec<u64>,
    failed: Option<Failure>,
}

/// The first block, by its place, that could not be written.
#[derive(Debug)]
struct Failure {
    offset: u64,
    /// Bytes of the block that are kept.
    kept: usize,
    /// The records in these bytes.
    kept_tally: Tally,
    error: io::Error,
}

impl Buffered {
    pub(super) fn new(
        compressor: Option<Compressor>,
        whole_frames: bool,
        engine: Engine,
        pool: BlockPool,
    ) -> Buffered {
        Buffered {
            compressor,
            whole_frames,
            engine,
            pool,
            current: None,
            ahead: Vec::new(),
            under_way: Vec::new(),
            failed: None,
        }
    }

    /// Takes a chunk of whole records.
    pub(super) fn take(
        &mut self,
        records: ScannedRecords<'_>,
        out: &mut Out,
    ) -> Result<(), SinkError> {
        let (size, tally) = (records.size_bytes(), records.tally());
        let mut block = match self.block_for(size, out) {
            Ok(block) => block,
            Err(error) => {
                out.counts.unwritten += tally;
                return Err(error);
            }
        };
        block.tally += tally;
        let before = block.buffer.used().len();
        let result = match &mut self.compressor {
            Some(compressor) => {
                compressor.chunk(records.slices(), self.whole_frames, &mut block.buffer)
            }
            None => {
                records.slices().iter().for_each(|piece| block.buffer.push(piece));
                Ok(())
            }
        };
        if self.compressor.is_some() {
            out.counts.compressed_from_bytes += size as u64;
            out.counts.compressed_to_bytes += (block.buffer.used().len() - before) as u64;
        }
        self.current = Some(block);
        result.map_err(SinkError::from)
    }

    /// The current block, or another one where that has no room for a chunk of this size. A frame
    /// goes on in the next block.
    fn block_for(&mut self, size: usize, out: &mut Out) -> Result<Block, SinkError> {
        let needed = self.compressor.as_ref().map_or(size, |_| compress::chunk_room_bytes());
        if let Some(block) = self.current.take_if(|block| block.buffer.free_bytes() >= needed) {
            return Ok(block);
        }
        self.submit(out)?;
        self.next_block(out)
    }

    /// Starts to write the current block.
    pub(super) fn submit(&mut self, out: &mut Out) -> Result<(), SinkError> {
        self.reap(out)?;
        let Some(block) = self.current.take_if(|block| !block.buffer.used().is_empty()) else {
            return Ok(());
        };
        while !self.engine.has_room() {
            if let Some(written) = self.stall(out)? {
                self.settle(written, out);
            }
        }
        if self.failed.is_some() {
            out.counts.unwritten += block.tally;
            return self.check(out);
        }
        let size = block.buffer.used().len();
        let offset = out.file.reserve(size);
        self.under_way.push(offset);
        let tally = block.tally;
        let begin = Instant::now();
        let submitted = self.engine.submit(&out.file, offset, block);
        out.counts.write_ns += begin.elapsed().as_nanos() as u64;
        out.counts.writes += 1;
        out.counts.bytes += size as u64;
        if let Err(error) = submitted {
            out.counts.unwritten += tally;
            let failure = Failure { offset, kept: 0, kept_tally: Tally::default(), error };
            self.fail(failure, out);
        }
        self.reap(out)
    }

    /// Waits until everything is written.
    pub(super) fn finish(&mut self, out: &mut Out) -> Result<(), SinkError> {
        let submitted = self.submit(out);
        while let Some(written) = self.engine.complete()? {
            self.settle(written, out);
        }
        // After a failure too: only now that nothing is under way, the file can be cut.
        let checked = self.check(out);
        submitted.and(checked)
    }

    fn next_block(&mut self, out: &mut Out) -> Result<Block, SinkError> {
        loop {
            self.reap(out)?;
            if let Some(block) = self.current.take().or_else(|| self.pool.take()) {
                return Ok(block);
            }
            match self.stall(out)? {
                Some(written) => self.settle(written, out),
                None => return Err(io::Error::other("all blocks of a stream are gone").into()),
            }
        }
    }

    /// Waits for a block to be written, at the expense of the rings.
    fn stall(&mut self, out: &mut Out) -> Result<Option<Written>, SinkError> {
        let begin = Instant::now();
        let written = self.engine.complete()?;
        out.counts.stalls += 1;
        out.counts.stall_ns += begin.elapsed().as_nanos() as u64;
        Ok(written)
    }

    /// Takes back the blocks that have been written meanwhile.
    fn reap(&mut self, out: &mut Out) -> Result<(), SinkError> {
        while let Some(written) = self.engine.try_complete() {
            self.settle(written, out);
        }
        self.check(out)
    }

    /// After a failed write, gives its error and cuts the file behind the kept bytes.
    fn check(&mut self, out: &mut Out) -> Result<(), SinkError> {
        let Some(failed) = &self.failed else { return Ok(()) };
        if let Some(block) = self.current.take() {
            out.counts.unwritten += block.tally;
        }
        let error = io::Error::new(failed.error.kind(), failed.error.to_string());
        let error = failed.error.raw_os_error().map_or(error, io::Error::from_raw_os_error);
        // Others may still be under way behind it; `finish` waits for them and cuts again.
        if self.under_way.is_empty() {
            out.file.cut(failed.offset + failed.kept as u64);
        }
        Err(error.into())
    }

    /// Books a block whose write has ended.
    fn settle(&mut self, written: Written, out: &mut Out) {
        let Written { offset, block, result } = written;
        let tally = block.tally;
        match result {
            Ok(()) => {
                self.under_way.retain(|other| *other != offset);
                self.ahead.push((offset, tally));
                self.forget_settled(out);
            }
            Err((some, error)) => {
                let bytes = RingSlices([block.buffer.used(), &[]]);
                // Half a frame is worth nothing: of compressed blocks nothing is kept.
                let kept = match self.compressor {
                    Some(_) => 0,
                    None => bytes.whole_records(out.file.kept_room(some)),
                };
                let kept_tally = Tally::of(&block.buffer.used()[..kept]);
                out.counts.bytes -= (block.buffer.used().len() - kept) as u64;
                out.counts.unwritten += tally;
                self.fail(Failure { offset, kept, kept_tally, error }, out);
            }
        }
        self.pool.give_back(block);
    }

    /// Books a failed write. The first failed block by its place may keep some bytes; all blocks
    /// behind it are lost.
    fn fail(&mut self, failure: Failure, out: &mut Out) {
        self.under_way.retain(|other| *other != failure.offset);
        match &mut self.failed {
            Some(first) if first.offset < failure.offset => {}
            first => {
                if let Some(later) = first.take() {
                    out.counts.unwritten += later.kept_tally;
                }
                out.counts.unwritten -= failure.kept_tally;
                *first = Some(failure);
            }
        }
        self.forget_settled(out);
    }

    /// Blocks that were written are safe when nothing before them is under way or has failed.
    fn forget_settled(&mut self, out: &mut Out) {
        let failed = self.failed.as_ref().map(|failed| failed.offset);
        let oldest = self.under_way.iter().min().copied();
        self.ahead.retain(|(offset, tally)| {
            if failed.is_some_and(|failed| failed < *offset) {
                out.counts.unwritten += *tally;
                return false;
            }
            oldest.is_some_and(|oldest| oldest < *offset)
        });
    }
}
