//! The facts of a sample that the tables look up, and which samples they take.

use super::TableSource;
use crate::second_pass::sample_sums::ParsedSample;
use crate::time_filter::TimeRange;
use whit_perfdata::reader::Recording;
use whit_types::{Pid, Tid, TimestampNs};

/// Which samples, and how much of them.
#[derive(Clone, Debug, Default)]
pub struct SampleWanted {
    /// Only those in a range of time; blocks without any are not read.
    pub time: Option<TimeRange>,
    /// Only those of events with this name.
    pub event: Option<String>,
    /// Only those of a thread, by its number.
    pub thread: Option<u32>,
    /// Only those of a process, by its number.
    pub process: Option<u32>,
    /// Only those in a cgroup, by its number.
    pub cgroup: Option<u32>,
    /// Make call chains. Without them, `callsite` and `unwind_end` are absent.
    pub stacks: bool,
    /// The facts that are looked up. Others are absent.
    pub facts: WantedFacts,
}

/// Facts of a sample that take a look-up each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WantedFacts {
    /// Number of the thread.
    pub thread: bool,
    /// Number of the process.
    pub process: bool,
    /// Number of the cgroup.
    pub cgroup: bool,
    /// Command name.
    pub comm: bool,
    /// CPU, where samples are added up: a sample that is read alone has it in any case.
    pub cpu: bool,
}

impl SampleWanted {
    /// By event, whether its samples are wanted; `None` where all are.
    pub(super) fn events_of(&self, recording: &Recording) -> Option<Vec<bool>> {
        let name = self.event.as_ref()?;
        Some(recording.events.iter().map(|event| event.name == *name).collect())
    }

    pub(super) fn is_everything(&self) -> bool {
        self.time.is_none()
            && self.event.is_none()
            && self.thread.is_none()
            && self.process.is_none()
            && self.cgroup.is_none()
    }
}

/// Facts of a sample, as far as they are wanted and known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Facts {
    pub(super) thread: Option<u32>,
    pub(super) process: Option<u32>,
    pub(super) cgroup: Option<u32>,
    pub(super) comm: Option<u32>,
}

/// Numbers of the thread that was looked up last: samples of one thread mostly follow each other.
struct LastThread {
    of: (Pid, Tid),
    thread: Option<u32>,
    process: Option<u32>,
    is_wanted: bool,
}

/// Looks facts up.
pub(super) struct FactFinder<'a> {
    source: &'a TableSource,
    wanted: &'a SampleWanted,
    /// By event; absent where all are wanted.
    events: Option<Vec<bool>>,
    last: Option<LastThread>,
}

impl<'a> FactFinder<'a> {
    pub(super) fn new(source: &'a TableSource, wanted: &'a SampleWanted) -> FactFinder<'a> {
        FactFinder { source, wanted, events: wanted.events_of(&source.recording), last: None }
    }

    /// The facts of a sample; `None` where the sample is not wanted.
    pub(super) fn find(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> Option<Facts> {
        if let Some(events) = &self.events
            && !events.get(parsed.event).is_some_and(|is_wanted| *is_wanted)
        {
            return None;
        }
        let (source, wanted) = (self.source, self.wanted);
        let of = (parsed.pid, parsed.tid);
        let last = match &mut self.last {
            Some(last) if last.of == of => last,
            slot => slot.insert(last_thread(source, wanted, of)),
        };
        if !last.is_wanted {
            return None;
        }
        let wants_cgroup = wanted.cgroup.is_some() || wanted.facts.cgroup;
        let cgroup =
            parsed.sample.cgroup.filter(|_| wants_cgroup).and_then(|number| {
                source.dimensions.cgroup(&source.prepared.cgroups, number, time)
            });
        if wanted.cgroup.is_some() && wanted.cgroup != cgroup {
            return None;
        }
        let comm = wanted.facts.comm.then(|| source.prepared.model.comm_at(of.0, of.1, time));
        let (thread, process) = (last.thread, last.process);
        Some(Facts { thread, process, cgroup, comm: comm.flatten().map(|comm| comm.0) })
    }
}

fn last_thread(source: &TableSource, wanted: &SampleWanted, of: (Pid, Tid)) -> LastThread {
    let dimensions = &source.dimensions;
    let wants_thread = wanted.thread.is_some() || wanted.facts.thread;
    let thread = wants_thread.then(|| dimensions.thread(of.0, of.1)).flatten();
    let wants_process = wanted.process.is_some() || wanted.facts.process;
    let process = wants_process.then(|| dimensions.process(of.0)).flatten();
    let is = |wanted: Option<u32>, value: Option<u32>| wanted.is_none() || wanted == value;
    let is_wanted = is(wanted.thread, thread)
        && is(wanted.process, process)
        && source.options.selection.wants(of.0, of.1);
    LastThread { of, thread, process, is_wanted }
}
