//! Writing recordings: a file, or a pipe.
//!
//! A file is readable at any moment after [`FileWriter::create`]: until [`FileWriter::finish`]
//! the header says a data size of zero, which readers take as «up to the end of the file» and
//! report as a recorder that did not end properly.

use crate::attr::Attr;
use crate::encode;
use crate::feature::{EventDesc, Feature, Features};
use crate::header::{FILE_HEADER_SIZE_BYTES, FileHeader, MAGIC, PIPE_HEADER_SIZE_BYTES, Section};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};

/// Writes a perf.data file.
#[derive(Debug)]
pub struct FileWriter<W> {
    out: W,
    header: FileHeader,
}

impl<W: Write + Seek> FileWriter<W> {
    /// Writes header, ids and attributes; records follow.
    pub fn create(mut out: W, events: &[EventDesc]) -> io::Result<Self> {
        let attr_size = Attr::file_size_bytes(events.iter().map(|event| &event.attr));
        let entry_size = (attr_size + Section::SIZE_BYTES) as u64;
        let mut ids = Vec::new();
        let mut attrs = Vec::new();
        for event in events {
            let section = Section {
                offset: (FILE_HEADER_SIZE_BYTES + ids.len()) as u64,
                size_bytes: (event.ids.len() * 8) as u64,
            };
            ids.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
            attrs.extend(event.attr.to_bytes_sized(attr_size));
            attrs.extend(section.to_bytes());
        }
        let attrs_offset = (FILE_HEADER_SIZE_BYTES + ids.len()) as u64;
        let header = FileHeader {
            attr_entry_size_bytes: entry_size,
            attrs: Section { offset: attrs_offset, size_bytes: attrs.len() as u64 },
            data: Section { offset: attrs_offset + attrs.len() as u64, size_bytes: 0 },
            ..FileHeader::default()
        };
        let mut bytes = header.to_bytes();
        bytes.extend(ids);
        bytes.extend(attrs);
        out.write_all(&bytes)?;
        Ok(FileWriter { out, header })
    }

    /// Goes on with a file whose header and records, of so many bytes, are written; `out` stands behind them.
    pub(crate) fn resume(out: W, mut header: FileHeader, data_size_bytes: u64) -> Self {
        header.data.size_bytes = data_size_bytes;
        FileWriter { out, header }
    }

    /// Appends whole records.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.out.write_all(records)?;
        self.header.data.size_bytes += records.len() as u64;
        Ok(())
    }

    /// Appends whole records that lie in several places, with as few calls as the output takes.
    pub fn append_all(&mut self, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let size: usize = parts.iter().map(|part| part.len()).sum();
        write_parts(&mut self.out, parts)?;
        self.header.data.size_bytes += size as u64;
        Ok(())
    }

    /// Bytes of records so far.
    pub fn data_size_bytes(&self) -> u64 {
        self.header.data.size_bytes
    }

    /// Where records start.
    pub fn data_offset(&self) -> u64 {
        self.header.data.offset
    }

    /// For callers that have written the records themselves: how many bytes there are.
    pub fn set_data_size_bytes(&mut self, size_bytes: u64) {
        self.header.data.size_bytes = size_bytes;
    }

    /// After a failed write: closes the file so that the records before it stay readable, with as
    /// many features as still fit.
    pub fn salvage(mut self, features: &Features) -> io::Result<W> {
        if self.write_features(features).is_err() {
            self.header.features = [0; 4];
        }
        self.write_header()?;
        Ok(self.out)
    }

    /// Writes the features and completes the header. Gives back the output.
    pub fn finish(mut self, features: &Features) -> io::Result<W> {
        self.write_features(features)?;
        self.write_header()?;
        Ok(self.out)
    }

    fn write_features(&mut self, features: &Features) -> io::Result<()> {
        let count = features.iter().count();
        let table_offset = self.header.data.offset + self.header.data.size_bytes;
        let mut offset = table_offset + (count * Section::SIZE_BYTES) as u64;
        self.out.seek(SeekFrom::Start(table_offset))?;
        let mut table = Vec::with_capacity(count * Section::SIZE_BYTES);
        for (feature, bytes) in features.iter() {
            self.header.add_feature(feature);
            let size_bytes = bytes.len() as u64;
            table.extend(Section { offset, size_bytes }.to_bytes());
            offset += size_bytes;
        }
        let contents = features.iter().map(|(_, bytes)| IoSlice::new(bytes));
        let mut parts: Vec<_> = std::iter::once(IoSlice::new(&table)).chain(contents).collect();
        write_parts(&mut self.out, &mut parts)
    }

    fn write_header(&mut self) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&self.header.to_bytes())?;
        self.out.flush()
    }
}

/// Writes bytes that lie in several places.
fn write_parts(out: &mut impl Write, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty parts in front would be taken for an output that takes no more.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match out.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a recording into a pipe.
#[derive(Debug)]
pub struct PipeWriter<W> {
    out: W,
}

impl<W: Write> PipeWriter<W> {
    /// Writes the header, the events and the features that are known beforehand. Gives back the
    /// features that are too long for a record and were left out.
    pub fn create(
        mut out: W,
        events: &[EventDesc],
        features: &Features,
    ) -> io::Result<(Self, Vec<Feature>)> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((PIPE_HEADER_SIZE_BYTES as u64).to_le_bytes());
        for event in events {
            encode::header_attr(&mut bytes, &event.attr, &event.ids);
        }
        let mut left_out = Vec::new();
        for (feature, content) in features.iter() {
            match feature {
                Feature::TRACING_DATA => encode::tracing_data(&mut bytes, content),
                // Its content already is a row of BUILD_ID records.
                Feature::BUILD_ID => bytes.extend(content),
                _ if encode::header_feature(&mut bytes, feature.0, content) => {}
                _ => left_out.push(feature),
            }
        }
        out.write_all(&bytes)?;
        Ok((PipeWriter { out }, left_out))
    }

    /// Appends whole records.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.out.write_all(records)
    }

    /// Flushes and gives back the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes three bytes at most, and is interrupted now and then.
    struct Slow(Vec<u8>, u32);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1.is_multiple_of(4) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let taken = &bytes[..bytes.len().min(3)];
            self.0.extend_from_slice(taken);
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn parts_are_written_whole_by_an_output_that_takes_little_at_a_time() {
        let parts: [&[u8]; 6] = [b"", b"first", b"", b"", b"and the second", b""];
        let mut slices = parts.map(IoSlice::new);
        let mut out = Slow(Vec::new(), 0);
        write_parts(&mut out, &mut slices).unwrap();
        assert_eq!(out.0, b"firstand the second");
        let mut full = [0; 4];
        let refused = write_parts(&mut &mut full[..], &mut parts.map(IoSlice::new)).unwrap_err();
        assert_eq!((refused.kind(), &full), (io::ErrorKind::WriteZero, b"firs"));
        let mut none = [IoSlice::new(b"")];
        write_parts(&mut &mut full[..0], &mut none).unwrap();
    }
}
