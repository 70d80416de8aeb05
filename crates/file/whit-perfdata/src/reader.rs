//! Opening recordings: a file, a directory of streams, or a pipe.

mod defect;
mod pipe;

pub use defect::RecordingDefect;
pub use pipe::{event_of_attr_record, pipe_head};

use crate::attr::{Attr, pmu_type};
use crate::bytes::Cursor;
use crate::feature::{EventDesc, Feature, Features};
use crate::header::{
    FILE_HEADER_SIZE_BYTES, FileHeader, MAGIC, MAGIC_SWAPPED, MAGIC_V1, PIPE_HEADER_SIZE_BYTES,
    Section,
};
use crate::packed::{self, Unpacker};
use crate::stream::Stream;
use crate::tracing_data::{TraceEvent, TracingData};
use std::cell::LazyCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of features that are read, all together.
const MAX_FEATURES_SIZE_BYTES: u64 = 128 << 20;
/// Most events that a recording may have.
const MAX_EVENTS: u64 = 1 << 16;
/// Most bytes of event ids that all events together may have.
const MAX_IDS_SIZE_BYTES: u64 = 64 << 20;

/// Why a recording could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The operating system refused.
    #[error("cannot open {path}: {source}")]
    Io {
        /// File.
        path: PathBuf,
        /// The error of the system call.
        source: std::io::Error,
    },
    /// Not a recording.
    #[error("{path} is not a perf.data recording: {found}")]
    NotARecording {
        /// File.
        path: PathBuf,
        /// Its first bytes, or its size.
        found: String,
    },
    /// The header says something impossible.
    #[error("{path} is corrupt: {what}")]
    Corrupt {
        /// File.
        path: PathBuf,
        /// The defect, in words.
        what: String,
    },
    /// Fine, but of a kind that whit does not read.
    #[error("{path} cannot be read: {what}")]
    Unsupported {
        /// File.
        path: PathBuf,
        /// The reason: the kind of the object, or the age of the format.
        what: String,
    },
}

/// How the recording is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// One perf.data file.
    File,
    /// The output of `perf record -o -`.
    Pipe,
    /// A directory with `data` and `data.N`.
    Directory,
}

/// An open recording: its events and features are read, its streams are not.
#[derive(Clone, Debug)]
pub struct Recording {
    /// As it was opened.
    pub path: PathBuf,
    /// File, directory or pipe.
    pub form: Form,
    /// Events, named.
    pub events: Vec<EventDesc>,
    /// The event of [`packed`] samples, where there are such. Streams unpack them.
    pub packed: Option<EventDesc>,
    /// Features; of a pipe, those that stand before its first sample.
    pub features: Features,
    /// Streams: one for files and pipes, `data` and each `data.N` for directories.
    pub streams: Vec<Stream>,
    /// Size of all files together.
    pub size_bytes: u64,
    /// The end is missing: the recorder was killed, or a part is gone. The streams may hold whole records
    /// all the same. For a pipe, this cannot be known.
    pub is_cut: bool,
    /// Defects that left the rest to be read.
    pub warnings: Vec<RecordingDefect>,
}

impl Recording {
    /// Opens a file or a directory.
    pub fn open(path: &Path) -> Result<Recording, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let metadata = std::fs::metadata(path).map_err(io)?;
        if metadata.is_dir() {
            return open_directory(path);
        }
        if !metadata.is_file() {
            return Err(OpenError::Unsupported {
                path: path.to_owned(),
                what: "it is neither a file nor a directory; pipe it into standard input and \
                       give `-i -`"
                    .into(),
            });
        }
        Self::from_file(path, File::open(path).map_err(io)?)
    }

    /// From an open, seekable file; `path` is only for messages.
    pub fn from_file(path: &Path, file: File) -> Result<Recording, OpenError> {
        let io = |source| OpenError::Io { path: path.to_owned(), source };
        let size_bytes = file.metadata().map_err(io)?.len();
        let mut head = [0; FILE_HEADER_SIZE_BYTES];
        let head_len = read_up_to(&file, &mut head).map_err(io)?;
        let head = &head[..head_len];
        check_magic(path, head)?;
        let header_size = Cursor::new(head.get(MAGIC.len()..).unwrap_or_default()).u64();
        let opener = Opener { path, file: Arc::new(file), size_bytes };
        let mut recording = match header_size {
            Some(size) if size == PIPE_HEADER_SIZE_BYTES as u64 => opener.open_pipe()?,
            Some(size) if size >= FILE_HEADER_SIZE_BYTES as u64 => opener.open_file(head)?,
            Some(size) => {
                return Err(opener.corrupt(format!("its header says a size of {size} bytes")));
            }
            None => return Err(opener.corrupt("its header is cut short")),
        };
        recording.name_events();
        recording.set_packed_apart();
        Ok(recording)
    }

    /// Nobody sees packed samples: their event is none of the others.
    fn set_packed_apart(&mut self) {
        let Some(index) = self.events.iter().position(packed::is_packed) else { return };
        let event = self.events.remove(index);
        for stream in &mut self.streams {
            stream.unpacker = Unpacker::new(&event).map(Arc::new);
        }
        self.packed = Some(event);
    }

    /// Gives every event the name that the recording has for it, else that of its tracepoint, else
    /// one made from its attributes.
    fn name_events(&mut self) {
        let named = self.features.event_desc().unwrap_or_default();
        let first_ids = named.iter().enumerate().filter_map(|(at, n)| Some((*n.ids.first()?, at)));
        let by_first_id: HashMap<u64, usize> = first_ids.collect();
        let tracepoints = LazyCell::new(|| {
            let section = self.features.get(Feature::TRACING_DATA).unwrap_or_default();
            TracingData::parse(section).unwrap_or_default()
        });
        for (index, event) in self.events.iter_mut().enumerate() {
            let by_id = event.ids.first().and_then(|id| named.get(*by_first_id.get(id)?));
            let found = by_id
                .filter(|n| n.ids == event.ids)
                .or_else(|| named.get(index).filter(|n| n.attr.config == event.attr.config));
            if let Some(found) = found.filter(|found| !found.name.is_empty()) {
                event.name.clone_from(&found.name);
            }
            if event.name.is_empty() {
                event.name = self.features.simpleperf_event_name(&event.attr).unwrap_or_default();
            }
            if event.name.is_empty() && event.attr.pmu_type == pmu_type::TRACEPOINT {
                let tracepoint = tracepoints.event(event.attr.config);
                event.name = tracepoint.map_or_else(String::new, TraceEvent::full_name);
            }
            if event.name.is_empty() {
                event.name = crate::attr::fallback_event_name(&event.attr);
            }
        }
    }
}

fn read_up_to(file: &File, out: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    while len < out.len() {
        match file.read_at(&mut out[len..], len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

fn check_magic(path: &Path, head: &[u8]) -> Result<(), OpenError> {
    let path = path.to_owned();
    let Some(magic) = head.first_chunk::<8>() else {
        let found = if head.is_empty() { "it is empty" } else { "it is shorter than a header" };
        return Err(OpenError::NotARecording { path, found: found.into() });
    };
    match magic {
        MAGIC => Ok(()),
        MAGIC_SWAPPED => Err(OpenError::Unsupported {
            path,
            what: "it was recorded on a big-endian machine".into(),
        }),
        MAGIC_V1 => Err(OpenError::Unsupported {
            path,
            what: "it was recorded by a perf older than Linux 2.6.33".into(),
        }),
        other => Err(OpenError::NotARecording {
            path,
            found: format!("it starts with {:?}", String::from_utf8_lossy(other)),
        }),
    }
}

fn open_directory(path: &Path) -> Result<Recording, OpenError> {
    let data = path.join("data");
    let (file, _) = open_regular(&data)?;
    let mut recording = Recording::from_file(&data, file)?;
    recording.path = path.to_owned();
    recording.form = Form::Directory;
    let parts = numbered_parts(path)?;
    let missing = missing_parts(path, &parts);
    recording.is_cut |= missing.is_some();
    recording.warnings.extend(missing);
    for (_, part) in parts {
        match open_regular(&part) {
            Ok((file, end)) => {
                recording.size_bytes += end;
                recording.streams.push(Stream {
                    file: Arc::new(file),
                    path: part.into(),
                    start: 0,
                    end,
                    unpacker: recording.packed.as_ref().and_then(Unpacker::new).map(Arc::new),
                    dumps: None,
                });
            }
            // The other parts are still worth reporting.
            Err(error) => {
                recording.is_cut = true;
                recording.warnings.push(error.into());
            }
        }
    }
    Ok(recording)
}

/// Opens a regular file, and says its size. Anything else might block or never end.
fn open_regular(path: &Path) -> Result<(File, u64), OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        let what = "it is not a regular file".into();
        return Err(OpenError::Unsupported { path: path.to_owned(), what });
    }
    Ok((File::open(path).map_err(io)?, metadata.len()))
}

/// perf numbers the parts without gaps.
fn missing_parts(path: &Path, parts: &[(u64, PathBuf)]) -> Option<RecordingDefect> {
    let path = path.to_owned();
    let Some((last, _)) = parts.last() else { return Some(RecordingDefect::NoParts { path }) };
    let (count, expected) = (parts.len() as u64, last.saturating_add(1));
    let gap = (0..).zip(parts).find(|(index, (number, _))| index != number);
    gap.map(|(first, _): (u64, _)| {
        let missing = expected.saturating_sub(count);
        RecordingDefect::MissingParts { path, first, missing }
    })
}

/// The files `data.N` of a directory, by number.
fn numbered_parts(path: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix("data.")).map(str::parse::<u64>);
        if let Some(Ok(number)) = number {
            parts.push((number, entry.path()));
        }
    }
    parts.sort();
    Ok(parts)
}

struct Opener<'p> {
    path: &'p Path,
    file: Arc<File>,
    size_bytes: u64,
}

impl Opener<'_> {
    fn corrupt(&self, what: impl Into<String>) -> OpenError {
        OpenError::Corrupt { path: self.path.to_owned(), what: what.into() }
    }

    fn read(&self, section: Section, what: &str) -> Result<Vec<u8>, OpenError> {
        if section.end().is_none_or(|end| end > self.size_bytes) {
            return Err(self.corrupt(format!(
                "{what} is said to be {} bytes at offset {}, past the end of the file ({} bytes)",
                section.size_bytes, section.offset, self.size_bytes
            )));
        }
        let mut bytes = vec![0; section.size_bytes as usize];
        self.file
            .read_exact_at(&mut bytes, section.offset)
            .map_err(|source| OpenError::Io { path: self.path.to_owned(), source })?;
        Ok(bytes)
    }

    fn recording(&self, form: Form, data: Section) -> Recording {
        Recording {
            path: self.path.to_owned(),
            form,
            events: Vec::new(),
            packed: None,
            features: Features::default(),
            streams: vec![Stream {
                file: self.file.clone(),
                path: self.path.into(),
                start: data.offset,
                end: data.offset + data.size_bytes,
                unpacker: None,
                dumps: None,
            }],
            size_bytes: self.size_bytes,
            is_cut: false,
            warnings: Vec::new(),
        }
    }

    fn open_file(&self, head: &[u8]) -> Result<Recording, OpenError> {
        let header =
            FileHeader::parse(head).ok_or_else(|| self.corrupt("its header is cut short"))?;
        let mut warnings = Vec::new();
        let data = self.data_section(&header, &mut warnings)?;
        let mut recording = self.recording(Form::File, data);
        recording.events = self.read_events(&header)?;
        recording.is_cut = data.size_bytes != header.data.size_bytes;
        if !recording.is_cut {
            recording.features = self.read_features(&header, &mut warnings);
        }
        recording.warnings = warnings;
        Ok(recording)
    }

    /// The data section, mended where the recorder was killed before it could complete the header
    /// or the file was cut afterwards.
    fn data_section(
        &self,
        header: &FileHeader,
        warnings: &mut Vec<RecordingDefect>,
    ) -> Result<Section, OpenError> {
        let path = self.path.to_owned();
        let offset = header.data.offset;
        let Some(available) = self.size_bytes.checked_sub(offset) else {
            return Err(self.corrupt(format!(
                "its records are said to start at offset {offset}, past the end of the file \
                 ({} bytes)",
                self.size_bytes
            )));
        };
        if header.data.size_bytes == 0 && available > 0 && !self.has_feature_table(header) {
            warnings.push(RecordingDefect::NotEnded { path });
            return Ok(Section { offset, size_bytes: available });
        }
        if header.data.size_bytes > available {
            let missing_bytes = header.data.size_bytes - available;
            warnings.push(RecordingDefect::CutShort {
                path,
                offset: self.size_bytes,
                missing_bytes,
            });
        }
        Ok(Section { offset, size_bytes: header.data.size_bytes.min(available) })
    }

    /// Distinguishes a finished recording without records from one whose recorder was killed. Both
    /// have a size of zero in the header (perf sets the feature bits at once). A table of features
    /// follows the header if its first section stands right behind the table.
    fn has_feature_table(&self, header: &FileHeader) -> bool {
        let count = header.present_features().count();
        let size_bytes = (count * Section::SIZE_BYTES) as u64;
        let table = Section { offset: header.data.offset, size_bytes };
        let Ok(bytes) = self.read(table, "the table of features") else { return false };
        let mut sections = bytes.chunks(Section::SIZE_BYTES).filter_map(Section::parse);
        sections.any(|section| Some(section.offset) == table.end())
    }

    fn read_events(&self, header: &FileHeader) -> Result<Vec<EventDesc>, OpenError> {
        let entry = header.attr_entry_size_bytes;
        let smallest = (Attr::MIN_SIZE_BYTES + Section::SIZE_BYTES) as u64;
        if entry < smallest || entry > u64::from(u16::MAX) {
            return Err(self.corrupt(format!("an event attribute of {entry} bytes cannot be")));
        }
        if header.attrs.size_bytes / entry > MAX_EVENTS {
            return Err(self.corrupt("it claims more than 65,536 events"));
        }
        let bytes = self.read(header.attrs, "the section of event attributes")?;
        if !(bytes.len() as u64).is_multiple_of(entry) {
            return Err(self.corrupt(format!(
                "the section of event attributes at offset {} is {} bytes long, which is no \
                 multiple of an entry's {entry}",
                header.attrs.offset,
                bytes.len()
            )));
        }
        let mut ids_room_bytes = MAX_IDS_SIZE_BYTES;
        let entries = bytes.chunks_exact(entry as usize);
        entries.map(|entry| self.read_event(entry, &mut ids_room_bytes)).collect()
    }

    fn read_event(&self, entry: &[u8], ids_room_bytes: &mut u64) -> Result<EventDesc, OpenError> {
        let (attr, ids) = entry.split_at(entry.len() - Section::SIZE_BYTES);
        let attr =
            Attr::from_bytes(attr).ok_or_else(|| self.corrupt("an event attribute is cut"))?;
        let ids = Section::parse(ids).unwrap_or_default();
        *ids_room_bytes = ids_room_bytes
            .checked_sub(ids.size_bytes)
            .ok_or_else(|| self.corrupt("its events claim more than 64 MiB of ids"))?;
        let ids = self.read(ids, "the ids of an event")?;
        let ids = ids.as_chunks::<8>().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
        Ok(EventDesc { attr, ids, name: String::new() })
    }

    /// Reads what can be read: a recording without its features is still worth reporting.
    fn read_features(&self, header: &FileHeader, warnings: &mut Vec<RecordingDefect>) -> Features {
        let mut features = Features::default();
        let present: Vec<_> = header.present_features().collect();
        let table = Section {
            offset: header.data.end().unwrap_or(u64::MAX),
            size_bytes: (present.len() * Section::SIZE_BYTES) as u64,
        };
        let table = match self.read(table, "the table of features") {
            Ok(table) => table,
            Err(error) => {
                warnings.push(error.into());
                return features;
            }
        };
        let mut room_bytes = MAX_FEATURES_SIZE_BYTES;
        for (feature, section) in present.into_iter().zip(table.chunks(Section::SIZE_BYTES)) {
            let Some(section) = Section::parse(section) else { continue };
            match self.read_feature(section, &format!("feature {}", feature.0), &mut room_bytes) {
                Ok(bytes) => features.set(feature, bytes),
                Err(error) => warnings.push(error.into()),
            }
        }
        features
    }

    fn read_feature(
        &self,
        section: Section,
        what: &str,
        room_bytes: &mut u64,
    ) -> Result<Vec<u8>, OpenError> {
        let Some(left) = room_bytes.checked_sub(section.size_bytes) else {
            return Err(self.corrupt(format!(
                "{what} is said to be {} bytes at offset {}, which makes more than \
                 {MAX_FEATURES_SIZE_BYTES} bytes of features; it is not read",
                section.size_bytes, section.offset
            )));
        };
        let bytes = self.read(section, what)?;
        *room_bytes = left;
        Ok(bytes)
    }
}
