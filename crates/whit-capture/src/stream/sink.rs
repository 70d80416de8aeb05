//! Takes records and sees to it that they are written, or counted as not written.

use std::io;
use std::time::Instant;

use whit_perfdata::encode;
use whit_sys::WriteBuffer;

use super::blocks::{Block, BlockPool, Written};
use super::compress::{self, Compressor};
use super::engine::{AsyncEngine, Engine};
use super::file::StreamFile;
use crate::loss::Tally;
use crate::pieces::Pieces;

/// Records are copied or compressed in pieces of about this much, after each of which the ring
/// gets its space back.
const CHUNK_BYTES: usize = compress::CHUNK_BYTES_MAX;
/// Most that one system call writes straight out of a ring.
const DIRECT_BYTES: usize = 4 << 20;
/// Size of a block of records that are not compressed; more than the largest record.
const PLAIN_BLOCK_BYTES: usize = 512 << 10;
/// What a block of compressed records has room for, in the worst case of records that cannot be
/// compressed.
const CHUNKS_PER_BLOCK: usize = 2;
/// Memory for the blocks of one stream.
const BLOCKS_TOTAL_BYTES: usize = 64 << 20;

/// The recording cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(#[from] pub io::Error);

/// Takes records of any source.
pub trait Sink {
    /// Takes whole records; the bytes are the sink's only until it returns.
    fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError>;
}

/// How a stream is written.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// zstd level, 1 to 22; `None` does not compress.
    pub compression_level: Option<i32>,
    /// End the frame with each piece: other readers write into the same pipe, and nobody's frame can
    /// go on behind another's.
    pub whole_frames: bool,
    /// Blocks that may be written while others are filled; 0 writes at once.
    pub async_blocks: usize,
    /// CPUs for a writer thread, where one is needed.
    pub cpus: Vec<u32>,
}

/// What writing cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Time that the reader spent in writes and in starting them.
    pub write_ns: u64,
    /// Times that the reader had to wait for a block.
    pub stalls: u64,
    /// Time that it waited.
    pub stall_ns: u64,
    /// Bytes that went into compression.
    pub compressed_from_bytes: u64,
    /// Bytes that came out of it.
    pub compressed_to_bytes: u64,
    /// Records that were taken and could not be written.
    pub unwritten: Tally,
}

/// A stream of the recording.
#[derive(Debug)]
pub struct StreamSink {
    file: StreamFile,
    /// `None` writes straight from where the records are.
    buffered: Option<Buffered>,
    /// What it cost so far.
    pub counts: WriteCounts,
}

#[derive(Debug)]
struct Buffered {
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
    /// Bytes of the block that are kept, and what they hold.
    kept: usize,
    kept_tally: Tally,
    error: io::Error,
}

impl StreamSink {
    /// A stream into `file`. Says how asynchronous writes are done, if there are any.
    pub fn new(
        file: StreamFile,
        options: &StreamOptions,
    ) -> io::Result<(StreamSink, Option<AsyncEngine>)> {
        if options.compression_level.is_none() && options.async_blocks == 0 {
            return Ok((StreamSink { file, buffered: None, counts: WriteCounts::default() }, None));
        }
        let compressor = options.compression_level.map(Compressor::new).transpose()?;
        let size_bytes = match compressor {
            Some(_) => CHUNKS_PER_BLOCK * compress::chunk_room_bytes(),
            None => PLAIN_BLOCK_BYTES,
        };
        let depth = options.async_blocks.min(BLOCKS_TOTAL_BYTES / size_bytes);
        let (engine, kind) = match depth {
            0 => (Engine::Direct(None), None),
            depth => {
                let (engine, kind) = Engine::asynchronous(depth, &file, &options.cpus)?;
                (engine, Some(kind))
            }
        };
        let buffered = Buffered {
            compressor,
            whole_frames: options.whole_frames,
            engine,
            pool: BlockPool::new(size_bytes, depth + 1),
            current: None,
            ahead: Vec::new(),
            under_way: Vec::new(),
            failed: None,
        };
        let counts = WriteCounts::default();
        Ok((StreamSink { file, buffered: Some(buffered), counts }, kind))
    }

    /// How much to hand over at once: what was handed over need not stay where it is.
    pub fn chunk_bytes(&self) -> usize {
        if self.buffered.is_some() { CHUNK_BYTES } else { DIRECT_BYTES }
    }

    /// Takes whole records of which there are so many.
    pub fn take(&mut self, pieces: [&[u8]; 2], tally: Tally) -> Result<(), SinkError> {
        match &mut self.buffered {
            Some(_) => self.buffer(pieces, tally),
            None => self.write_through(pieces, tally),
        }
    }

    /// Ends a round over all rings: what comes later is younger than what came before the round
    /// before this one.
    pub fn round(&mut self) -> Result<(), SinkError> {
        self.take([&encode::finished_round(), &[]], Tally { records: 1, samples: 0 })
    }

    /// Hands what has been buffered to the disk, without waiting for it.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        self.reap()?;
        self.compress(Compressor::flush)?;
        self.submit()
    }

    /// Waits until everything is written. Afterwards [`StreamFile::size_bytes`] holds; after an
    /// error the file ends behind the last record that was kept.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        let flushed = self.compress(Compressor::end_frame).and_then(|()| self.submit());
        while let Some(buffered) = &mut self.buffered
            && let Some(written) = buffered.engine.complete()?
        {
            self.written(written);
        }
        flushed.and_then(|()| self.check())
    }

    /// The file, and where the stream ends.
    pub fn file(&self) -> &StreamFile {
        &self.file
    }

    fn write_through(&mut self, pieces: [&[u8]; 2], tally: Tally) -> Result<(), SinkError> {
        let size = pieces[0].len() + pieces[1].len();
        if size == 0 {
            return Ok(());
        }
        let offset = self.file.reserve(size);
        let begin = Instant::now();
        let result = self.file.write(offset, pieces);
        self.counts.write_ns += begin.elapsed().as_nanos() as u64;
        self.counts.writes += 1;
        let Err((written, error)) = result else {
            self.counts.bytes += size as u64;
            return Ok(());
        };
        let kept = Pieces(pieces).whole_records(self.file.kept_room(written));
        self.counts.unwritten += tally;
        self.counts.unwritten -= Tally::of(&Pieces(pieces).first(kept).concat());
        self.counts.bytes += kept as u64;
        self.file.cut(offset + kept as u64);
        Err(error.into())
    }

    fn buffer(&mut self, pieces: [&[u8]; 2], tally: Tally) -> Result<(), SinkError> {
        let size = pieces[0].len() + pieces[1].len();
        if let Err(error) = self.make_room(size) {
            self.counts.unwritten += tally;
            return Err(error);
        }
        let Some(buffered) = &mut self.buffered else { return Ok(()) };
        let Some(block) = &mut buffered.current else { return Ok(()) };
        block.tally += tally;
        let Some(compressor) = &mut buffered.compressor else {
            pieces.iter().for_each(|piece| block.buffer.push(piece));
            return Ok(());
        };
        let before = block.buffer.used().len();
        for piece in pieces {
            compressor.push(piece, &mut block.buffer)?;
        }
        self.counts.compressed_from_bytes += size as u64;
        self.counts.compressed_to_bytes += (block.buffer.used().len() - before) as u64;
        let is_full = compressor.is_full() || buffered.whole_frames;
        self.compress(if is_full { Compressor::end_frame } else { Compressor::flush })
    }

    /// Lets the compressor do something about what it holds.
    fn compress(
        &mut self,
        what: fn(&mut Compressor, &mut WriteBuffer) -> io::Result<()>,
    ) -> Result<(), SinkError> {
        // What it holds back may need a block of its own.
        if self
            .buffered
            .as_ref()
            .is_some_and(|b| b.compressor.as_ref().is_some_and(Compressor::has_news))
        {
            self.make_room(0)?;
        }
        if let Some(Buffered { compressor: Some(compressor), current: Some(block), .. }) =
            &mut self.buffered
        {
            let before = block.buffer.used().len();
            what(compressor, &mut block.buffer)?;
            self.counts.compressed_to_bytes += (block.buffer.used().len() - before) as u64;
        }
        Ok(())
    }

    /// Sees to a block with room for `size` bytes, or for as many compressed ones. The frame goes
    /// on in the next block where this one is full.
    fn make_room(&mut self, size: usize) -> Result<(), SinkError> {
        let Some(buffered) = &mut self.buffered else { return Ok(()) };
        let needed = match &buffered.compressor {
            Some(_) => compress::chunk_room_bytes(),
            None => size,
        };
        if buffered.current.as_ref().is_some_and(|block| block.buffer.free_bytes() >= needed) {
            return Ok(());
        }
        if let Some(Buffered { compressor: Some(compressor), current: Some(block), .. }) =
            &mut self.buffered
        {
            compressor.flush(&mut block.buffer)?;
        }
        self.submit()?;
        let block = self.next_block()?;
        if let Some(buffered) = &mut self.buffered {
            buffered.current = Some(block);
        }
        Ok(())
    }

    /// Starts to write the current block.
    fn submit(&mut self) -> Result<(), SinkError> {
        self.reap()?;
        let Some(buffered) = &mut self.buffered else { return Ok(()) };
        let Some(block) = buffered.current.take_if(|block| !block.buffer.used().is_empty()) else {
            return Ok(());
        };
        while !buffered.engine.has_room() {
            let begin = Instant::now();
            let written = buffered.engine.complete()?;
            self.counts.stalls += 1;
            self.counts.stall_ns += begin.elapsed().as_nanos() as u64;
            if let Some(written) = written {
                buffered.settle(written, &mut self.file, &mut self.counts);
            }
        }
        if buffered.failed.is_some() {
            self.counts.unwritten += block.tally;
            return self.check();
        }
        let size = block.buffer.used().len();
        let offset = self.file.reserve(size);
        buffered.under_way.push(offset);
        let tally = block.tally;
        let begin = Instant::now();
        let submitted = buffered.engine.submit(&self.file, offset, block);
        self.counts.write_ns += begin.elapsed().as_nanos() as u64;
        self.counts.writes += 1;
        self.counts.bytes += size as u64;
        if let Err(error) = submitted {
            self.counts.unwritten += tally;
            let failure = Failure { offset, kept: 0, kept_tally: Tally::default(), error };
            buffered.fail(failure, &mut self.counts);
        }
        self.reap()
    }

    fn next_block(&mut self) -> Result<Block, SinkError> {
        loop {
            self.reap()?;
            let Some(buffered) = &mut self.buffered else {
                return Err(io::Error::other("a stream without blocks").into());
            };
            if let Some(block) = buffered.pool.take() {
                return Ok(block);
            }
            let begin = Instant::now();
            let written = buffered.engine.complete()?;
            self.counts.stalls += 1;
            self.counts.stall_ns += begin.elapsed().as_nanos() as u64;
            match written {
                Some(written) => self.written(written),
                None => return Err(io::Error::other("all blocks of a stream are gone").into()),
            }
        }
    }

    /// Takes back the blocks that have been written meanwhile.
    fn reap(&mut self) -> Result<(), SinkError> {
        while let Some(buffered) = &mut self.buffered
            && let Some(written) = buffered.engine.try_complete()
        {
            self.written(written);
        }
        match &self.buffered {
            Some(Buffered { failed: Some(_), .. }) => self.check(),
            _ => Ok(()),
        }
    }

    fn written(&mut self, written: Written) {
        if let Some(buffered) = &mut self.buffered {
            buffered.settle(written, &mut self.file, &mut self.counts);
        }
    }

    /// An error after a failed write; the file is cut behind what is kept.
    fn check(&mut self) -> Result<(), SinkError> {
        let Some(buffered) = &mut self.buffered else { return Ok(()) };
        let Some(failed) = &buffered.failed else { return Ok(()) };
        if let Some(block) = buffered.current.take() {
            self.counts.unwritten += block.tally;
        }
        let error = io::Error::new(failed.error.kind(), failed.error.to_string());
        let error = failed.error.raw_os_error().map_or(error, io::Error::from_raw_os_error);
        // Others may still be under way behind it; `finish` waits for them and cuts again.
        if buffered.under_way.is_empty() {
            self.file.cut(failed.offset + failed.kept as u64);
        }
        Err(error.into())
    }
}

impl Buffered {
    /// Books a block whose write has ended.
    fn settle(&mut self, written: Written, file: &mut StreamFile, counts: &mut WriteCounts) {
        let Written { offset, block, result } = written;
        let tally = block.tally;
        match result {
            Ok(()) => {
                self.under_way.retain(|other| *other != offset);
                self.ahead.push((offset, tally));
                self.forget_settled(counts);
            }
            Err((some, error)) => {
                let bytes = Pieces([block.buffer.used(), &[]]);
                // Half a frame is worth nothing: of compressed blocks nothing is kept.
                let kept = match self.compressor {
                    Some(_) => 0,
                    None => bytes.whole_records(file.kept_room(some)),
                };
                let kept_tally = Tally::of(&block.buffer.used()[..kept]);
                counts.bytes -= (block.buffer.used().len() - kept) as u64;
                counts.unwritten += tally;
                self.fail(Failure { offset, kept, kept_tally, error }, counts);
            }
        }
        self.pool.give_back(block);
    }

    /// Books a failed write. Of the first one by its place something may be kept; what lies behind
    /// it is lost.
    fn fail(&mut self, failure: Failure, counts: &mut WriteCounts) {
        self.under_way.retain(|other| *other != failure.offset);
        match &mut self.failed {
            Some(first) if first.offset < failure.offset => {}
            first => {
                if let Some(later) = first.take() {
                    counts.unwritten += later.kept_tally;
                }
                counts.unwritten -= failure.kept_tally;
                *first = Some(failure);
            }
        }
        self.forget_settled(counts);
    }

    /// Blocks that were written are safe when nothing before them is under way or has failed.
    fn forget_settled(&mut self, counts: &mut WriteCounts) {
        let failed = self.failed.as_ref().map(|failed| failed.offset);
        let oldest = self.under_way.iter().min().copied();
        self.ahead.retain(|(offset, tally)| {
            if failed.is_some_and(|failed| failed < *offset) {
                counts.unwritten += *tally;
                return false;
            }
            oldest.is_some_and(|oldest| oldest < *offset)
        });
    }
}

impl Sink for StreamSink {
    fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let pieces = Pieces([bytes, &[]]);
        let limit = self.chunk_bytes();
        let mut start = 0;
        let mut tally = Tally::default();
        for seen in pieces.records_from(0) {
            let end = seen.at + seen.size;
            tally += Tally::of(&bytes[seen.at..end]);
            if end - start >= limit || end == bytes.len() {
                self.take([&bytes[start..end], &[]], std::mem::take(&mut tally))?;
                start = end;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::Arc;
    use whit_perfdata::encode::push_record;
    use whit_perfdata::record::record_type;

    const RECORD_BYTES: usize = 1000 / 8 * 8 + 8;

    /// Samples, each with its number.
    fn records(numbers: std::ops::Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            let mut body = number.to_le_bytes().to_vec();
            body.resize(RECORD_BYTES - 8, number as u8);
            push_record(&mut bytes, record_type::SAMPLE, 0, &body);
        }
        bytes
    }

    fn all_options() -> impl Iterator<Item = StreamOptions> {
        let levels = [None, Some(1)];
        levels.into_iter().flat_map(|compression_level| {
            [0, 1, 4].into_iter().map(move |async_blocks| StreamOptions {
                compression_level,
                whole_frames: async_blocks == 4,
                async_blocks,
                cpus: vec![0],
            })
        })
    }

    fn decoded(bytes: &[u8], options: &StreamOptions) -> Vec<u8> {
        if options.compression_level.is_none() {
            return bytes.to_vec();
        }
        let seen = Pieces([bytes, &[]]).records_from(0);
        let zstd: Vec<u8> = seen.flat_map(|r| bytes[r.at + 8..r.at + r.size].to_vec()).collect();
        let mut decoded = Vec::new();
        let mut decoder = zstd::stream::read::Decoder::new(&zstd[..]).unwrap();
        // The last frame may have no end.
        let _ = std::io::Read::read_to_end(&mut decoder, &mut decoded);
        decoded
    }

    #[test]
    fn every_way_of_writing_writes_the_same() {
        for options in all_options() {
            let file = Arc::new(tempfile::tempfile().unwrap());
            let stream = StreamFile::seekable(file.clone(), 0);
            let (mut sink, engine) = StreamSink::new(stream, &options).unwrap();
            assert_eq!(engine.is_some(), options.async_blocks > 0);
            let mut expected = Vec::new();
            for pass in 0..40u64 {
                let bytes = records(pass * 100..pass * 100 + 1 + pass % 90);
                let (front, back) = bytes.split_at(bytes.len() / 16 * 8);
                sink.take([front, back], Tally::of(&bytes)).unwrap();
                expected.extend(bytes);
                if pass % 3 == 0 {
                    sink.flush().unwrap();
                }
            }
            sink.finish().unwrap();
            let size = sink.file().size_bytes();
            assert_eq!(file.metadata().unwrap().len(), size, "{options:?}");
            let mut written = vec![0; size as usize];
            std::os::unix::fs::FileExt::read_exact_at(&*file, &mut written, 0).unwrap();
            assert!(decoded(&written, &options) == expected, "{options:?}");
            assert_eq!(sink.counts.unwritten, Tally::default());
            assert_eq!(sink.counts.bytes, size);
            let compressed = sink.counts.compressed_from_bytes;
            assert_eq!(compressed > 0, options.compression_level.is_some());
        }
    }

    #[test]
    fn what_a_full_disk_refuses_is_counted() {
        for options in all_options() {
            let full = Arc::new(File::options().write(true).open("/dev/full").unwrap());
            let (mut sink, _) = StreamSink::new(StreamFile::seekable(full, 0), &options).unwrap();
            let mut taken = Tally::default();
            let mut failed = false;
            for pass in 0..30u64 {
                let bytes = records(pass * 100..pass * 100 + 90);
                let tally = Tally::of(&bytes);
                taken += tally;
                let result = sink.take([&bytes, &[]], tally).and_then(|()| sink.flush());
                if let Err(SinkError(error)) = result {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{options:?}");
                    failed = true;
                    break;
                }
            }
            failed |= sink.finish().is_err();
            assert!(failed, "{options:?}");
            assert_eq!(sink.counts.unwritten, taken, "{options:?}");
            assert_eq!(sink.file().size_bytes(), 0, "{options:?}");
        }
    }

    #[test]
    fn pipes_are_written_in_order_and_their_end_is_an_error() {
        for options in all_options() {
            let (read, write) = std::io::pipe().unwrap();
            let write = Arc::new(File::from(std::os::fd::OwnedFd::from(write)));
            let (mut sink, _) = StreamSink::new(StreamFile::pipe(write), &options).unwrap();
            let reader = std::thread::spawn(move || {
                let mut all = Vec::new();
                std::io::Read::read_to_end(&mut { read }, &mut all).unwrap();
                all
            });
            for pass in 0..20u64 {
                let bytes = records(pass * 100..pass * 100 + 80);
                sink.take([&bytes, &[]], Tally::of(&bytes)).unwrap();
            }
            sink.finish().unwrap();
            drop(sink);
            let expected: Vec<u8> =
                (0..20).flat_map(|pass| records(pass * 100..pass * 100 + 80)).collect();
            assert!(decoded(&reader.join().unwrap(), &options) == expected, "{options:?}");
        }
    }
}
