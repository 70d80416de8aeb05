//! Turns the records of the kernel's programs into ordinary samples and switches, as any reader of
//! perf.data knows them.
//!
//! A CPU emits a stack once, in front of the first record that names it, and forgets it when
//! another takes its place: the dictionary here does the same, place for place. A sample may
//! interrupt a switch between the look at its stack and its record; so each place keeps the stack
//! before as well.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whit_bpf::stacks::StopReason;
use whit_bpf::stacks::channel::{Channels, Thread};
use whit_bpf::stacks::record::{OutputRecord, SampleRecord, StackHash, TraceRecord, WakeRecord};
use whit_engine_api::ring_slices::{RecordRef, RingSlices};
use whit_engine_api::{DecodeCounts, RecordDecoder};
use whit_perfdata::attr::Attr;
use whit_perfdata::encode::{RecordEncoder, push_record};
use whit_perfdata::off_cpu::OFF_CPU_ID;
use whit_perfdata::record::{misc, record_type};
use whit_perfdata::sample::{SampleLayout, context};
use whit_types::TimestampNs;

use super::python::Named;
use super::record_layout::Layout;
use super::schedule::{Context, SchedulerSymbol, SchedulerSymbols};
use super::switches::Switches;
use super::traces::Traces;
use super::wakes::{WAKE_ID, WakeFormat, Wakes};

/// Places of the dictionary: `ANNOUNCED_STACKS` of `bpf/stacks.bpf.c`.
const PLACES: usize = 16384;
/// Size of a record's header.
const HEADER_BYTES: usize = 8;
/// Fields of a LOST record: id, number of records.
const LOST_FIELDS_BYTES: usize = 16;
/// Size of the field between the CPU and the call chain.
const PERIOD_BYTES: usize = 8;
/// Size of the last field of a record with a cgroup.
const CGROUP_BYTES: usize = 8;
/// `CLOCK_DRIFT_SHIFT` of `bpf/stacks.bpf.c`.
const CLOCK_DRIFT_SHIFT: u32 = 14;
/// A sample of a wake-up counts one event.
const WAKE_PERIOD: u64 = 1;

/// The engine's settings for the decoders of all rings.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderConfig {
    /// Functions of interpreters, which any ring's stream may tell.
    pub(crate) named: Arc<Mutex<Named>>,
    /// Where the scheduler is.
    pub(crate) scheduler_symbols: SchedulerSymbols,
    /// The format of wake-ups, if they are recorded.
    pub(crate) wakes: Option<WakeFormat>,
    /// The channels of switches, if they are recorded.
    pub(crate) channels: Option<Channels>,
    /// By CPU, the ids of events whose records only wake the reader.
    pub(crate) wakeup_events: BTreeMap<u32, u64>,
    /// Switches are those of whole CPUs.
    pub(crate) is_cpu_wide: bool,
    /// Switches are packed.
    pub(crate) packs: bool,
}

/// A stack from the ring.
#[derive(Clone, Debug)]
struct Known {
    hash: u64,
    end: StopReason,
    /// Without spare room: each CPU has thousands of stacks.
    frames: Box<[u64]>,
    /// The context of wake-ups with this stack.
    context: Context,
}

/// Expands the records of one ring.
#[derive(Debug)]
pub struct BpfRecordDecoder {
    layout: Layout,
    /// The id of the bpf-output event, by which switches go in the recording as well.
    bpf_output: u64,
    /// Samples have the id of the bpf-output event too.
    is_sample_by_perf: bool,
    /// The switches from the CPU's channel.
    switches: Option<Switches>,
    /// The scheduler's addresses.
    scheduler_symbols: SchedulerSymbols,
    /// The format of wake-ups, if they are recorded.
    wakes: Option<Wakes>,
    /// Hits of tracepoints that perf writes samples of.
    traces: Traces,
    /// Functions of interpreters.
    functions: FunctionTeller,
    /// Each place: the stack that was emitted last, and the one before.
    dictionary: Vec<[Option<Box<Known>>; 2]>,
    /// Time of the ring's last record.
    ring_time: u64,
    chain: Vec<u64>,
    body: Vec<u8>,
    scratch: Vec<u8>,
    /// Counts of records, and of those that stayed incomplete.
    pub counts: DecodeCounts,
}

/// Gives records of functions of interpreters. The functions are those of all rings, and an output has each once.
#[derive(Debug)]
struct FunctionTeller {
    named: Arc<Mutex<Named>>,
    encoder: RecordEncoder,
    /// The event by which they have their fields.
    event_id: u64,
    /// Counts the outputs that the ring's records went into.
    output: u64,
}

impl FunctionTeller {
    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_output(&mut self) {
        self.output += 1;
        self.named().start_output(self.output);
    }

    /// Records have been given up to this time. Whether there are more functions to tell.
    fn write(&self, until: TimestampNs, enough_bytes: usize, out: &mut Vec<u8>) -> bool {
        let mut named = self.named();
        named.see(until);
        named.write(self.output, (&self.encoder, self.event_id), enough_bytes, out)
    }
}

/// The fields that all records of a CPU begin with.
#[derive(Clone, Copy)]
struct Prefix {
    pid_tid: u64,
    time: u64,
    cpu: u64,
    /// 0 where it is not recorded.
    cgroup: u64,
}

impl BpfRecordDecoder {
    /// For a ring whose bpf-output event has these attributes and this id, and into which perf writes samples of
    /// tracepoints: ids of events, and their tracepoints.
    pub(crate) fn new(
        (attr, bpf_output): (&Attr, u64),
        traces: Vec<(u64, u32)>,
        given: DecoderConfig,
    ) -> BpfRecordDecoder {
        let (layout, trailer) = (Layout::new(attr), SampleLayout::new(attr));
        BpfRecordDecoder {
            layout,
            bpf_output,
            is_sample_by_perf: false,
            switches: None,
            scheduler_symbols: given.scheduler_symbols,
            wakes: given.wakes.map(|format| Wakes::new(format, layout)),
            traces: Traces::new(traces),
            functions: FunctionTeller {
                named: given.named,
                encoder: RecordEncoder::new(trailer),
                event_id: bpf_output,
                output: 0,
            },
            dictionary: vec![[None, None]; PLACES],
            ring_time: 0,
            chain: Vec::new(),
            body: Vec::new(),
            scratch: Vec::new(),
            counts: DecodeCounts::default(),
        }
    }

    /// Samples have the id of the bpf-output event: perf writes its own by that of the event.
    pub(crate) fn samples_have_bpf_output_id(&mut self) {
        self.is_sample_by_perf = true;
    }

    /// Adds a channel whose switches are merged with the ring's records.
    pub(crate) fn add_switches(&mut self, switches: Switches) {
        self.switches = Some(switches);
    }

    /// Whether there are such.
    pub(crate) fn has_switches(&self) -> bool {
        self.switches.is_some()
    }

    /// The time of a record of the ring; without one, of the last before.
    fn time(&self, ring_slices: &RingSlices<'_>, seen: Option<RecordRef>) -> u64 {
        let time = seen.and_then(|seen| self.layout.times().time(ring_slices, seen));
        time.map_or(self.ring_time, |time| time.0)
    }

    fn output_record(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let prefix_bytes = self.layout.prefix_bytes();
        let word = |at: usize| Some(u64::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let raw_end =
            body.len().saturating_sub(if self.layout.has_cgroup() { CGROUP_BYTES } else { 0 });
        let raw = body.get(prefix_bytes + 4..raw_end);
        let prefix = || {
            let cpu = if self.layout.has_cpu() { word(32)? } else { 0 };
            let cgroup = if self.layout.has_cgroup() { word(raw_end)? } else { 0 };
            Some(Prefix { pid_tid: word(16)?, time: word(24)?, cpu, cgroup })
        };
        let (Some(prefix), Some(parsed)) = (prefix(), raw.and_then(OutputRecord::parse)) else {
            self.counts.unreadable += 1;
            return;
        };
        match parsed {
            OutputRecord::Stack(stack) => {
                self.counts.stacks += 1;
                let place = &mut self.dictionary[stack.hash.0 as usize % PLACES];
                let frames: Box<[u64]> = stack.frames().collect();
                let context = match self.wakes {
                    Some(_) if stack.reason == StopReason::Kernel => {
                        self.scheduler_symbols.context(&frames)
                    }
                    _ => Context::default(),
                };
                place.swap(0, 1);
                place[0] = Some(Box::new(Known {
                    hash: stack.hash.0,
                    end: stack.reason,
                    frames,
                    context,
                }));
            }
            OutputRecord::Sample(sample) => self.sample(&prefix, &sample, out),
            OutputRecord::Trace(trace) => self.traces.add(trace, prefix.pid_tid),
            OutputRecord::Wake(wake) => self.wake(&prefix, &wake, out),
        }
    }

    /// perf's own sample of a tracepoint gets its call chain, which stands in front of the raw data.
    fn trace_sample(&mut self, id: u64, record: &[u8], out: &mut Vec<u8>) {
        let fields_bytes = HEADER_BYTES + self.layout.prefix_bytes() + PERIOD_BYTES;
        let (Some(fields), Some(raw)) = (record.get(..fields_bytes), record.get(fields_bytes..))
        else {
            self.counts.unreadable += 1;
            return;
        };
        let word =
            |at: usize| fields[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let parsed = self.traces.take(id, word(HEADER_BYTES + 16));
        self.counts.records += 1;
        self.counts.without_stacks += u64::from(parsed.is_none());
        let cgroup = parsed.as_ref().and_then(|parsed| parsed.cgroup);
        let stacks = parsed
            .map_or((None, None), |TraceRecord { kernel_stack, user_stack, .. }| {
                (kernel_stack, user_stack)
            });
        self.collect(stacks.0, stacks.1, None);
        let body = &mut self.body;
        body.clear();
        body.extend_from_slice(&fields[HEADER_BYTES..]);
        body.extend((self.chain.len() as u64).to_le_bytes());
        body.extend(self.chain.iter().flat_map(|address| address.to_le_bytes()));
        body.extend_from_slice(raw);
        // The kernel's own is the last field.
        if let (true, Some(cgroup)) = (self.layout.has_cgroup(), cgroup)
            && let Some(last) = body.last_chunk_mut::<CGROUP_BYTES>()
        {
            *last = cgroup.to_le_bytes();
        }
        let misc = (word(0) >> 32) as u16;
        push_record(out, record_type::SAMPLE, misc, &self.body);
    }

    fn sample(&mut self, prefix: &Prefix, sample: &SampleRecord, out: &mut Vec<u8>) {
        let prefix = &Prefix { cgroup: sample.cgroup.unwrap_or(prefix.cgroup), ..*prefix };
        self.counts.records += 1;
        if let (Some(switches), 1..) = (&mut self.switches, sample.unseen_for_ns) {
            let thread = Thread { pid: prefix.pid_tid as u32, tid: (prefix.pid_tid >> 32) as u32 };
            let came = prefix.time.saturating_sub(sample.unseen_for_ns.into());
            // It came behind the last switch.
            let earliest = switches.last_switch().min(came);
            // The program compares clocks at switches; they drift since.
            let drift = (prefix.time - earliest) >> CLOCK_DRIFT_SHIFT;
            // The largest number stands for all that are larger.
            let is_earlier = sample.unseen_for_ns == u32::MAX;
            let since = if is_earlier { earliest } else { came - drift.min(came - earliest) };
            switches.came(thread, since, came, out);
            switches.close(out);
        }
        // A sample of a wait is taken within the scheduler.
        let is_wait = sample.event_id == OFF_CPU_ID;
        let scheduler = is_wait.then_some(SchedulerSymbol::Switch);
        let ip = self.collect(sample.kernel_stack, sample.user_stack, scheduler);
        let mode = if sample.is_user { misc::USER } else { misc::KERNEL };
        let is_by_perf = self.is_sample_by_perf && !is_wait;
        let id = if is_by_perf { self.bpf_output } else { sample.event_id };
        self.push_sample(id, prefix, mode, ip, sample.period, out);
    }

    /// A wake-up is a sample of the one that woke.
    fn wake(&mut self, prefix: &Prefix, wake: &WakeRecord, out: &mut Vec<u8>) {
        let Some(mut wakes) = self.wakes.take() else {
            self.counts.unreadable += 1;
            return;
        };
        self.counts.records += 1;
        self.counts.wakes += 1;
        wakes.push_name(wake, (prefix.pid_tid, prefix.time, prefix.cpu), out);
        let context =
            wake.kernel_stack.and_then(|hash| self.known(hash)).map(|known| known.context);
        let context = context.unwrap_or_default();
        // An interrupt has nothing to do with the program that it interrupts, unless the program has sent.
        let may_be_own = context == Context::Thread || wake.socket.is_some();
        let user_stack = wake.user_stack.filter(|_| may_be_own);
        let ip = self.collect(wake.kernel_stack, user_stack, Some(SchedulerSymbol::Wake));
        self.begin_sample(WAKE_ID, prefix, ip, WAKE_PERIOD);
        wakes.push_raw(wake, context, prefix.pid_tid, &mut self.body);
        push_record(out, record_type::SAMPLE, misc::KERNEL, &self.body);
        self.wakes = Some(wakes);
    }

    fn known(&self, hash: StackHash) -> Option<&Known> {
        known_in(&self.dictionary, hash)
    }

    /// Puts both stacks together; gives the address where the thread was.
    fn collect(
        &mut self,
        kernel: Option<StackHash>,
        user: Option<StackHash>,
        scheduler: Option<SchedulerSymbol>,
    ) -> u64 {
        self.chain.clear();
        let mut ip = 0;
        for (stack, marker) in [(kernel, context::KERNEL), (user, context::USER)] {
            let Some(hash) = stack else { continue };
            let Some(known) = known_in(&self.dictionary, hash) else {
                self.counts.unknown_stacks += 1;
                continue;
            };
            let frames = match marker {
                context::KERNEL => self.scheduler_symbols.trim(&known.frames, scheduler),
                _ => {
                    self.counts.user_stacks[known.end as usize] += 1;
                    &known.frames
                }
            };
            if ip == 0 {
                ip = frames.first().copied().unwrap_or(0);
            }
            self.chain.push(marker);
            self.chain.extend_from_slice(frames);
        }
        ip
    }

    fn push_sample(
        &mut self,
        id: u64,
        prefix: &Prefix,
        mode: u16,
        ip: u64,
        period: u64,
        out: &mut Vec<u8>,
    ) {
        self.begin_sample(id, prefix, ip, period);
        if self.layout.has_cgroup() {
            self.body.extend_from_slice(&prefix.cgroup.to_le_bytes());
        }
        push_record(out, record_type::SAMPLE, mode, &self.body);
    }

    /// Puts the fields of a sample into `body`, up to the call chain and with it.
    fn begin_sample(&mut self, id: u64, prefix: &Prefix, ip: u64, period: u64) {
        let body = &mut self.body;
        body.clear();
        let mut put = |word: u64| body.extend_from_slice(&word.to_le_bytes());
        [id, ip, prefix.pid_tid, prefix.time].into_iter().for_each(&mut put);
        if self.layout.has_cpu() {
            put(prefix.cpu);
        }
        put(period);
        put(self.chain.len() as u64);
        self.chain.iter().copied().for_each(&mut put);
    }
}

impl RecordDecoder for BpfRecordDecoder {
    fn available_bytes(&self) -> usize {
        self.switches.as_ref().map_or(0, Switches::available_bytes)
    }

    fn start_stream(&mut self) {
        self.functions.start_output();
        if let Some(switches) = &mut self.switches {
            switches.start_stream();
        }
    }

    fn look(&mut self) {
        if let Some(switches) = &mut self.switches {
            switches.look();
        }
    }

    fn rest(&mut self, enough_bytes: usize, out: &mut Vec<u8>) -> bool {
        let switches = self.switches.as_mut();
        let is_more =
            switches.is_some_and(|switches| switches.rest(enough_bytes, &mut self.counts, out));
        if is_more {
            return true;
        }
        let last = self.last_outside().unwrap_or_default();
        self.functions.write(self.ring_time().max(last), enough_bytes, out)
    }

    fn decode(
        &mut self,
        ring_slices: RingSlices<'_>,
        enough_bytes: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        let (mut end, mut before) = (0, None);
        for seen in ring_slices.records_from(0) {
            if end >= enough_bytes {
                break;
            }
            end = seen.at + seen.size;
            let id = ring_slices.word(seen.at + HEADER_BYTES);
            let id = id.filter(|_| seen.kind == record_type::SAMPLE);
            if let Some(switches) = &mut self.switches {
                switches.before(&ring_slices, seen, &mut self.counts, out);
            }
            let record = ring_slices.bytes_of(seen, &mut scratch);
            let is_wakeup_event =
                |id| self.switches.as_ref().is_some_and(|it| it.is_wakeup_event(id));
            match id {
                Some(id) if is_wakeup_event(id) => {}
                Some(id) if id == self.bpf_output => {
                    self.output_record(&record[HEADER_BYTES..], out)
                }
                Some(id) if self.traces.has(id) => self.trace_sample(id, record, out),
                _ if seen.kind == record_type::LOST => {
                    self.traces.forget();
                    // The kernel reports losses by the event that writes next.
                    let known = |id| if is_wakeup_event(id) { self.bpf_output } else { id };
                    push_lost(record, self.time(&ring_slices, before), known, out);
                }
                _ => out.extend_from_slice(record),
            }
            before = Some(seen);
        }
        self.ring_time = self.time(&ring_slices, before);
        self.scratch = scratch;
        // An unreadable record is counted by the next step.
        if end == 0 {
            end = ring_slices.size_bytes();
            ring_slices.0.iter().for_each(|piece| out.extend_from_slice(piece));
        }
        end
    }

    fn ring_time(&self) -> TimestampNs {
        TimestampNs(self.ring_time)
    }

    fn last_outside(&self) -> Option<TimestampNs> {
        self.switches.as_ref().map(|switches| TimestampNs(switches.last_switch()))
    }

    fn counts(&self) -> DecodeCounts {
        self.counts
    }
}

/// The stack of a place with this hash.
fn known_in(dictionary: &[[Option<Box<Known>>; 2]], hash: StackHash) -> Option<&Known> {
    let place = dictionary.get(hash.0 as usize % PLACES)?;
    place.iter().flatten().map(Box::as_ref).find(|known| known.hash == hash.0)
}

/// A LOST record of the ring says since when records may be missing: other records stand between that and the
/// ring's record before, and the programs' own are not in the recording. Its ids become `known` ones: wake-up
/// events are not in the recording, and perf refuses a file with a record of an unknown event.
fn push_lost(record: &[u8], since: u64, known: impl Fn(u64) -> u64, out: &mut Vec<u8>) {
    let (fields, trailer) = record.split_at(record.len().min(HEADER_BYTES + LOST_FIELDS_BYTES));
    let misc = fields.get(4..6).map_or(0, |misc| u16::from_le_bytes([misc[0], misc[1]]));
    let mut body = [&fields[HEADER_BYTES..], &since.to_le_bytes(), trailer].concat();
    let replace = |id: Option<&mut [u8; 8]>| {
        if let Some(id) = id {
            *id = known(u64::from_le_bytes(*id)).to_le_bytes();
        }
    };
    replace(body.first_chunk_mut());
    // The identifier, behind the other fields of the trailer.
    if !trailer.is_empty() {
        replace(body.last_chunk_mut());
    }
    push_record(out, record_type::LOST, misc, &body);
}

#[cfg(test)]
pub(super) mod tests;
