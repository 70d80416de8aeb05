//! Takes records and sees to it that they are written, or counted as not written.

use std::io;

use whit_perfdata::encode;
use whit_types::CpuId;

use super::blocks::BlockPool;
use super::buffered::Buffered;
use super::compress::{self, Compressor};
use super::engine::{AsyncEngine, Engine};
use super::file::StreamFile;
use super::out::{Out, SinkError, WriteCounts};
use crate::loss::ScannedRecords;

/// Records are copied or compressed in pieces of about this size. After each piece the ring gets its
/// space back.
const CHUNK_BYTES: usize = compress::CHUNK_BYTES_MAX;
/// Most that one system call writes straight out of a ring.
const DIRECT_BYTES: usize = 4 << 20;
/// Size of a block: more than the largest record, and more than a compressed chunk of records that
/// do not shrink.
const BLOCK_BYTES: usize = 512 << 10;
/// Memory for the blocks of one stream.
const BLOCKS_TOTAL_BYTES: usize = 64 << 20;

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
    /// Some records stand for many.
    pub is_packed: bool,
    /// End the frame with each piece: other readers write into the same pipe, and nobody's frame can
    /// go on behind another's.
    pub whole_frames: bool,
    /// Blocks that may be written while others are filled; 0 writes at once.
    pub async_blocks: usize,
    /// CPUs for a writer thread, where one is needed.
    pub cpus: Vec<CpuId>,
}

/// A stream of the recording.
#[derive(Debug)]
pub struct StreamSink {
    out: Out,
    /// `None` writes straight from where the records are.
    buffered: Option<Buffered>,
}

impl StreamSink {
    /// A stream into `file`. Says how asynchronous writes are done, if there are any.
    pub fn new(
        file: StreamFile,
        options: &StreamOptions,
    ) -> io::Result<(StreamSink, Option<AsyncEngine>)> {
        let out = Out { file, counts: WriteCounts::default() };
        if options.compression_level.is_none() && options.async_blocks == 0 {
            return Ok((StreamSink { out, buffered: None }, None));
        }
        let frame_bytes = match options.is_packed {
            true => compress::PACKED_FRAME_BYTES,
            false => compress::FRAME_BYTES,
        };
        let compressor = options.compression_level.map(|level| Compressor::new(level, frame_bytes));
        let compressor = compressor.transpose()?;
        let depth = options.async_blocks.min(BLOCKS_TOTAL_BYTES / BLOCK_BYTES);
        let (engine, kind) = match depth {
            0 => (Engine::Direct(None), None),
            depth => {
                let (engine, kind) = Engine::asynchronous(depth, &out.file, &options.cpus)?;
                (engine, Some(kind))
            }
        };
        let pool = BlockPool::new(BLOCK_BYTES, depth + 1);
        let buffered = Buffered::new(compressor, options.whole_frames, engine, pool);
        Ok((StreamSink { out, buffered: Some(buffered) }, kind))
    }

    /// Bytes to hand over at once. The ring may reuse their space when [`StreamSink::take`] has returned.
    pub fn chunk_bytes(&self) -> usize {
        if self.buffered.is_some() { CHUNK_BYTES } else { DIRECT_BYTES }
    }

    /// Takes whole records: no more than [`StreamSink::chunk_bytes`], but for the last record.
    pub fn take(&mut self, records: ScannedRecords<'_>) -> Result<(), SinkError> {
        match &mut self.buffered {
            Some(buffered) => buffered.take(records, &mut self.out),
            None => self.out.write_through(records),
        }
    }

    /// Ends a round over all rings. Later records are younger than all records that came before the
    /// previous round. The mark is none of the kernel's records: it is not counted, nor can it be lost.
    pub fn round(&mut self) -> Result<(), SinkError> {
        self.take(ScannedRecords::mark(&encode::finished_round()))
    }

    /// The same for a round that was asked for by this number.
    pub fn round_of(&mut self, number: u64) -> Result<(), SinkError> {
        self.take(ScannedRecords::mark(&encode::finished_round_of(number)))
    }

    /// Starts to write the buffered records, without waiting for the disk.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        self.buffered.as_mut().map_or(Ok(()), |buffered| buffered.submit(&mut self.out))
    }

    /// Waits until everything is written. Afterwards [`StreamFile::size_bytes`] holds; after an
    /// error the file ends behind the last record that was kept.
    pub fn finish(&mut self) -> Result<(), SinkError> {
        self.buffered.as_mut().map_or(Ok(()), |buffered| buffered.finish(&mut self.out))
    }

    /// The file, and where the stream ends.
    pub fn file(&self) -> &StreamFile {
        &self.out.file
    }

    /// The cost of writing so far.
    pub fn counts(&self) -> &WriteCounts {
        &self.out.counts
    }
}

impl Sink for StreamSink {
    fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        ScannedRecords::pieces(bytes, self.chunk_bytes()).try_for_each(|piece| self.take(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Tally;
    use std::fs::File;
    use std::sync::Arc;
    use whit_engine_api::ring_slices::RingSlices;
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
                is_packed: false,
                whole_frames: async_blocks == 4,
                async_blocks,
                cpus: vec![CpuId(0)],
            })
        })
    }

    fn decoded(bytes: &[u8], options: &StreamOptions) -> Vec<u8> {
        if options.compression_level.is_none() {
            return bytes.to_vec();
        }
        let seen = RingSlices([bytes, &[]]).records_from(0);
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
                sink.take(ScannedRecords::of([front, back])).unwrap();
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
            assert_eq!(sink.counts().unwritten, Tally::default());
            assert_eq!(sink.counts().bytes, size);
            let compressed = sink.counts().compressed_from_bytes;
            assert_eq!(compressed > 0, options.compression_level.is_some());
        }
    }

    #[test]
    fn bytes_that_a_full_disk_refuses_are_counted() {
        for options in all_options() {
            let full = Arc::new(File::options().write(true).open("/dev/full").unwrap());
            let (mut sink, _) = StreamSink::new(StreamFile::seekable(full, 0), &options).unwrap();
            let mut taken = Tally::default();
            let mut failed = false;
            for pass in 0..30u64 {
                let bytes = records(pass * 100..pass * 100 + 90);
                let scanned = ScannedRecords::of([&bytes, &[]]);
                taken += scanned.tally();
                let result = sink.take(scanned).and_then(|()| sink.flush());
                if let Err(SinkError(error)) = result {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{options:?}");
                    failed = true;
                    break;
                }
            }
            failed |= sink.finish().is_err();
            assert!(failed, "{options:?}");
            assert_eq!(sink.counts().unwritten, taken, "{options:?}");
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
                sink.take(ScannedRecords::of([&bytes, &[]])).unwrap();
            }
            sink.finish().unwrap();
            drop(sink);
            let expected: Vec<u8> =
                (0..20).flat_map(|pass| records(pass * 100..pass * 100 + 80)).collect();
            assert!(decoded(&reader.join().unwrap(), &options) == expected, "{options:?}");
        }
    }
}
