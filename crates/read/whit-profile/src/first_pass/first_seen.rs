//! The first record of each CPU, from the first pass: it tells who ran there before.
//!
//! A thread that leaves a CPU, or is sampled on it, has been there since recording began, because no
//! record says that it came. Before a switch-in, nobody of the recorded threads ran there.

use rustc_hash::{FxHashMap, FxHashSet};
use whit_perfdata::blocked;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::RecordedSpan;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// CPUs and threads that are told apart; a corrupt recording may claim more.
const MAX_SLOTS: usize = 1 << 16;

/// Processes whose first cgroup is kept.
const MAX_PROCESSES: usize = 1 << 20;

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Task {
    /// -1 where no record told.
    pub(crate) pid: Pid,
    /// -1 for a thread that is no more.
    pub(crate) tid: Tid,
}

impl Task {
    pub(crate) fn is_idle(self) -> bool {
        self.tid.0 == 0
    }
}

/// A place for one running thread: a CPU. Where records do not name their CPU, each thread has one of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    Cpu(CpuId),
    Thread(Tid),
}

impl Slot {
    pub(crate) fn of(cpu: Option<CpuId>, tid: Tid) -> Slot {
        cpu.filter(|cpu| cpu.0 != u32::MAX).map_or(Slot::Thread(tid), Slot::Cpu)
    }
}

/// When switches were recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Vec<RecordedSpan>);

impl Spans {
    /// A recorder that states none has recorded throughout.
    pub(crate) fn of(recording: &Recording) -> Spans {
        let whole = || vec![RecordedSpan { from: TimestampNs(0), to: TimestampNs(u64::MAX) }];
        let mut spans = recording.features.recorded_spans().unwrap_or_else(whole);
        spans.retain(|span| span.from <= span.to);
        spans.sort_unstable_by_key(|span| span.from);
        Spans(spans)
    }

    /// The span that a moment lies in.
    pub(crate) fn at(&self, time: TimestampNs) -> Option<usize> {
        let before = self.0.partition_point(|span| span.from <= time).checked_sub(1)?;
        (time <= self.0[before].to).then_some(before)
    }

    pub(crate) fn get(&self, index: usize) -> Option<RecordedSpan> {
        self.0.get(index).copied()
    }
}

/// The first record of a CPU in a span.
#[derive(Clone, Copy, Debug)]
struct First {
    time: TimestampNs,
    /// The thread there until then.
    occupant: Option<Task>,
    /// The slot is that of a thread which was made then.
    is_new: bool,
}

/// First records by span and slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstSeen {
    spans: Spans,
    /// By event, whether its samples are of threads that do not run.
    blocked: Vec<bool>,
    by_slot: FxHashMap<(usize, Slot), First>,
    cgroups: Option<FxHashMap<Pid, (TimestampNs, u64)>>,
    /// Spans in which CPUs were left off, because there are too many.
    incomplete: FxHashSet<usize>,
    saw_idle: bool,
}

impl FirstSeen {
    pub(crate) fn new(recording: &Recording, wants_cgroups: bool) -> FirstSeen {
        FirstSeen {
            spans: Spans::of(recording),
            blocked: recording.events.iter().map(blocked::is_blocked).collect(),
            cgroups: wants_cgroups.then(FxHashMap::default),
            ..FirstSeen::default()
        }
    }

    /// Notes a record. Records come in any order.
    #[inline]
    pub(crate) fn see(&mut self, events: &EventTable, record: RawRecord<'_>) {
        match record.header.kind {
            record_type::SAMPLE => self.sample(events, record),
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => self.switch(events, record),
            record_type::FORK => self.fork(events, record),
            _ => {}
        }
    }

    fn sample(&mut self, events: &EventTable, record: RawRecord<'_>) {
        let Some(event) = events.event_of_sample(record.body) else { return };
        if self.blocked.get(event) != Some(&false) {
            return;
        }
        let Some(sample) = events.layout(event).and_then(|it| it.parse(record.body)) else {
            return;
        };
        let (Some((pid, tid)), Some(time)) = (sample.pid_tid, sample.time) else { return };
        let task = Task { pid, tid };
        let occupant = Some(task);
        self.note(Slot::of(sample.cpu, tid), First { time, occupant, is_new: false });
        if let (Some(cgroups), Some(cgroup)) = (&mut self.cgroups, sample.cgroup)
            && (cgroups.len() < MAX_PROCESSES || cgroups.contains_key(&pid))
        {
            let first = cgroups.entry(pid).or_insert((time, cgroup));
            *first = (*first).min((time, cgroup));
        }
    }

    fn switch(&mut self, events: &EventTable, record: RawRecord<'_>) {
        let Some(SideBand::Switch { out, .. }) = SideBand::parse(record) else { return };
        let id = events.parse_id_trailer(record);
        let (Some((pid, tid)), Some(time)) = (id.pid_tid, id.time) else { return };
        let occupant = out.then_some(Task { pid, tid });
        self.note(Slot::of(id.cpu, tid), First { time, occupant, is_new: false });
    }

    fn fork(&mut self, events: &EventTable, record: RawRecord<'_>) {
        let Some(SideBand::Fork(task)) = SideBand::parse(record) else { return };
        let id = events.parse_id_trailer(record);
        let (slot, occupant) = (Slot::of(id.cpu, task.tid), None);
        if let (Slot::Thread(_), Some(time)) = (slot, id.time) {
            self.note(slot, First { time, occupant, is_new: true });
        }
    }

    fn note(&mut self, slot: Slot, first: First) {
        let First { time, occupant, .. } = first;
        self.saw_idle |= occupant.is_some_and(|task| task.tid == Tid(0));
        let Some(span) = self.spans.at(time) else { return };
        let key = (span, slot);
        if let Some(known) = self.by_slot.get_mut(&key) {
            if time < known.time {
                *known = first;
            }
        } else if self.by_slot.len() < MAX_SLOTS {
            self.by_slot.insert(key, first);
        } else {
            self.incomplete.insert(span);
        }
    }

    /// Takes over the first records of another stream.
    pub(crate) fn add(&mut self, other: FirstSeen) {
        for ((span, slot), first) in other.by_slot {
            let known = self.by_slot.entry((span, slot)).or_insert(first);
            if first.time < known.time {
                *known = first;
            }
        }
        if let (Some(cgroups), Some(more)) = (&mut self.cgroups, other.cgroups) {
            for (pid, first) in more {
                let known = cgroups.entry(pid).or_insert(first);
                *known = first.min(*known);
            }
        }
        self.incomplete.extend(other.incomplete);
        self.saw_idle |= other.saw_idle;
    }

    /// The threads on CPUs at the beginning of a span. `None` where there are too many CPUs.
    pub(crate) fn of_span(&self, span: usize) -> Option<Vec<(Slot, Option<Task>)>> {
        let of_span = self.by_slot.iter().filter(|((of, _), first)| *of == span && !first.is_new);
        let known = || of_span.map(|((_, slot), first)| (*slot, first.occupant)).collect();
        (!self.incomplete.contains(&span)).then(known)
    }

    /// The earliest record of a span.
    pub(crate) fn begin(&self, span: usize) -> Option<TimestampNs> {
        let of_span = self.by_slot.iter().filter(|((of, _), _)| *of == span);
        of_span.map(|(_, first)| first.time).min()
    }

    /// Cgroups of processes at their first samples.
    pub(crate) fn cgroups(&self) -> impl Iterator<Item = (Pid, u64)> + '_ {
        self.cgroups.iter().flatten().map(|(pid, (_, cgroup))| (*pid, *cgroup))
    }

    /// Whether any record names the idle task: whole CPUs were recorded.
    pub(crate) fn saw_idle(&self) -> bool {
        self.saw_idle
    }

    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }
}
