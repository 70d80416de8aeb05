//! Where records go.

use std::io::{self, Seek, Write};
use std::time::Instant;

use whit_perfdata::encode;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::writer::{FileWriter, PipeWriter};

/// Takes records. Later sinks compress or write asynchronously; readers do not notice.
pub trait Sink {
    /// Takes whole records; the bytes are the sink's only until it returns.
    fn records(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Every ring has been drained once: what comes later is younger than what came before the
    /// previous round.
    fn round(&mut self) -> io::Result<()> {
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

/// Writes a file or a pipe.
#[derive(Debug)]
pub struct RecordingSink<W> {
    kind: Kind<W>,
    /// What it cost so far.
    pub counts: WriteCounts,
}

#[derive(Debug)]
enum Kind<W> {
    File(FileWriter<W>),
    Pipe(PipeWriter<W>),
}

impl<W: Write + Seek> RecordingSink<W> {
    /// A file, which can be sought in. Writes the header.
    pub fn file(out: W, events: &[EventDesc]) -> io::Result<Self> {
        let writer = FileWriter::create(out, events)?;
        Ok(RecordingSink { kind: Kind::File(writer), counts: WriteCounts::default() })
    }

    /// A pipe. All features have to be known beforehand; gives those that did not fit.
    pub fn pipe(
        out: W,
        events: &[EventDesc],
        features: &Features,
    ) -> io::Result<(Self, Vec<Feature>)> {
        let (writer, left_out) = PipeWriter::create(out, events, features)?;
        Ok((RecordingSink { kind: Kind::Pipe(writer), counts: WriteCounts::default() }, left_out))
    }

    /// Completes the recording; gives back the output. Pipes take no features at the end.
    pub fn finish(self, features: &Features) -> io::Result<W> {
        match self.kind {
            Kind::File(writer) => writer.finish(features),
            Kind::Pipe(writer) => writer.finish(),
        }
    }

    /// Closes the recording after a failed write, so that what was written before is readable.
    /// A pipe needs no closing: its reader takes whole records as they come.
    pub fn salvage(self, features: &Features) -> io::Result<Option<W>> {
        match self.kind {
            Kind::File(writer) => writer.salvage(features).map(Some),
            Kind::Pipe(_) => Ok(None),
        }
    }
}

impl<W: Write + Seek> Sink for RecordingSink<W> {
    fn records(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let result = match &mut self.kind {
            Kind::File(writer) => writer.append(bytes),
            Kind::Pipe(writer) => writer.append(bytes),
        };
        self.counts.write_ns += begin.elapsed().as_nanos() as u64;
        self.counts.writes += 1;
        if result.is_ok() {
            self.counts.bytes += bytes.len() as u64;
        }
        result
    }
}
