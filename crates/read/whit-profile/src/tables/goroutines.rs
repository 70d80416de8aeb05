//! Goroutines that wait, become ready, and run again.

use super::{StreamEnd, TableSource};
use crate::trace_number::Number;
use std::sync::Arc;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::goroutine::{
    ADDRESS, CHANNEL, Change, MODE, NO_GOROUTINE, NUMBER, POLL_EVENT, READ_FILE, READER,
    READER_NUMBER, REASON, SEMAPHORE, SUDOG, WAKER, WAKER_NUMBER, WRITE_FILE, WRITER,
    WRITER_NUMBER,
};
use whit_perfdata::tracing_data::{TraceEvent, TracingData};
use whit_types::TimestampNs;

/// The address of a goroutine's `runtime.g` in its process, and its number where the recording has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Goroutine {
    /// Another goroutine may have it later.
    pub address: u64,
    /// Never given twice in a process.
    pub number: Option<u64>,
}

/// The side that makes a goroutine ready.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GoroutineWaker {
    /// Another goroutine.
    Goroutine(Goroutine),
    /// The scheduler between two goroutines: a timer.
    Scheduler,
    /// The network's poller, which has found a file ready.
    Poller,
    /// The recording does not say.
    Unknown,
}

/// The object of a park, as far as the runtime says it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct GoroutineObject {
    /// The address of a channel.
    pub channel: Option<u64>,
    /// The address of a lock's word.
    pub semaphore: Option<u64>,
    /// The number of a file, where the goroutine reads from one.
    pub read_file: Option<u64>,
    /// The same where it writes.
    pub write_file: Option<u64>,
}

/// A goroutine's change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoroutineChange {
    /// By the clock of the recording.
    pub time: TimestampNs,
    /// Number of the thread that did it.
    pub thread: u32,
    /// It parks, is made ready, or runs.
    pub change: Change,
    /// Which goroutine.
    pub goroutine: Goroutine,
    /// The value of `runtime.waitReason`; parks have one.
    pub reason: Option<u64>,
    /// Parks have one.
    pub object: GoroutineObject,
    /// Makes it ready.
    pub waker: GoroutineWaker,
    /// Innermost call site of the goroutine that parks, or of the one that makes it ready.
    pub callsite: Option<u32>,
}

/// The fields of a goroutine that waits for a file, and the byte of a poll that ends the wait.
struct Waiter {
    address: Number,
    number: Number,
    mode: u8,
}

/// The fields of a poll.
struct PollEvent {
    waiters: [Waiter; 2],
    mode: Number,
}

/// Either kind of event.
enum GoEvent {
    Change(ChangeEvent),
    Poll(PollEvent),
}

impl GoEvent {
    fn of(event: &EventDesc, formats: &TracingData) -> Option<GoEvent> {
        let is_tracepoint = event.attr.pmu_type == pmu_type::TRACEPOINT;
        let format = formats.event(event.attr.config).filter(|_| is_tracepoint)?;
        match Change::of(&event.name) {
            Some(change) => ChangeEvent::of(change, format).map(GoEvent::Change),
            None if event.name == POLL_EVENT => PollEvent::of(format).map(GoEvent::Poll),
            None => None,
        }
    }
}

impl PollEvent {
    fn of(format: &TraceEvent) -> Option<PollEvent> {
        let number = |name| Number::of(format, name);
        let waiter = |address, of, mode| {
            Some(Waiter { address: number(address)?, number: number(of)?, mode })
        };
        let waiters = [waiter(READER, READER_NUMBER, b'r')?, waiter(WRITER, WRITER_NUMBER, b'w')?];
        Some(PollEvent { waiters, mode: number(MODE)? })
    }

    /// The goroutines that are ready now.
    fn ready(&self, raw: &[u8]) -> impl Iterator<Item = Goroutine> {
        let mode = self.mode.read(raw).unwrap_or(0);
        let both = u64::from(b'r') + u64::from(b'w');
        let is_ready = move |waiter: &&Waiter| mode == u64::from(waiter.mode) || mode == both;
        self.waiters.iter().filter(is_ready).filter_map(|waiter| {
            let address = waiter.address.read(raw).filter(|address| *address > NO_GOROUTINE)?;
            Some(Goroutine { address, number: waiter.number.read(raw) })
        })
    }
}

/// An event of a goroutine, and its fields.
struct ChangeEvent {
    change: Change,
    address: Number,
    number: Option<Number>,
    reason: Option<Number>,
    sudog: Option<Number>,
    channel: Option<Number>,
    semaphore: Option<Number>,
    files: [Option<Number>; 2],
    waker: Option<Number>,
    waker_number: Option<Number>,
}

impl ChangeEvent {
    fn of(change: Change, format: &TraceEvent) -> Option<ChangeEvent> {
        let number = |name| Number::of(format, name);
        Some(ChangeEvent {
            change,
            address: number(ADDRESS)?,
            number: number(NUMBER),
            reason: number(REASON),
            sudog: number(SUDOG),
            channel: number(CHANNEL),
            semaphore: number(SEMAPHORE),
            files: [READ_FILE, WRITE_FILE].map(number),
            waker: number(WAKER),
            waker_number: number(WAKER_NUMBER),
        })
    }

    fn object(&self, raw: &[u8]) -> GoroutineObject {
        let read = |field: Option<Number>| field.and_then(|field| field.read(raw));
        // Behind an address of zero, the kernel leaves fields as they were.
        let of_sudog = read(self.sudog).filter(|sudog| *sudog != 0);
        let channel = of_sudog.and_then(|_| read(self.channel)).filter(|channel| *channel != 0);
        let semaphore = of_sudog.filter(|_| channel.is_none()).and_then(|_| read(self.semaphore));
        let [read_file, write_file] = self.files.map(read);
        GoroutineObject { channel, semaphore, read_file, write_file }
    }

    fn waker(&self, raw: &[u8]) -> GoroutineWaker {
        match self.waker.and_then(|field| field.read(raw)) {
            None => GoroutineWaker::Unknown,
            Some(0) => GoroutineWaker::Scheduler,
            Some(address) => GoroutineWaker::Goroutine(Goroutine {
                address,
                number: self.waker_number.and_then(|field| field.read(raw)),
            }),
        }
    }
}

impl TableSource {
    /// Names of the reasons for which goroutines wait, by their numbers. Empty where goroutines were not recorded.
    pub fn wait_reasons(&self) -> Vec<Arc<str>> {
        let reasons = self.recording.features.wait_reasons().unwrap_or_default();
        reasons.into_iter().map(Into::into).collect()
    }

    /// Whether goroutines were recorded.
    pub fn has_goroutines(&self) -> bool {
        self.recording.events.iter().any(|event| Change::of(&event.name).is_some())
    }

    /// Whether the polls of the network's poller were recorded.
    pub fn has_polls(&self) -> bool {
        self.recording.events.iter().any(|event| event.name == POLL_EVENT)
    }

    /// Hands the changes of goroutines to `take`, in order of time.
    ///
    /// # Errors
    /// The recording changed.
    pub fn goroutine_changes(
        &self,
        take: &mut dyn FnMut(GoroutineChange),
    ) -> Result<(), StreamEnd> {
        let section = self.recording.features.get(Feature::TRACING_DATA).unwrap_or_default();
        let formats = TracingData::parse(section).unwrap_or_default();
        let events = self.recording.events.iter().map(|event| GoEvent::of(event, &formats));
        let events: Vec<_> = events.collect();
        let is_change: Vec<_> = events.iter().map(Option::is_some).collect();
        self.hits(&is_change, true, &mut |hit| {
            let Some(event) = events.get(hit.event).and_then(Option::as_ref) else { return };
            let event = match event {
                GoEvent::Change(event) => event,
                GoEvent::Poll(poll) => {
                    return poll.ready(hit.raw).for_each(|goroutine| {
                        take(GoroutineChange {
                            time: hit.time,
                            thread: hit.thread,
                            change: Change::Ready,
                            goroutine,
                            reason: None,
                            object: GoroutineObject::default(),
                            waker: GoroutineWaker::Poller,
                            callsite: None,
                        });
                    });
                }
            };
            let read = |field: Option<Number>| field.and_then(|field| field.read(hit.raw));
            let Some(address) = event.address.read(hit.raw) else { return };
            take(GoroutineChange {
                time: hit.time,
                thread: hit.thread,
                change: event.change,
                goroutine: Goroutine { address, number: read(event.number) },
                reason: read(event.reason),
                object: event.object(hit.raw),
                waker: event.waker(hit.raw),
                callsite: hit.callsite.filter(|_| event.change != Change::Run),
            });
        })
    }
}
