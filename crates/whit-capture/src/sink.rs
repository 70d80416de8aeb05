//! Where records go.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::time::Instant;

use whit_perfdata::encode;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::record::RawRecord;
use whit_perfdata::writer::{FileWriter, PipeWriter};

/// A write that failed.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct SinkError {
    /// Bytes of the records, from the first one on, that are kept all the same: whole records.
    pub kept: usize,
    /// What the system said.
    pub source: io::Error,
}

/// Takes records. Later sinks compress or write asynchronously; readers do not notice.
pub trait Sink {
    /// Takes whole records; the bytes are the sink's only until it returns.
    fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError>;

    /// Every ring has been drained once: what comes later is younger than what came before the
    /// previous round.
    fn round(&mut self) -> Result<(), SinkError> {
        self.records(&encode::finished_round())
    }
}

/// What writing cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    /// Writes.
    pub writes: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// Time spent in writes.
    pub write_ns: u64,
}

/// What a failed write leaves free for the header's features, besides their own size: room for
/// the last block, and for what they grow by at the end.
const SALVAGE_RESERVE_BYTES: u64 = 8 * 1024;

/// Writes a file or a pipe.
#[derive(Debug)]
pub struct RecordingSink {
    kind: Kind,
    /// What it cost so far.
    pub counts: WriteCounts,
}

#[derive(Debug)]
enum Kind {
    File {
        writer: FileWriter<File>,
        /// The same open file, with the same position, to clean up after a failed write.
        same: File,
        /// Where the records start.
        data_offset: u64,
        /// What is left free when a write fails.
        reserve_bytes: u64,
    },
    Pipe(PipeWriter<File>),
}

impl RecordingSink {
    /// A file, which can be sought in. Writes the header. `features` are those that are known
    /// already: their size is kept free when the disk is full.
    pub fn file(out: File, events: &[EventDesc], features: &Features) -> io::Result<Self> {
        let mut same = out.try_clone()?;
        let writer = FileWriter::create(out, events)?;
        let data_offset = same.stream_position()?;
        let size: usize = features.iter().map(|(_, bytes)| bytes.len() + 16).sum();
        let reserve_bytes = size as u64 + SALVAGE_RESERVE_BYTES;
        let kind = Kind::File { writer, same, data_offset, reserve_bytes };
        Ok(RecordingSink { kind, counts: WriteCounts::default() })
    }

    /// A pipe. All features have to be known beforehand; gives those that did not fit.
    pub fn pipe(
        out: File,
        events: &[EventDesc],
        features: &Features,
    ) -> io::Result<(Self, Vec<Feature>)> {
        let (writer, left_out) = PipeWriter::create(out, events, features)?;
        Ok((RecordingSink { kind: Kind::Pipe(writer), counts: WriteCounts::default() }, left_out))
    }

    /// Completes the recording; gives back the output. Pipes take no features at the end.
    pub fn finish(self, features: &Features) -> io::Result<File> {
        match self.kind {
            Kind::File { writer, .. } => writer.finish(features),
            Kind::Pipe(writer) => writer.finish(),
        }
    }

    /// Closes the recording after a failed write, so that what was written before is readable.
    /// A pipe needs no closing: its reader takes whole records as they come.
    pub fn salvage(self, features: &Features) -> io::Result<Option<File>> {
        match self.kind {
            Kind::File { writer, .. } => writer.salvage(features).map(Some),
            Kind::Pipe(_) => Ok(None),
        }
    }

    /// After a failed write of `bytes`: the disk took some of them. Cuts the file back to what
    /// was there before and appends as many whole records as leave room for the features. Gives
    /// their size.
    fn keep_whole_records(&mut self, bytes: &[u8]) -> usize {
        let Kind::File { writer, same, data_offset, reserve_bytes } = &mut self.kind else {
            return 0;
        };
        let end = *data_offset + writer.data_size_bytes();
        let Ok(reached) = same.stream_position() else { return 0 };
        let cut = same.set_len(end).and_then(|()| same.seek(SeekFrom::Start(end)));
        if cut.is_err() {
            return 0;
        }
        let room = reached.saturating_sub(end).saturating_sub(*reserve_bytes);
        let kept = whole_records(bytes, room);
        if kept > 0 && writer.append(&bytes[..kept]).is_err() {
            return 0;
        }
        kept
    }
}

/// Size of the records that fit into `room` bytes.
fn whole_records(bytes: &[u8], room: u64) -> usize {
    let mut end = 0;
    while let Some((record, _)) = RawRecord::split(&bytes[end..]) {
        let next = end + usize::from(record.header.size_bytes);
        if next as u64 > room {
            break;
        }
        end = next;
    }
    end
}

impl Sink for RecordingSink {
    fn records(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let result = match &mut self.kind {
            Kind::File { writer, .. } => writer.append(bytes),
            Kind::Pipe(writer) => writer.append(bytes),
        };
        self.counts.write_ns += begin.elapsed().as_nanos() as u64;
        self.counts.writes += 1;
        match result {
            Ok(()) => {
                self.counts.bytes += bytes.len() as u64;
                Ok(())
            }
            Err(source) => {
                let kept = self.keep_whole_records(bytes);
                self.counts.bytes += kept as u64;
                Err(SinkError { kept, source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::encode::push_record;

    #[test]
    fn only_whole_records_are_kept() {
        let mut bytes = Vec::new();
        (0..4).for_each(|_| push_record(&mut bytes, 9, 0, &[0; 24]));
        for (room, kept) in [(0, 0), (31, 0), (32, 32), (100, 96), (1000, 128)] {
            assert_eq!(whole_records(&bytes, room), kept, "{room}");
        }
        assert_eq!(whole_records(&[0; 64], 64), 0, "records of size 0 are none");
    }
}
