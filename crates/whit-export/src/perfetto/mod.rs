//! Perfetto: samples with call stacks, processes, the scheduling of CPUs, losses.
//!
//! Each packet is written as soon as it is made. Names and call stacks are interned in front of the samples that use
//! them, since their sequence is read from the beginning.

mod cgroups;
mod sched;
mod stacks;
mod states;

use crate::content::{Content, EventUnit, Moment};
use crate::proto::perfetto::{
    CounterDescriptor, DebugAnnotation, ExecutionContext, InternedData, NEEDS_STATE, PerfSample,
    PerfSampleDefaults, Process, ProcessTree, STATE_CLEARED, StackSample, TaskContext, Thread,
    ThreadDescriptor, Timebase, Trace, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent,
};
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::io::{self, Write};
use whit_profile::model::{EventId, ThreadId};
use whit_types::{OutsideText, TimestampNs};

/// Sequence of everything but samples.
const GENERAL_SEQUENCE: u32 = 1;
/// Sequences of samples, one for each event, begin here.
const FIRST_SAMPLE_SEQUENCE: u32 = 16;

/// Tracks of their own.
const NOTES_TRACK: u64 = 0x7768_6974_0001;
const LOSSES_TRACK: u64 = 0x7768_6974_0002;
/// The track of each thread, that of its waits and that of its cgroups begin here.
const FIRST_THREAD_TRACK: u64 = 0x7768_6974_1000_0000;
const FIRST_WAIT_TRACK: u64 = 0x7768_6974_2000_0000;
const FIRST_CGROUP_TRACK: u64 = 0x7768_6974_3000_0000;

const CATEGORY: &str = "whit";

/// `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;

/// `UNIT_NANOSECONDS`, `UNIT_COUNT`.
const UNIT_NANOSECONDS: i32 = 1;
const UNIT_COUNT: i32 = 9;

/// The message that samples are written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SampleForm {
    /// `StackSample`, since version 58.
    Stack,
    /// `PerfSample`, which earlier versions read.
    Perf,
}

/// Writes the trace.
pub(crate) fn write(
    content: &Content<'_>,
    form: SampleForm,
    out: &mut dyn Write,
) -> io::Result<()> {
    let described = FxHashSet::default();
    let mut writer = Writer { content, out, buffer: Vec::new(), described };
    writer.processes()?;
    writer.notes()?;
    writer.losses()?;
    let has_cpus = sched::is_told(content);
    if has_cpus {
        sched::write(&mut writer)?;
    }
    states::write(&mut writer, has_cpus)?;
    let moments = content.moments();
    cgroups::write(&mut writer, &moments)?;
    for (number, event) in content.sampled_events().into_iter().enumerate() {
        let sequence = FIRST_SAMPLE_SEQUENCE + number as u32;
        let of_event = moments.iter().filter(|moment| moment.row.event == event);
        writer.samples(event, sequence, form, of_event)?;
    }
    Ok(())
}

struct Writer<'c, 'a, 'o> {
    content: &'c Content<'a>,
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    /// Threads whose track is described.
    described: FxHashSet<ThreadId>,
}

impl<'a> Writer<'_, 'a, '_> {
    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        self.buffer.clear();
        Trace { packet: vec![packet] }.encode(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    fn general(&mut self, time: TimestampNs, packet: TracePacket) -> io::Result<()> {
        let trusted_packet_sequence_id = Some(GENERAL_SEQUENCE);
        self.put(TracePacket { timestamp: Some(time.0), trusted_packet_sequence_id, ..packet })
    }

    fn processes(&mut self) -> io::Result<()> {
        let content = self.content;
        let threads = &content.profile.threads;
        let pids: BTreeSet<_> = threads.iter().map(|thread| thread.pid).collect();
        let process = |pid: whit_types::Pid| Process {
            pid: Some(pid.0),
            cmdline: vec![content.process_name(pid).to_owned()],
            cmdline_is_comm: Some(true),
        };
        let thread = |thread: &whit_profile::model::ThreadInfo| Thread {
            tid: Some(thread.tid.0),
            tgid: Some(thread.pid.0),
            name: Some(content.thread_name(thread).to_owned()),
        };
        let tree = ProcessTree {
            // Number 0 is the idle task of each CPU, which Perfetto knows.
            processes: pids.into_iter().filter(|pid| pid.0 > 0).map(process).collect(),
            threads: threads.iter().filter(|thread| thread.tid.0 > 0).map(thread).collect(),
        };
        let first = content.span().0;
        self.general(first, TracePacket { process_tree: Some(tree), ..TracePacket::default() })
    }

    fn track(&mut self, uuid: u64, name: &str) -> io::Result<()> {
        self.describe_track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            ..TrackDescriptor::default()
        })
    }

    /// The track of a thread, below which its others stand.
    fn thread_track(&mut self, thread: ThreadId) -> io::Result<u64> {
        let uuid = FIRST_THREAD_TRACK + u64::from(thread.0);
        if !self.described.insert(thread) {
            return Ok(uuid);
        }
        let info = &self.content.profile.threads[thread.index()];
        let name = self.content.thread_name(info).to_owned();
        self.describe_track(TrackDescriptor {
            uuid: Some(uuid),
            thread: Some(ThreadDescriptor {
                pid: Some(info.pid.0),
                tid: Some(info.tid.0),
                thread_name: Some(name),
            }),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    /// A track below that of a thread.
    fn child_track(&mut self, first: u64, thread: ThreadId, name: &str) -> io::Result<u64> {
        let (parent_uuid, uuid) = (self.thread_track(thread)?, first + u64::from(thread.0));
        self.describe_track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: Some(parent_uuid),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    fn describe_track(&mut self, descriptor: TrackDescriptor) -> io::Result<()> {
        let packet = TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() };
        self.general(self.content.span().0, packet)
    }

    /// A slice of a track.
    fn slice(
        &mut self,
        track: u64,
        name: &str,
        times: (TimestampNs, TimestampNs),
    ) -> io::Result<()> {
        self.annotated_slice(track, name, times, Vec::new())
    }

    fn annotated_slice(
        &mut self,
        track: u64,
        name: &str,
        (from, to): (TimestampNs, TimestampNs),
        debug_annotations: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let begin = TrackEvent {
            debug_annotations,
            kind: Some(SLICE_BEGIN),
            track_uuid: Some(track),
            categories: vec![CATEGORY.to_owned()],
            name: Some(name.to_owned()),
        };
        let end = TrackEvent {
            kind: Some(SLICE_END),
            track_uuid: Some(track),
            categories: vec![CATEGORY.to_owned()],
            ..TrackEvent::default()
        };
        self.track_event(from, begin)?;
        self.track_event(to, end)
    }

    fn track_event(&mut self, time: TimestampNs, event: TrackEvent) -> io::Result<()> {
        self.general(time, TracePacket { track_event: Some(event), ..TracePacket::default() })
    }

    /// Statements about the recording, as one moment at its beginning.
    fn notes(&mut self) -> io::Result<()> {
        self.track(NOTES_TRACK, "whit: the recording")?;
        let annotation = |(key, text): (&str, String)| DebugAnnotation {
            name: Some(key.to_owned()),
            string_value: Some(text),
            ..DebugAnnotation::default()
        };
        let mut notes: Vec<_> =
            self.content.notes().into_iter().map(|note| (note.key, note.text)).collect();
        let grain_ns = self.content.switches.map_or(0, |switches| switches.timeline.grain_ns);
        if grain_ns > 0 {
            let text = format!(
                "Runs and waits shorter than {:.1} us are missing on the tracks of CPUs and threads: there are too many",
                grain_ns as f64 / 1e3
            );
            notes.push(("whit.joined_switches", text));
        }
        let event = TrackEvent {
            debug_annotations: notes.into_iter().map(annotation).collect(),
            kind: Some(INSTANT),
            track_uuid: Some(NOTES_TRACK),
            categories: vec![CATEGORY.to_owned()],
            name: Some("Recording, losses and cost".to_owned()),
        };
        self.track_event(self.content.span().0, event)
    }

    /// When records were lost.
    fn losses(&mut self) -> io::Result<()> {
        let (first, last) = self.content.span();
        let windows = self.content.profile.singles.iter().flat_map(|singles| &singles.loss_windows);
        let windows: Vec<_> = windows.copied().collect();
        if windows.is_empty() {
            return Ok(());
        }
        self.track(LOSSES_TRACK, "whit: lost records")?;
        for window in windows {
            let times = (window.from.clamp(first, last), window.to.clamp(first, last));
            self.slice(LOSSES_TRACK, "Lost records", times)?;
        }
        Ok(())
    }

    /// The samples of one event, on a sequence of their own: `PerfSample` has one event for each.
    fn samples<'m>(
        &mut self,
        event: EventId,
        sequence: u32,
        form: SampleForm,
        moments: impl Iterator<Item = &'m Moment<'a>>,
    ) -> io::Result<()>
    where
        'a: 'm,
    {
        let content = self.content;
        let unit = match content.unit(event) {
            EventUnit::Nanoseconds => UNIT_NANOSECONDS,
            EventUnit::Count => UNIT_COUNT,
        };
        let name = content.event_name(event);
        let descriptor =
            CounterDescriptor { iid: Some(1), name: Some(name.to_owned()), unit: Some(unit) };
        let timebase =
            Timebase { period: Some(content.period(event)), name: Some(name.to_owned()) };
        let defaults = PerfSampleDefaults { timebase: Some(timebase) };
        self.put(TracePacket {
            timestamp: Some(content.span().0.0),
            trusted_packet_sequence_id: Some(sequence),
            sequence_flags: Some(STATE_CLEARED),
            interned_data: Some(InternedData {
                counter_descriptors: vec![descriptor],
                ..InternedData::default()
            }),
            trace_packet_defaults: (form == SampleForm::Perf)
                .then_some(TracePacketDefaults { perf_sample_defaults: Some(defaults) }),
            ..TracePacket::default()
        })?;
        let mut stacks = stacks::Stacks::new(content);
        let mut counts: FxHashMap<Option<u32>, u64> = FxHashMap::default();
        for moment in moments {
            let (callstack_iid, interned_data) = stacks.intern(moment.row.node);
            let mut packet = TracePacket {
                timestamp: Some(moment.time.0),
                trusted_packet_sequence_id: Some(sequence),
                sequence_flags: Some(NEEDS_STATE),
                interned_data,
                ..TracePacket::default()
            };
            let cpu = moment.cpu.map(|cpu| cpu.0);
            let count = counts.entry(cpu).or_default();
            *count = count.saturating_add(moment.period);
            match form {
                SampleForm::Stack => {
                    packet.stack_sample = Some(self.stack_sample(moment, callstack_iid))
                }
                SampleForm::Perf => {
                    packet.perf_sample = Some(self.perf_sample(moment, callstack_iid, *count));
                }
            }
            self.put(packet)?;
        }
        Ok(())
    }

    fn is_kernel(&self, moment: &Moment<'_>) -> bool {
        let frame = self.content.chain(moment.row.node).next();
        frame.is_some_and(|frame| self.content.frame(frame).kernel)
    }

    fn stack_sample(&self, moment: &Moment<'_>, callstack_iid: Option<u64>) -> StackSample {
        let thread = &self.content.profile.threads[moment.row.thread.index()];
        let (pid, tid) = (Some(thread.pid.0.max(0) as u32), Some(thread.tid.0.max(0) as u32));
        let mode = if self.is_kernel(moment) { 2 } else { 1 };
        StackSample {
            task_context: Some(TaskContext { pid, tid }),
            execution_context: Some(ExecutionContext {
                cpu: moment.cpu.map(|cpu| cpu.0),
                mode: Some(mode),
            }),
            callstack_iid,
            primary_descriptor_iid: Some(1),
            primary_weight: Some(moment.period),
        }
    }

    fn perf_sample(
        &self,
        moment: &Moment<'_>,
        callstack_iid: Option<u64>,
        count: u64,
    ) -> PerfSample {
        let thread = &self.content.profile.threads[moment.row.thread.index()];
        PerfSample {
            cpu: Some(moment.cpu.map_or(0, |cpu| cpu.0)),
            pid: Some(thread.pid.0.max(0) as u32),
            tid: Some(thread.tid.0.max(0) as u32),
            callstack_iid,
            cpu_mode: Some(if self.is_kernel(moment) { 1 } else { 2 }),
            timebase_count: Some(count),
        }
    }
}

/// A name as Perfetto's tables hold it.
fn name_bytes(text: OutsideText<&str>) -> Vec<u8> {
    text.exact().as_bytes().to_vec()
}
