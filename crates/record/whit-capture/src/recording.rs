//! The files of a recording: the header, and the streams beside it.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, Mode, OFlags};
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::writer::{FileWriter, PipeWriter};

use crate::output::{OUTPUT_MODE, OpenOutput};
use crate::stream::StreamFile;

/// An entry of the table of features.
const FEATURE_ENTRY_BYTES: usize = 16;

/// Growth of the header at the end, besides the features that are known beforehand.
const LATE_FEATURES_BYTES: u64 = 64 * 1024;

/// Space on the recording's disk for the features at the end. Without them, a recording that filled
/// the disk would have no losses and, if compressed, could not be read by perf.
#[derive(Debug)]
struct ReservedSpace {
    /// A file without a name; closing it frees the space.
    _file: File,
}

impl ReservedSpace {
    /// `None` where the file system knows no files without a name, or is full already.
    fn take_on(directory: &Path, features_bytes: u64) -> Option<ReservedSpace> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).ok()?;
        let size = features_bytes + LATE_FEATURES_BYTES;
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, size).ok()?;
        Some(ReservedSpace { _file: File::from(fd) })
    }
}

/// An open recording, its header written as far as it is known.
#[derive(Debug)]
pub struct Recording {
    head: Head,
    /// Stream behind the header.
    main: StreamFile,
    directory: Option<PathBuf>,
    streams: Vec<Arc<File>>,
    /// Given up before the header is completed.
    reserved_space: Option<ReservedSpace>,
}

#[derive(Debug)]
enum Head {
    File(FileWriter<File>),
    Pipe,
}

impl Recording {
    /// Writes the header. `features` are those that are known already. Gives those that a pipe has
    /// no room for.
    pub fn create(
        output: OpenOutput,
        events: &[EventDesc],
        features: &mut Features,
    ) -> io::Result<(Recording, Vec<Feature>)> {
        let OpenOutput { file, is_pipe, directory, name } = output;
        let home = name.home();
        let same = Arc::new(file.try_clone()?);
        if is_pipe {
            let (_, left_out) = PipeWriter::create(file, events, features)?;
            let main = StreamFile::pipe(same);
            let head = Head::Pipe;
            let streams = Vec::new();
            let recording =
                Recording { head, main, directory: None, streams, reserved_space: None };
            return Ok((recording, left_out));
        }
        if directory.is_some() {
            features.set_word(Feature::DIR_FORMAT, Feature::DIR_FORMAT_VERSION);
        }
        let writer = FileWriter::create(file, events)?;
        let size: usize = features.iter().map(|(_, b)| b.len() + FEATURE_ENTRY_BYTES).sum();
        let reserved_space = home.and_then(|home| ReservedSpace::take_on(&home, size as u64));
        let main = StreamFile::seekable(same, writer.data_offset());
        let head = Head::File(writer);
        let recording = Recording { head, main, directory, streams: Vec::new(), reserved_space };
        Ok((recording, Vec::new()))
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
        Ok(StreamFile::seekable(file, 0))
    }

    /// Completes the header, now that there are `size_bytes` of records behind it. After a failed
    /// write (`salvaged`) with as many features as still fit. Gives the size of the whole
    /// recording; that of a pipe is not known.
    pub fn finish(
        self,
        size_bytes: u64,
        features: &Features,
        salvaged: bool,
    ) -> io::Result<Option<u64>> {
        let Head::File(mut writer) = self.head else { return Ok(None) };
        drop(self.reserved_space);
        writer.set_data_size_bytes(size_bytes);
        let file = if salvaged { writer.salvage(features)? } else { writer.finish(features)? };
        let size = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Some(size(&file) + self.streams.iter().map(|file| size(file)).sum::<u64>()))
    }
}
