//! Beginnings and ends of requests, as their probes were hit.

use super::{Goroutine, StreamEnd, TableSource};
use crate::trace_number::Number;
use std::fmt;
use std::sync::Arc;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::feature::{EventDesc, Feature, Features};
use whit_perfdata::goroutine;
use whit_perfdata::request::{
    Edge, KEY, STACK_POINTER, STACK_TOP, SocketData, SocketStep, request_of,
};
use whit_perfdata::tracing_data::{FieldLocation, TraceEvent, TracingData};
use whit_types::{OutsideText, SoftwareEvent, TimestampNs};

/// A number or a text by which a request is known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequestKey {
    /// The value of a register or of memory.
    Number(u64),
    /// A text in memory.
    Text(Arc<str>),
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestKey::Number(number) => number.fmt(f),
            RequestKey::Text(text) => OutsideText::from(&**text).fmt(f),
        }
    }
}

/// A step of a system call with a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionMark {
    /// The connection: no other one of the machine has this number.
    pub connection: u64,
    /// Whether data was received or sent, or is about to be.
    pub step: SocketStep,
}

/// A hit of a probe of requests, or data that goes through a server's socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestMark {
    /// By the clock of the recording.
    pub time: TimestampNs,
    /// Number of the thread: that of the tables, or the kernel's in a recording that is still being made.
    pub thread: u32,
    /// Number of the requests: that of their name in [`TableSource::request_names`].
    pub kind: u32,
    /// Whether the request begins or ends.
    pub edge: Edge,
    /// The stack pointer of user mode, of a goroutine from the top of its stack; `None` where the marks are not calls and
    /// returns of a function.
    pub stack_pointer: Option<u64>,
    /// The goroutine that calls or returns; `None` where a thread does.
    pub goroutine: Option<Goroutine>,
    /// The connection; `None` where the marks are hits of probes.
    pub connection: Option<ConnectionMark>,
    /// At the beginning, where it is recorded: the other end of a connection, for one.
    pub key: Option<RequestKey>,
}

/// Where a text's place is in a record: its offset below, its length above (`__data_loc`).
const PLACE_BYTES: usize = 4;

enum KeyField {
    Number(Number),
    Text { offset: usize },
}

impl KeyField {
    fn read(&self, raw: &[u8]) -> Option<RequestKey> {
        match self {
            KeyField::Number(number) => number.read(raw).map(RequestKey::Number),
            KeyField::Text { offset } => {
                let place = raw.get(*offset..offset.checked_add(PLACE_BYTES)?)?;
                let place = u32::from_le_bytes(place.try_into().ok()?);
                let start = (place & 0xffff) as usize;
                let bytes = raw.get(start..start.checked_add((place >> 16) as usize)?)?;
                let text = bytes.split(|byte| *byte == 0).next()?;
                Some(RequestKey::Text(String::from_utf8_lossy(text).into()))
            }
        }
    }
}

/// An event of requests.
struct MarkEvent {
    kind: u32,
    edge: Edge,
    data: MarkData,
}

/// The layout of the raw data of a sample.
enum MarkData {
    /// The fields of a probe.
    Fields(Fields),
    /// That of a connection.
    Socket,
}

/// The fields of a probe that are read.
struct Fields {
    stack_pointer: Option<Number>,
    stack_top: Option<Number>,
    goroutine: Option<Number>,
    goroutine_number: Option<Number>,
    key: Option<KeyField>,
}

impl Fields {
    fn of(format: &TraceEvent) -> Fields {
        let number = |name| Number::of(format, name);
        let key = format.field(KEY).and_then(|field| match field.location {
            FieldLocation::Fixed => number(KEY).map(KeyField::Number),
            FieldLocation::Dynamic => Some(KeyField::Text { offset: field.offset }),
            FieldLocation::RelativeDynamic => None,
        });
        Fields {
            stack_pointer: number(STACK_POINTER),
            stack_top: number(STACK_TOP),
            goroutine: number(goroutine::ADDRESS),
            goroutine_number: number(goroutine::NUMBER),
            key,
        }
    }

    fn stack_pointer(&self, raw: &[u8]) -> Option<u64> {
        let read = |field: &Option<Number>| field.as_ref()?.read(raw);
        let stack_pointer = read(&self.stack_pointer)?;
        match &self.stack_top {
            Some(top) => Some(stack_pointer.wrapping_sub(top.read(raw)?)),
            None => Some(stack_pointer),
        }
    }

    fn goroutine(&self, raw: &[u8]) -> Option<Goroutine> {
        let read = |field: &Option<Number>| field.as_ref()?.read(raw);
        let address = read(&self.goroutine)?;
        Some(Goroutine { address, number: read(&self.goroutine_number) })
    }
}

impl MarkData {
    fn of(event: &EventDesc, formats: &TracingData) -> Option<MarkData> {
        let (pmu_type, config) = (event.attr.pmu_type, event.attr.config);
        if pmu_type == pmu_type::SOFTWARE && config == SoftwareEvent::BpfOutput.config() {
            return Some(MarkData::Socket);
        }
        let format = formats.event(config).filter(|_| pmu_type == pmu_type::TRACEPOINT)?;
        Some(MarkData::Fields(Fields::of(format)))
    }
}

/// The events of requests of a recording: their names, and how their samples are read.
pub struct RequestEvents {
    names: Vec<Arc<str>>,
    /// By event; `None` for those of no request.
    marks: Vec<Option<MarkEvent>>,
}

impl RequestEvents {
    /// From the head of a recording.
    pub fn of(events: &[EventDesc], features: &Features) -> RequestEvents {
        let names = names(events);
        let section = features.get(Feature::TRACING_DATA).unwrap_or_default();
        let formats = TracingData::parse(section).unwrap_or_default();
        let mark = |event: &EventDesc| {
            let (name, edge) = request_of(&event.name)?;
            let kind = names.iter().position(|known| **known == *name)? as u32;
            Some(MarkEvent { kind, edge, data: MarkData::of(event, &formats)? })
        };
        let marks = events.iter().map(mark).collect();
        RequestEvents { names, marks }
    }

    /// Names of the requests, in the order of their numbers.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Whether the samples of an event are hits of a probe of requests.
    pub fn is_mark(&self, event: usize) -> bool {
        self.mark_event(event).is_some()
    }

    fn mark_event(&self, event: usize) -> Option<&MarkEvent> {
        self.marks.get(event).and_then(Option::as_ref)
    }

    /// A sample of an event with its raw data; `None` for events of no request, and for data of a connection that is too
    /// short.
    pub fn mark(
        &self,
        event: usize,
        (time, thread): (TimestampNs, u32),
        raw: &[u8],
    ) -> Option<RequestMark> {
        let MarkEvent { kind, edge, data } = self.mark_event(event)?;
        let (kind, edge) = (*kind, *edge);
        let mark = RequestMark {
            time,
            thread,
            kind,
            edge,
            stack_pointer: None,
            goroutine: None,
            connection: None,
            key: None,
        };
        match data {
            MarkData::Fields(fields) => Some(RequestMark {
                stack_pointer: fields.stack_pointer(raw),
                goroutine: fields.goroutine(raw),
                key: fields.key.as_ref().and_then(|key| key.read(raw)),
                ..mark
            }),
            MarkData::Socket => {
                let SocketData { connection, step, peer } = SocketData::parse(edge, raw)?;
                let key = peer.filter(|_| edge == Edge::Begin);
                Some(RequestMark {
                    connection: Some(ConnectionMark { connection, step }),
                    key: key.map(|peer| RequestKey::Text(peer.to_string().into())),
                    ..mark
                })
            }
        }
    }
}

fn names(events: &[EventDesc]) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for event in events {
        if let Some((name, _)) = request_of(&event.name)
            && !names.iter().any(|known| **known == *name)
        {
            names.push(name.into());
        }
    }
    names
}

impl TableSource {
    /// Names of the recorded requests, in the order of their numbers.
    pub fn request_names(&self) -> Vec<Arc<str>> {
        names(&self.recording.events)
    }

    /// Hands the hits of probes of requests to `take`, in order of time.
    ///
    /// # Errors
    /// The recording changed.
    pub fn request_marks(&self, take: &mut dyn FnMut(RequestMark)) -> Result<(), StreamEnd> {
        let events = RequestEvents::of(&self.recording.events, &self.recording.features);
        let is_mark: Vec<_> = (0..events.marks.len()).map(|event| events.is_mark(event)).collect();
        if !is_mark.contains(&true) {
            return Ok(());
        }
        self.hits(&is_mark, false, &mut |hit| {
            events
                .mark(hit.event, (hit.time, hit.thread), hit.raw)
                .into_iter()
                .for_each(&mut *take);
        })
    }
}
