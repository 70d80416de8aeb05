//! Perfetto: samples with call stacks, processes, the scheduling of CPUs, losses.
//!
//! Each packet is written as soon as it is made. Names and call stacks are interned in front of the samples that use
//! them, since their sequence is read from the beginning. Several threads write parts of the trace: the events of CPUs,
//! the states of threads, the samples of events.

mod cgroups;
mod fields;
mod requests;
mod samples;
mod sched;
mod stacks;
mod states;

use crate::ExportError;
use crate::content::{Content, Moment};
use crate::parts::write_parts;
use crate::proto::perfetto::{
    DebugAnnotation, Process, ProcessTree, Thread, ThreadDescriptor, TracePacket, TrackDescriptor,
};
use fields::Fields;
use sched::CpuEvents;
use std::collections::BTreeSet;
use std::io::{self, Write};
use whit_profile::model::{EventId, ThreadId};
use whit_profile::switches::TimelineSpan;
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
const FIRST_REQUEST_TRACK: u64 = 0x7768_6974_4000_0000;

const CATEGORY: &str = "whit";

/// The tag of packets in a trace. Encoded packets behind one another are one trace.
const PACKET: u32 = 1;

/// `TYPE_SLICE_BEGIN`, `TYPE_SLICE_END`, `TYPE_INSTANT`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;

/// The message that samples are written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SampleForm {
    /// `StackSample`, since version 58.
    Stack,
    /// `PerfSample`, which earlier versions read.
    Perf,
}

/// A part of the trace.
enum Part<'p> {
    /// Processes, threads, notes and losses.
    Head,
    Cpu(CpuEvents),
    /// The states of some threads.
    States(&'p [TimelineSpan]),
    Cgroups,
    Requests,
    Samples {
        event: EventId,
        sequence: u32,
    },
}

/// Writes the trace.
pub(crate) fn write(
    content: &Content<'_>,
    form: SampleForm,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let has_cpus = sched::has_cpus(content);
    let moments = content.moments();
    let cpus = if has_cpus { sched::by_cpu(content) } else { Vec::new() };
    let sampled = content.sampled_events().into_iter();
    let samples = |(event, sequence)| Part::Samples { event, sequence };
    let parts: Vec<Part<'_>> = std::iter::once(Part::Head)
        .chain(cpus.into_iter().map(Part::Cpu))
        .chain(states::parts(content.spans()).into_iter().map(Part::States))
        .chain([Part::Cgroups, Part::Requests])
        .chain(sampled.zip(FIRST_SAMPLE_SEQUENCE..).map(samples))
        .collect();
    let write = |part: &Part<'_>, out: &mut dyn Write| {
        let writer = Writer { content, out, buffer: Vec::new(), has_cpus };
        Ok(writer.part(part, &moments, form)?)
    };
    write_parts(content.threads, &parts, write, out)
}

struct Writer<'c, 'a, 'o> {
    content: &'c Content<'a>,
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
    /// The tracks of CPUs have the runs.
    has_cpus: bool,
}

impl<'a> Writer<'_, 'a, '_> {
    fn part(mut self, part: &Part<'_>, moments: &[Moment<'a>], form: SampleForm) -> io::Result<()> {
        match part {
            Part::Head => {
                self.processes()?;
                self.notes()?;
                self.losses()
            }
            Part::Cpu(events) => sched::write(&mut self, events),
            Part::States(spans) => states::write(&mut self, spans),
            Part::Cgroups => cgroups::write(&mut self, moments),
            Part::Requests => match self.content.requests {
                Some(requests) => requests::write(&mut self, requests),
                None => Ok(()),
            },
            Part::Samples { event, sequence } => {
                let of_event = moments.iter().filter(|moment| moment.row.event == *event);
                self.samples(*event, *sequence, form, of_event)
            }
        }
    }
}

impl Writer<'_, '_, '_> {
    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        self.buffer.clear();
        Fields::at_end_of(&mut self.buffer).value(PACKET, &packet);
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

    /// The track of a thread, below which its others stand. It is described once.
    fn thread_track(&mut self, thread: ThreadId) -> io::Result<u64> {
        let uuid = track_of(thread);
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
        let (parent_uuid, uuid) = (track_of(thread), first + u64::from(thread.0));
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

    /// A slice of a track, with the parts of its name.
    fn slice(
        &mut self,
        track: u64,
        name: &[&str],
        times: (TimestampNs, TimestampNs),
    ) -> io::Result<()> {
        self.annotated_slice(track, name, times, &[])
    }

    fn annotated_slice(
        &mut self,
        track: u64,
        name: &[&str],
        (from, to): (TimestampNs, TimestampNs),
        annotations: &[DebugAnnotation],
    ) -> io::Result<()> {
        self.track_event(from, (SLICE_BEGIN, track), Some(name), annotations)?;
        self.track_event(to, (SLICE_END, track), None, &[])
    }

    /// A packet with a `TrackEvent`.
    fn track_event(
        &mut self,
        time: TimestampNs,
        (kind, track): (i32, u64),
        name: Option<&[&str]>,
        annotations: &[DebugAnnotation],
    ) -> io::Result<()> {
        self.buffer.clear();
        Fields::at_end_of(&mut self.buffer).message(PACKET, |packet| {
            general_fields(packet, time);
            packet.message(11, |event| {
                annotations.iter().for_each(|annotation| event.value(4, annotation));
                event_fields(event, (kind, track), name);
            });
        });
        self.out.write_all(&self.buffer)
    }

    /// A slice whose packets are made but for their times.
    fn formed_slice(
        &mut self,
        form: &SliceForm,
        (from, to): (TimestampNs, TimestampNs),
    ) -> io::Result<()> {
        self.buffer.clear();
        for (time, event) in [(from, &form.begin), (to, &form.end)] {
            Fields::at_end_of(&mut self.buffer).message(PACKET, |packet| {
                general_fields(packet, time);
                packet.encoded(11, event);
            });
        }
        self.out.write_all(&self.buffer)
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
        let annotations: Vec<_> = notes.into_iter().map(annotation).collect();
        let event = (INSTANT, NOTES_TRACK);
        let name = ["Recording, losses and cost"];
        self.track_event(self.content.span().0, event, Some(&name), &annotations)
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
            self.slice(LOSSES_TRACK, &["Lost records"], times)?;
        }
        Ok(())
    }
}

/// The packets of a slice: those of a track mostly differ in their times alone.
struct SliceForm {
    begin: Vec<u8>,
    end: Vec<u8>,
}

impl SliceForm {
    fn new(track: u64, name: &[&str]) -> SliceForm {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        event_fields(&mut Fields::at_end_of(&mut begin), (SLICE_BEGIN, track), Some(name));
        event_fields(&mut Fields::at_end_of(&mut end), (SLICE_END, track), None);
        SliceForm { begin, end }
    }
}

/// The fields of a `TrackEvent` behind its annotations.
fn event_fields(event: &mut Fields<'_>, (kind, track): (i32, u64), name: Option<&[&str]>) {
    event.signed(9, kind);
    event.number(11, track);
    event.text(22, &[CATEGORY]);
    name.iter().for_each(|name| event.text(23, name));
}

fn track_of(thread: ThreadId) -> u64 {
    FIRST_THREAD_TRACK + u64::from(thread.0)
}

/// Time and sequence of a packet that has no sample.
fn general_fields(packet: &mut Fields<'_>, time: TimestampNs) {
    packet.number(8, time.0);
    packet.number(10, u64::from(GENERAL_SEQUENCE));
}

/// A name as Perfetto's tables hold it.
fn name_bytes(text: OutsideText<&str>) -> Vec<u8> {
    text.exact().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::with_time_line;
    use prost::Message;
    use rustc_hash::FxHashSet;

    #[derive(Clone, PartialEq, Message)]
    struct Trace {
        #[prost(message, repeated, tag = "1")]
        packets: Vec<TracePacket>,
    }

    /// Cgroups of threads with and without waits, and switches.
    const RECORDINGS: [(&str, bool); 4] = [
        ("perf-containers", true),
        ("perf-containers", false),
        ("perf-cgroups", false),
        ("perf-switches", false),
    ];

    fn trace((name, adds_waits): (&str, bool), threads: usize, form: SampleForm) -> Vec<u8> {
        with_time_line(name, adds_waits, threads, |content| {
            let mut bytes = Vec::new();
            write(content, form, &mut bytes).expect("write");
            bytes
        })
    }

    #[test]
    fn tracks_are_described_once_and_in_front_of_those_below_them() {
        let mut below = 0;
        for recording in RECORDINGS {
            let name = recording.0;
            let bytes = trace(recording, 2, SampleForm::Stack);
            let mut known = FxHashSet::default();
            for packet in Trace::decode(&bytes[..]).expect("a trace").packets {
                let Some(track) = packet.track_descriptor else { continue };
                let parent = track.parent_uuid;
                assert!(parent.is_none_or(|parent| known.contains(&parent)), "{name}: {track:?}");
                assert!(known.insert(track.uuid.expect("a number")), "{name}: {track:?}");
                below += usize::from(parent.is_some());
            }
        }
        assert!(below > 3, "{below} tracks are below others");
    }

    #[test]
    fn traces_have_the_same_bytes_with_any_number_of_threads() {
        for recording in RECORDINGS {
            for form in [SampleForm::Stack, SampleForm::Perf] {
                let (name, one) = (recording.0, trace(recording, 1, form));
                assert!(
                    [2, 3, 8].iter().all(|threads| trace(recording, *threads, form) == one),
                    "{name}"
                );
            }
        }
    }
}
