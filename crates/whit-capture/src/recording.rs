//! The files of a recording: the header, and the streams beside it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::writer::{FileWriter, PipeWriter};

use crate::output::{OUTPUT_MODE, OpenOutput};
use crate::stream::StreamFile;

/// perf's version of the directory format.
const DIRECTORY_VERSION: u64 = 1;
/// An entry of the table of features.
const FEATURE_ENTRY_BYTES: usize = 16;

/// An open recording, its header written as far as it is known.
#[derive(Debug)]
pub struct Recording {
    head: Head,
    /// Stream behind the header.
    main: StreamFile,
    directory: Option<PathBuf>,
    streams: Vec<Arc<File>>,
}

#[derive(Debug)]
enum Head {
    File(FileWriter<File>),
    Pipe,
}

impl Recording {
    /// Writes the header. `features` are those that are known already: their size is kept free
    /// for when the disk is full. Gives those that a pipe has no room for.
    pub fn create(
        output: OpenOutput,
        events: &[EventDesc],
        features: &mut Features,
    ) -> io::Result<(Recording, Vec<Feature>)> {
        let OpenOutput { file, is_pipe, directory, .. } = output;
        let same = Arc::new(file.try_clone()?);
        if is_pipe {
            let (_, left_out) = PipeWriter::create(file, events, features)?;
            let main = StreamFile::pipe(same);
            let head = Head::Pipe;
            return Ok((Recording { head, main, directory: None, streams: Vec::new() }, left_out));
        }
        if directory.is_some() {
            features.set_word(Feature::DIR_FORMAT, DIRECTORY_VERSION);
        }
        let writer = FileWriter::create(file, events)?;
        let size: usize = features.iter().map(|(_, b)| b.len() + FEATURE_ENTRY_BYTES).sum();
        let main = StreamFile::seekable(same, writer.data_offset(), size as u64);
        let head = Head::File(writer);
        Ok((Recording { head, main, directory, streams: Vec::new() }, Vec::new()))
    }

    /// Whether streams are files of their own.
    pub fn is_directory(&self) -> bool {
        self.directory.is_some()
    }

    /// Whether the header cannot be completed at the end.
    pub fn is_pipe(&self) -> bool {
        matches!(self.head, Head::Pipe)
    }

    /// The stream behind the header.
    pub fn main(&self) -> StreamFile {
        self.main.clone()
    }

    /// A stream for the next reader: in a directory a file of its own, else that behind the
    /// header.
    pub fn next_stream(&mut self) -> io::Result<StreamFile> {
        let Some(directory) = &self.directory else { return Ok(self.main()) };
        let path = directory.join(format!("data.{}", self.streams.len()));
        let mut options = File::options();
        options.write(true).create_new(true).mode(OUTPUT_MODE);
        let file = Arc::new(options.open(path)?);
        self.streams.push(file.clone());
        Ok(StreamFile::seekable(file, 0, 0))
    }

    /// Completes the header, now that there are `size_bytes` of records behind it. After a failed
    /// write (`salvaged`) with as many features as find room. Gives the size of the whole
    /// recording; that of a pipe is not known.
    pub fn finish(
        self,
        size_bytes: u64,
        features: &Features,
        salvaged: bool,
    ) -> io::Result<Option<u64>> {
        let Head::File(mut writer) = self.head else { return Ok(None) };
        writer.set_data_size_bytes(size_bytes);
        let file = if salvaged { writer.salvage(features)? } else { writer.finish(features)? };
        let size = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Some(size(&file) + self.streams.iter().map(|file| size(file)).sum::<u64>()))
    }
}
