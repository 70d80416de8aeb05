//! More records behind those of a finished file.
//!
//! Records and features stand one behind the other, so that the features are written anew. Meanwhile the
//! header says that the recorder has not ended, as it does while a recording is made. So the records can be read
//! even if the writer is stopped.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::feature::Features;
use crate::header::{FILE_HEADER_SIZE_BYTES, FileHeader};
use crate::writer::FileWriter;

/// Opens a finished file, has `write` append whole records, and finishes it with `features`, those that it
/// had.
///
/// # Errors
/// The file is none that was finished, or cannot be written.
pub fn append(
    path: &Path,
    features: &Features,
    write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let mut head = [0; FILE_HEADER_SIZE_BYTES];
    file.read_exact(&mut head)?;
    let header = FileHeader::parse(&head).filter(|header| header.data.size_bytes > 0);
    let not_finished = || io::Error::new(io::ErrorKind::InvalidData, "the file was not finished");
    let header = header.ok_or_else(not_finished)?;
    let end = header.data.end().ok_or_else(not_finished)?;
    let mut unfinished = header.clone();
    unfinished.data.size_bytes = 0;
    unfinished.features = [0; 4];
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&unfinished.to_bytes())?;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let size_bytes = header.data.size_bytes;
    let mut writer = FileWriter::resume(BufWriter::new(file), unfinished, size_bytes);
    let written = write(&mut |records| writer.append(records));
    // An error leaves the records before it in the file.
    writer.finish(features)?.into_inner()?.flush()?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{Attr, SampleType};
    use crate::encode::push_record;
    use crate::feature::{EventDesc, Feature};
    use crate::reader::Recording;
    use crate::record::record_type;
    use crate::stream::StreamReader;

    fn record(word: u64) -> Vec<u8> {
        let mut out = Vec::new();
        push_record(&mut out, record_type::SAMPLE, 0, &word.to_le_bytes());
        out
    }

    fn records(recording: &Recording) -> Vec<u8> {
        let (mut all, mut block) = (Vec::new(), Vec::new());
        let mut reader = StreamReader::new(recording.streams[0].clone());
        while reader.next_block(&mut block).unwrap().is_some() {
            all.extend_from_slice(&block);
        }
        all
    }

    fn finished(path: &Path) -> Features {
        let attr = Attr { sample_type: SampleType::IP, ..Attr::default() };
        let events = vec![EventDesc { attr, ids: vec![7], name: "event".into() }];
        let mut writer = FileWriter::create(File::create(path).unwrap(), &events).unwrap();
        writer.append(&record(1)).unwrap();
        let mut features = Features::default();
        features.set_event_desc(&events);
        features.set(Feature::HOSTNAME, vec![9; 100]);
        writer.finish(&features).unwrap();
        features
    }

    #[test]
    fn records_and_features_are_those_of_before_and_the_new_ones() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("perf.data");
        let features = finished(&path);
        append(&path, &features, |put| (2..5).try_for_each(|word| put(&record(word)))).unwrap();
        let recording = Recording::open(&path).unwrap();
        assert!(!recording.is_cut);
        assert_eq!(records(&recording), (1..5).flat_map(record).collect::<Vec<_>>());
        assert_eq!(recording.features.get(Feature::HOSTNAME), Some(&[9; 100][..]));
        assert_eq!(recording.events[0].name, "event");
    }

    #[test]
    fn an_error_on_the_way_leaves_a_whole_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("perf.data");
        let features = finished(&path);
        let result = append(&path, &features, |put| {
            put(&record(2))?;
            Err(io::Error::other("no"))
        });
        assert_eq!(result.unwrap_err().to_string(), "no");
        let recording = Recording::open(&path).unwrap();
        assert!(!recording.is_cut);
        assert_eq!(records(&recording), [record(1), record(2)].concat());
    }

    #[test]
    fn a_file_that_was_not_finished_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("perf.data");
        let mut writer = FileWriter::create(File::create(&path).unwrap(), &[]).unwrap();
        writer.append(&record(1)).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(append(&path, &Features::default(), |_| Ok(())).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
