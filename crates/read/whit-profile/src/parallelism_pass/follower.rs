//! From records in order of time to the parallelism at each sample.

use super::occupancy::Occupancy;
use crate::first_pass::first_seen::{FirstSeen, Slot, Task};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::loss_window::RingLoss;
use crate::parallelism::{Parallelism, ParallelismInfo, ParallelismOf};
use crate::switches::{Role, Roles, SwitchFields};
use crate::time_filter::TimeRanges;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// The records that switches are taken from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// SWITCH and SWITCH_CPU_WIDE.
    Records,
    /// `sched:sched_switch` of whole CPUs.
    Tracepoint,
}

/// Results of the first pass.
pub(super) struct Known<'p> {
    pub(super) events: &'p EventTable,
    pub(super) roles: &'p Roles,
    pub(super) source: Source,
    pub(super) first_seen: FirstSeen,
    pub(super) cpus: RecordedCpus,
    pub(super) losses: Vec<RingLoss>,
    /// Parts of the time that count.
    pub(super) ranges: Option<TimeRanges>,
}

/// Follows the state of all CPUs.
pub(super) struct Follower<'p> {
    known: Known<'p>,
    occupancy: Occupancy,
    /// The span that time is in.
    span: Option<usize>,
    next_loss: usize,
    /// Up to when time is summed; absent outside of spans.
    now: Option<TimestampNs>,
    info: ParallelismInfo,
}

impl<'p> Follower<'p> {
    pub(super) fn new(of: ParallelismOf, mut known: Known<'p>) -> Follower<'p> {
        known.losses.retain(|loss| known.cpus.has(loss.cpu));
        known.losses.sort_unstable_by_key(|loss| loss.window);
        Follower {
            occupancy: Occupancy::new(of, known.first_seen.cgroups()),
            known,
            span: None,
            next_loss: 0,
            now: None,
            info: ParallelismInfo { of, ..ParallelismInfo::default() },
        }
    }

    /// Takes the next record. Gives the parallelism at a sample; of other records it means nothing.
    pub(super) fn take(&mut self, record: RawRecord<'_>, time: TimestampNs) -> Parallelism {
        if !self.advance(time) {
            return Parallelism::Unknown;
        }
        match record.header.kind {
            record_type::SAMPLE => return self.sample(record, time),
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => self.switch(record, time),
            record_type::FORK | record_type::EXIT => self.task(record, time),
            _ => {}
        }
        Parallelism::Unknown
    }

    /// The recording ends.
    pub(super) fn finish(mut self) -> ParallelismInfo {
        let end = self.span.and_then(|span| self.known.first_seen.spans().get(span));
        if let Some(end) = end.filter(|span| span.to < TimestampNs(u64::MAX)) {
            self.pass(end.to);
        }
        self.info
    }

    /// Goes on to a moment. False outside of the time in which switches were recorded.
    fn advance(&mut self, time: TimestampNs) -> bool {
        let span = self.known.first_seen.spans().at(time);
        if span != self.span {
            if let Some(left) = self.span.and_then(|span| self.known.first_seen.spans().get(span)) {
                self.pass(left.to);
            }
            self.span = span;
            if let Some(span) = span {
                self.enter(span);
            }
        }
        if span.is_some() {
            self.pass(time);
        }
        span.is_some()
    }

    fn enter(&mut self, span: usize) {
        let first_seen = &self.known.first_seen;
        self.now = first_seen.begin(span);
        match first_seen.of_span(span) {
            Some(slots) => self.occupancy.begin(&slots),
            None => {
                self.occupancy.begin(&[]);
                let never = TimestampNs(u64::MAX);
                self.occupancy.lose(Some(CpuId(u32::MAX)), never);
            }
        }
        // Records since the end of earlier losses have told the threads again.
        let from = self.now.unwrap_or(TimestampNs(0));
        let losses = &self.known.losses;
        while losses.get(self.next_loss).is_some_and(|loss| loss.window.to < from) {
            self.next_loss += 1;
        }
    }

    /// Sums the time up to a moment, loss by loss.
    fn pass(&mut self, time: TimestampNs) {
        while let Some(loss) = self.known.losses.get(self.next_loss).copied()
            && loss.window.from < time
        {
            self.sum(loss.window.from);
            match loss.thread {
                // Its own place alone: nothing is missing of others, which may wait for long.
                Some(tid) => self.occupancy.doubt(Slot::of(loss.cpu, tid), loss.window.to),
                None => self.occupancy.lose(loss.cpu, loss.window.to),
            }
            self.next_loss += 1;
        }
        self.sum(time);
    }

    fn sum(&mut self, time: TimestampNs) {
        let Some(before) = self.now else { return };
        let ns = match &self.known.ranges {
            None => time.since(before),
            Some(ranges) => {
                ranges.iter().map(|range| time.min(range.to).since(before.max(range.from))).sum()
            }
        };
        self.now = Some(before.max(time));
        self.info.recorded_ns = self.info.recorded_ns.saturating_add(ns);
        let sum = match self.occupancy.anybody() {
            Some(true) => &mut self.info.ran_ns,
            Some(false) => return,
            None => &mut self.info.unknown_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    fn sample(&mut self, record: RawRecord<'_>, time: TimestampNs) -> Parallelism {
        let events = self.known.events;
        let event = events.event_of_sample(record.body);
        let layout = event.and_then(|event| events.layout(event));
        let sample = layout.and_then(|layout| layout.parse(record.body));
        let (Some(event), Some(sample)) = (event, sample) else { return Parallelism::Unknown };
        let (Some((pid, tid)), Some(_)) = (sample.pid_tid, sample.time) else {
            return Parallelism::Unknown;
        };
        let (task, slot) = (Task { pid, tid }, Slot::of(sample.cpu, tid));
        let role = self.known.roles.role(event);
        if matches!(role, Role::CpuTime | Role::Running) && self.known.cpus.has(sample.cpu) {
            self.occupancy.sampled(slot, task, sample.cgroup, time);
        }
        let level = self.occupancy.level(task);
        if let (Role::Switch(fields), Source::Tracepoint) = (role, self.known.source) {
            self.tracepoint(fields, sample.raw.unwrap_or_default(), slot, time);
        }
        level
    }

    /// Both halves of a switch.
    fn tracepoint(&mut self, fields: SwitchFields, raw: &[u8], slot: Slot, time: TimestampNs) {
        match fields.next(raw) {
            Some(tid) => self.occupancy.comes(slot, Task { pid: Pid(-1), tid }, time),
            None => self.occupancy.leaves(slot, time),
        }
    }

    fn switch(&mut self, record: RawRecord<'_>, time: TimestampNs) {
        let Some(SideBand::Switch { out, .. }) = SideBand::parse(record) else { return };
        let id = self.known.events.parse_id_trailer(record);
        if self.known.source != Source::Records || !self.known.cpus.has(id.cpu) {
            return;
        }
        let (pid, tid) = id.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let slot = Slot::of(id.cpu, tid);
        match out {
            true => self.occupancy.leaves(slot, time),
            false => self.occupancy.comes(slot, Task { pid, tid }, time),
        }
    }

    fn task(&mut self, record: RawRecord<'_>, time: TimestampNs) {
        match SideBand::parse(record) {
            Some(SideBand::Fork(task)) => {
                let parent = Task { pid: task.parent_pid, tid: task.parent_tid };
                self.occupancy.fork(parent, Task { pid: task.pid, tid: task.tid });
            }
            Some(SideBand::Exit(task)) => {
                let cpu = self.known.events.parse_id_trailer(record).cpu;
                let slot = Slot::of(cpu, task.tid);
                // In a recording of whole CPUs, a switch-out follows the end of the thread.
                if !self.known.first_seen.saw_idle() {
                    self.occupancy.exit(slot, Task { pid: task.pid, tid: task.tid }, time);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
