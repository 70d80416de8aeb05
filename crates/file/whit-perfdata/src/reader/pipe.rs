//! Opening a pipe: its events and features stand at the front of the stream.

use super::{Form, MAX_EVENTS, MAX_FEATURES_SIZE_BYTES, OpenError, Opener, Recording};
use crate::attr::Attr;
use crate::bytes::Cursor;
use crate::feature::{EventDesc, Feature, Features};
use crate::header::{PIPE_HEADER_SIZE_BYTES, Section};
use crate::record::{RawRecord, record_type};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;

/// How much of the stream is read at once while its front is searched for events.
const WINDOW_BYTES: usize = 256 << 10;

impl Opener<'_> {
    /// A pipe has its events and features at the front of the stream.
    pub(super) fn open_pipe(&self) -> Result<Recording, OpenError> {
        let data = Section {
            offset: PIPE_HEADER_SIZE_BYTES as u64,
            size_bytes: self.size_bytes - PIPE_HEADER_SIZE_BYTES as u64,
        };
        let mut recording = self.recording(Form::Pipe, data);
        let mut head = PipeHead::new();
        let mut window = Window { start: data.offset, bytes: Vec::new() };
        let mut offset = data.offset;
        while let Some(record) = self.record_at(offset, &mut window)? {
            let behind = offset + u64::from(record.header.size_bytes);
            let payload_bytes = RawRecord::bytes_behind(record.header, record.body).unwrap_or(0);
            match record.header.kind {
                record_type::TRACING_DATA if payload_bytes == 0 => {
                    recording.features.set(Feature::TRACING_DATA, formats_inside(record).to_vec());
                }
                record_type::TRACING_DATA => {
                    let section = Section { offset: behind, size_bytes: payload_bytes };
                    match self.read_feature(section, "the tracepoint formats", &mut head.room_bytes)
                    {
                        Ok(bytes) => recording.features.set(Feature::TRACING_DATA, bytes),
                        Err(error) => recording.warnings.push(error.into()),
                    }
                }
                record_type::AUXTRACE => {}
                record_type::SAMPLE | record_type::COMPRESSED | record_type::COMPRESSED2 => break,
                _ => head.absorb(record, &mut recording.events, &mut recording.features),
            }
            offset = behind.saturating_add(payload_bytes);
        }
        if recording.events.is_empty() {
            return Err(self.corrupt(format!(
                "the stream announces no event; it was read up to offset {}",
                offset.min(self.size_bytes)
            )));
        }
        if recording.events.len() as u64 > MAX_EVENTS {
            return Err(self.corrupt("it announces more than 65,536 events"));
        }
        head.name_events(&mut recording.events);
        Ok(recording)
    }

    /// The record at an offset of the file. `None` where no whole one stands there.
    fn record_at<'w>(
        &self,
        offset: u64,
        window: &'w mut Window,
    ) -> Result<Option<RawRecord<'w>>, OpenError> {
        let left = self.size_bytes.saturating_sub(offset);
        let needed = left.min(u64::from(u16::MAX)) as usize;
        if window.at(offset).is_none_or(|bytes| bytes.len() < needed) {
            window.start = offset;
            window.bytes.resize(left.min(WINDOW_BYTES as u64) as usize, 0);
            self.file
                .read_exact_at(&mut window.bytes, offset)
                .map_err(|source| OpenError::Io { path: self.path.to_owned(), source })?;
        }
        Ok(window.at(offset).and_then(RawRecord::split).map(|(record, _)| record))
    }
}

/// The recording's description at the head of a pipe.
struct PipeHead {
    /// Bytes of features that may still be kept.
    room_bytes: u64,
    /// Names of events, by one of their ids.
    names: HashMap<u64, String>,
}

impl PipeHead {
    fn new() -> PipeHead {
        PipeHead { room_bytes: MAX_FEATURES_SIZE_BYTES, names: HashMap::new() }
    }

    /// Takes up a record that describes the recording. Other records change nothing.
    fn absorb(
        &mut self,
        record: RawRecord<'_>,
        events: &mut Vec<EventDesc>,
        features: &mut Features,
    ) {
        let size_bytes = u64::from(record.header.size_bytes);
        match record.header.kind {
            record_type::HEADER_ATTR if events.len() as u64 <= MAX_EVENTS => {
                events.extend(event_of_attr_record(record.body));
            }
            record_type::FEATURE => {
                let mut c = Cursor::new(record.body);
                if let Some(feature) = c.u64().and_then(|number| u8::try_from(number).ok()) {
                    features.set(Feature(feature), c.rest().to_vec());
                }
            }
            record_type::BUILD_ID if size_bytes <= self.room_bytes => {
                self.room_bytes -= size_bytes;
                let mut whole = record.header.to_bytes().to_vec();
                whole.extend(record.body);
                features.append(Feature::BUILD_ID, &whole);
            }
            record_type::EVENT_UPDATE => self.update_event(record.body),
            _ => {}
        }
    }

    fn update_event(&mut self, body: &[u8]) {
        const UPDATE_NAME: u64 = 2;
        let mut c = Cursor::new(body);
        if let (Some(UPDATE_NAME), Some(id)) = (c.u64(), c.u64()) {
            self.names.insert(id, String::from_utf8_lossy(c.c_str()).into_owned());
        }
    }

    fn name_events(&mut self, events: &mut [EventDesc]) {
        for event in events {
            if let Some(name) = event.ids.iter().find_map(|id| self.names.remove(id)) {
                event.name = name;
            }
        }
    }
}

/// A piece of the file in memory.
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The held bytes from an offset of the file on.
    fn at(&self, offset: u64) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(offset.checked_sub(self.start)?).ok()?..)
    }
}

/// Events and features at the front of a stream, which is in memory.
pub fn pipe_head(stream: &[u8]) -> (Vec<EventDesc>, Features) {
    let (mut events, mut features) = (Vec::new(), Features::default());
    let mut head = PipeHead::new();
    let mut rest = stream.get(PIPE_HEADER_SIZE_BYTES..).unwrap_or_default();
    while let Some((record, behind)) = RawRecord::split(rest) {
        rest = behind;
        match record.header.kind {
            record_type::SAMPLE | record_type::COMPRESSED | record_type::COMPRESSED2 => break,
            record_type::TRACING_DATA => {
                let size_bytes =
                    RawRecord::bytes_behind(record.header, record.body).unwrap_or(0) as usize;
                let Some((bytes, behind)) = rest.split_at_checked(size_bytes) else { break };
                let formats = if size_bytes == 0 { formats_inside(record) } else { bytes };
                features.set(Feature::TRACING_DATA, formats.to_vec());
                rest = behind;
            }
            _ => head.absorb(record, &mut events, &mut features),
        }
    }
    head.name_events(&mut events);
    (events, features)
}

/// The payload of a TRACING_DATA record that has it inside.
fn formats_inside(record: RawRecord<'_>) -> &[u8] {
    let mut c = Cursor::new(record.body);
    let size_bytes = c.u32().unwrap_or(0) as usize;
    c.rest().get(..size_bytes).unwrap_or_default()
}

/// The event that a HEADER_ATTR record of a pipe describes, without a name.
pub fn event_of_attr_record(body: &[u8]) -> Option<EventDesc> {
    let size = u32::from_le_bytes(*body.get(4..)?.first_chunk()?) as usize;
    // A size of zero meant the first version.
    let size = if size == 0 { Attr::MIN_SIZE_BYTES } else { size };
    let (attr, ids) = body.split_at_checked(size)?;
    let ids = ids.as_chunks::<8>().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
    Some(EventDesc { attr: Attr::from_bytes(attr)?, ids, name: String::new() })
}
