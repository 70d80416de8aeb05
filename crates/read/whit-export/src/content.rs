//! The view of a recording that all writers share.

use crate::request::Requests;
use rustc_hash::FxHashMap;
use std::ops::Range;
use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_perfdata::feature::ClockData;
use whit_perfdata::reader::Recording;
use whit_profile::model::{
    CgroupId, EventId, Frame, FrameId, FunctionId, NodeId, Profile, SampleRow, ThreadId, ThreadInfo,
};
use whit_profile::switches::{Activity, NodeClasses, Switches, TimelineSpan, WaitClass};
use whit_types::{CpuId, Pid, TimestampNs};

/// `PERF_COUNT_SW_CPU_CLOCK` and `PERF_COUNT_SW_TASK_CLOCK`: their periods are nanoseconds.
const CLOCKS: [u64; 2] = [0, 1];

/// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
const CONTEXT_SWITCHES: u64 = 3;

/// A loaded profile, with those parts of its recording that formats ask for.
pub struct Content<'a> {
    /// Rows, names, losses.
    pub profile: &'a Profile,
    /// Where the recording has them and they were loaded.
    pub switches: Option<&'a Switches>,
    pub(crate) requests: Option<&'a Requests>,
    /// Threads that write; the files do not depend on it.
    pub(crate) threads: usize,
    /// Classes of the waits of the time line.
    classes: NodeClasses,
    attrs: Vec<&'a Attr>,
    clock: Option<ClockData>,
    process_names: FxHashMap<Pid, &'a str>,
}

/// A sample, or several of one row in a stretch of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) time: TimestampNs,
    pub(crate) cpu: Option<CpuId>,
    pub(crate) row: &'a SampleRow,
    pub(crate) samples: u64,
    pub(crate) period: u64,
}

/// The unit in which an event counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventUnit {
    Nanoseconds,
    Count,
}

impl EventUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            EventUnit::Nanoseconds => "nanoseconds",
            EventUnit::Count => "count",
        }
    }
}

/// Names of processes, made once: a recording may have many of them, each with many threads.
fn process_names(profile: &Profile) -> FxHashMap<Pid, &str> {
    let mut names = FxHashMap::default();
    let is_first = |thread: &&ThreadInfo| thread.tid.0 == thread.pid.0;
    let (first, others): (Vec<_>, Vec<_>) = profile.threads.iter().partition(is_first);
    for thread in first.into_iter().chain(others) {
        names.entry(thread.pid).or_insert(profile.comms[thread.comm.index()].exact());
    }
    names
}

impl<'a> Content<'a> {
    /// A loaded profile with the recording that it comes from.
    pub fn new(
        recording: &'a Recording,
        profile: &'a Profile,
        switches: Option<&'a Switches>,
    ) -> Content<'a> {
        let attrs = recording.events.iter().map(|event| &event.attr).collect();
        let spans = switches.iter().flat_map(|switches| &switches.timeline.spans);
        let waits = spans.filter(|span| span.activity == Activity::Waiting);
        let classes = NodeClasses::of(profile, waits.map(|span| span.node));
        let (clock, process_names) = (recording.features.clock_data(), process_names(profile));
        let (requests, threads) = (None, 1);
        Content { profile, switches, requests, threads, classes, attrs, clock, process_names }
    }

    /// The same with requests, in formats that show time.
    pub fn with_requests(self, requests: &'a Requests) -> Content<'a> {
        Content { requests: Some(requests), ..self }
    }

    /// The same, written by so many threads.
    pub fn on_threads(self, threads: usize) -> Content<'a> {
        Content { threads, ..self }
    }

    /// The time lines of threads, one behind the other.
    pub(crate) fn spans(&self) -> &'a [TimelineSpan] {
        self.switches.map_or(&[], |switches| &switches.timeline.spans)
    }

    /// The class of a stretch of time that is one voluntary wait.
    pub(crate) fn wait_class(&self, span: &TimelineSpan) -> Option<WaitClass> {
        (span.activity == Activity::Waiting).then(|| self.classes.of_span(span))
    }

    /// The cgroup of samples, where the recording tells it.
    pub(crate) fn cgroup(&self, row: &SampleRow) -> Option<CgroupId> {
        self.profile.facets_of(row).and_then(|facets| facets.cgroup)
    }

    /// Threads with samples whose cgroup the recording tells.
    pub(crate) fn threads_with_cgroups(&self) -> impl Iterator<Item = ThreadId> {
        let rows = self.profile.rows.iter().filter(|row| self.cgroup(row).is_some());
        rows.map(|row| row.thread)
    }

    pub(crate) fn cgroup_path(&self, cgroup: CgroupId) -> &'a str {
        self.profile.cgroups[cgroup.index()].path.exact()
    }

    /// Events that have samples, the one with the largest number of samples first among its equals in the
    /// recording's order.
    pub(crate) fn sampled_events(&self) -> Vec<EventId> {
        let events = self.profile.events.iter().enumerate();
        events.filter(|(_, event)| event.samples > 0).map(|(at, _)| EventId(at as u32)).collect()
    }

    /// The event that a format with room for one shows: the one over which CPU time is distributed, else the one with
    /// the most samples.
    pub(crate) fn main_event(&self) -> Option<EventId> {
        let chosen = self.switches.and_then(|switches| switches.sources.samples);
        let samples = |event: &EventId| self.profile.events[event.index()].samples;
        let chosen = chosen.filter(|event| samples(event) > 0);
        let most = || self.sampled_events().into_iter().rev().max_by_key(samples);
        chosen.or_else(most)
    }

    pub(crate) fn event_name(&self, event: EventId) -> &'a str {
        self.profile.events[event.index()].name.exact()
    }

    pub(crate) fn unit(&self, event: EventId) -> EventUnit {
        match self.attrs.get(event.index()) {
            Some(attr) if attr.pmu_type == pmu_type::SOFTWARE && CLOCKS.contains(&attr.config) => {
                EventUnit::Nanoseconds
            }
            _ => EventUnit::Count,
        }
    }

    /// True where each sample is a context switch that a wait of the time line begins with.
    pub(crate) fn is_shown_by_waits(&self, event: EventId) -> bool {
        let is_whole = self.switches.is_some_and(|s| s.timeline.grain_ns == 0);
        let is_switch = self.attrs.get(event.index()).is_some_and(|attr| {
            attr.pmu_type == pmu_type::SOFTWARE && attr.config == CONTEXT_SWITCHES
        });
        is_whole && (is_switch || self.event_name(event).starts_with("sched:sched_switch"))
    }

    /// The distance between two samples in the unit of the event: as it was asked for, or the mean.
    pub(crate) fn period(&self, event: EventId) -> u64 {
        let info = &self.profile.events[event.index()];
        let fixed = self.attrs.get(event.index()).filter(|attr| !attr.has(AttrFlags::FREQ));
        let mean = || info.period.checked_div(info.samples).unwrap_or(0);
        fixed.map_or_else(mean, |attr| attr.sample_period_or_freq)
    }

    /// The time between two samples of a thread that runs, where the event tells it.
    pub(crate) fn interval_ns(&self, event: EventId) -> Option<u64> {
        if self.unit(event) == EventUnit::Nanoseconds {
            return Some(self.period(event)).filter(|ns| *ns > 0);
        }
        let attr = self.attrs.get(event.index()).filter(|attr| attr.has(AttrFlags::FREQ))?;
        1_000_000_000u64.checked_div(attr.sample_period_or_freq)
    }

    /// Samples of all events in order of time.
    pub(crate) fn moments(&self) -> Vec<Moment<'a>> {
        let rows = &self.profile.rows;
        let Some(singles) = &self.profile.singles else { return Vec::new() };
        if singles.slice_ns.is_none() {
            let moment = |single: &whit_profile::model::SingleSample| Moment {
                time: single.time,
                cpu: single.cpu,
                row: &rows[single.row as usize],
                samples: 1,
                period: single.period,
            };
            return singles.samples.iter().map(moment).collect();
        }
        let moment = |row: &'a SampleRow| Moment {
            time: self
                .profile
                .facets_of(row)
                .and_then(|facets| facets.time)
                .unwrap_or(TimestampNs(0)),
            cpu: None,
            row,
            samples: row.samples,
            period: row.period,
        };
        let mut moments: Vec<_> = rows.iter().map(moment).collect();
        moments.sort_by_key(|moment| moment.time);
        moments
    }

    /// First and last moment of samples and, where they were loaded, of switches.
    pub(crate) fn span(&self) -> (TimestampNs, TimestampNs) {
        let info = &self.profile.recording;
        let samples = info.first_sample.zip(info.last_sample);
        let switches = self.switches.and_then(|switches| switches.span);
        let both = samples.into_iter().chain(switches);
        both.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
    }

    /// Nanoseconds since the epoch at a moment of the recording's clock, and whether the recording states it. Without
    /// a statement the recording's end is taken for the time at which its file was written.
    pub(crate) fn unix_ns(&self, time: TimestampNs) -> (u64, bool) {
        if let Some(clock) = self.clock {
            let wall = clock.wall_clock_ns.wrapping_add(time.0.wrapping_sub(clock.clock_ns.0));
            return (wall, true);
        }
        let written_ns =
            self.profile.recording.captured_on_s.unwrap_or(0).saturating_mul(1_000_000_000);
        let before_end = self.span().1.since(time);
        (written_ns.saturating_sub(before_end), false)
    }

    /// Name of a thread: its last command name.
    pub(crate) fn thread_name(&self, thread: &ThreadInfo) -> &'a str {
        self.profile.comms[thread.comm.index()].exact()
    }

    /// Name of a process: that of its first thread, else of any.
    pub(crate) fn process_name(&self, pid: Pid) -> &'a str {
        self.process_names.get(&pid).copied().unwrap_or("")
    }

    pub(crate) fn frame(&self, frame: FrameId) -> &'a Frame {
        &self.profile.frames[frame.index()]
    }

    pub(crate) fn function_name(&self, function: FunctionId) -> &'a str {
        self.profile.functions[function.index()].name.exact()
    }

    /// Frames from the innermost to the outermost.
    pub(crate) fn chain(&self, node: NodeId) -> impl Iterator<Item = FrameId> + 'a {
        let nodes = &self.profile.nodes;
        let mut at = node;
        std::iter::from_fn(move || {
            let found = nodes.get(at.index()).filter(|_| at != NodeId::NONE)?;
            at = found.parent;
            Some(found.frame)
        })
    }

    /// Code locations from the innermost to the outermost, each by its physical frame.
    pub(crate) fn locations(&self, node: NodeId) -> impl Iterator<Item = FrameId> + 'a {
        let frames = &self.profile.frames;
        self.chain(node).filter(|frame| !frames[frame.index()].inlined)
    }

    /// The frames of each location, the physical one first, then those inlined into it from the outermost on.
    pub(crate) fn frames_by_location(&self) -> impl Iterator<Item = Range<usize>> + 'a {
        let frames = &self.profile.frames;
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at;
            frames.get(start)?;
            let inlined = frames[start + 1..].iter().take_while(|frame| frame.inlined).count();
            at = start + 1 + inlined;
            Some(start..at)
        })
    }

    /// A source file of each function, by the function's index.
    pub(crate) fn files_of_functions(&self) -> Vec<&'a str> {
        let mut files = vec![""; self.profile.functions.len()];
        for frame in &self.profile.frames {
            let file = &mut files[frame.function.index()];
            if let (true, Some((id, _))) = (file.is_empty(), frame.source) {
                *file = self.profile.files[id.index()].exact();
            }
        }
        files
    }
}
