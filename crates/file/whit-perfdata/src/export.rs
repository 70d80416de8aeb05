//! Writing a recording again so that any reader of perf.data takes it: nothing is packed, nothing
//! compressed.

use std::io::{self, Seek, Write};

use crate::feature::{EventDesc, Feature, Features};
use crate::reader::{Form, Recording};
use crate::record::{RawRecord, record_type};
use crate::stream::{Stream, StreamError, StreamReader};
use crate::writer::FileWriter;

/// Why a recording could not be written again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// It has something that would be lost.
    #[error("the recording has AUX area data, which cannot be written again")]
    Aux,
    /// It cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
}

/// Counts of an exported stream.
#[derive(Debug, Default)]
pub struct Exported {
    /// Written records, unpacked.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Where the stream could not be read on.
    pub broken: Option<StreamError>,
}

/// Writes the header of a recording and its first stream into a file. `progress` hears of bytes that were
/// read.
pub fn write_first<W: Write + Seek>(
    recording: &Recording,
    out: W,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut file = FileWriter::create(out, &recording.events)?;
    let mut exported = Exported::default();
    if let Some(stream) = recording.streams.first() {
        let put = |block: &[u8]| match recording.form {
            Form::Pipe => file.append(&without_description(block)),
            Form::File | Form::Directory => file.append(block),
        };
        exported = copy(stream, put, progress)?;
    }
    file.finish(&features(recording, &recording.events))?;
    Ok(exported)
}

/// Writes another stream of a directory.
pub fn write_part(
    stream: &Stream,
    mut out: impl Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let exported = copy(stream, |block| out.write_all(block), progress)?;
    out.flush()?;
    Ok(exported)
}

fn copy(
    stream: &Stream,
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut exported = Exported::default();
    let mut reader = StreamReader::new(stream.clone());
    let (mut block, mut read) = (Vec::new(), 0);
    loop {
        match reader.next_block(&mut block) {
            Ok(Some(_)) => put(&block)?,
            Ok(None) => break,
            Err(error) => {
                exported.broken = Some(error);
                break;
            }
        }
        exported.records += records(&block).count() as u64;
        exported.bytes += block.len() as u64;
        progress(reader.consumed_bytes() - read);
        read = reader.consumed_bytes();
    }
    if reader.record_counts().auxtrace > 0 {
        return Err(ExportError::Aux);
    }
    Ok(exported)
}

/// The features that hold for the recording when it is written with these events, neither packed nor compressed.
pub fn features(recording: &Recording, events: &[EventDesc]) -> Features {
    let mut features = Features::default();
    for (feature, bytes) in recording.features.iter() {
        if feature != Feature::COMPRESSED {
            features.set(feature, bytes.to_vec());
        }
    }
    features.set_event_desc(events);
    // A killed recorder has written no features, and perf takes a directory without this one for its first file.
    if recording.form == Form::Directory {
        features.set_word(Feature::DIR_FORMAT, Feature::DIR_FORMAT_VERSION);
    }
    features
}

/// A pipe's records without those that describe it, which the header of a file does.
pub fn without_description(block: &[u8]) -> Vec<u8> {
    use record_type::{EVENT_UPDATE, FEATURE, HEADER_ATTR, HEADER_EVENT_TYPE};
    let describes = [EVENT_UPDATE, FEATURE, HEADER_ATTR, HEADER_EVENT_TYPE];
    let kept = records(block).filter(|record| !describes.contains(&record.header.kind));
    kept.fold(Vec::with_capacity(block.len()), |mut out, record| {
        out.extend_from_slice(&record.header.to_bytes());
        out.extend_from_slice(record.body);
        out
    })
}

/// The features of a recording of any form that becomes one file, and gets names later.
pub fn features_of_file(recording: &Recording, events: &[EventDesc]) -> Features {
    let mut features = Features::default();
    for (feature, bytes) in self::features(recording, events).iter() {
        if feature != Feature::DIR_FORMAT {
            features.set(feature, bytes.to_vec());
        }
    }
    features.set(Feature::WHIT_NAMES, Vec::new());
    features
}

/// The records of one of several streams that become one. perf would take the end of a round in one stream for that
/// of a round in all.
pub fn without_rounds(block: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(block.len());
    let kept = records(block).filter(|record| record.header.kind != record_type::FINISHED_ROUND);
    for record in kept {
        out.extend_from_slice(&record.header.to_bytes());
        out.extend_from_slice(record.body);
    }
    out
}

fn records(block: &[u8]) -> impl Iterator<Item = RawRecord<'_>> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let (record, tail) = RawRecord::split(rest)?;
        rest = tail;
        Some(record)
    })
}
