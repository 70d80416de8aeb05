//! From records to statements: one thread's part.

use super::contention::Contention;
use super::object::ObjectReader;
use super::roles::{Role, Roles, timed_event};
use super::switch_event::{Source, StackRef, SwitchEvent, TaskState, TimedSwitchEvent, WaitKind};
use super::thread_cgroups::{CgroupTally, ThreadFacts};
use crate::blocks::deferred::ChainedBlock;
use crate::call_chain::stops::StopCounts;
use crate::first_pass::prepare::Prepared;
use crate::in_order::ordered::{Batch, PendingSample};
use crate::in_order::ordered_pool;
use crate::reading::Reading;
use crate::samples::Samples;
use crate::second_pass::aggregate::Aggregate;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums, Unparsed};
use rustc_hash::FxHashSet;
use whit_perfdata::blocked::BlockedThread;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{Pid, Tid, TimestampNs};

/// Records to decode, and the switch events in them.
#[derive(Default)]
pub(super) struct Job {
    pub(super) records: Batch,
    pub(super) timed_events: Vec<TimedSwitchEvent>,
    pub(super) contentions: Vec<Contention>,
}

/// Keeps the call chains of samples.
pub(super) trait StackKeeper<'a> {
    /// Decodes a sample.
    fn parse<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed>
    where
        'a: 'r;

    /// Keeps the call chain of a sample, where its role wants it.
    fn keep(&mut self, parsed: &ParsedSample<'_>, role: Role, time: TimestampNs) -> StackRef;
}

/// Decodes records. One per thread.
pub(super) struct Decoder<'a, K> {
    prepared: &'a Prepared,
    roles: &'a Roles,
    keeper: K,
    cgroups: CgroupTally,
    contentions: Vec<Contention>,
    objects: ObjectReader<'a>,
    /// Threads with samples or switches; `None` where the sideband has no others.
    stated: Option<FxHashSet<(Pid, Tid)>>,
}

impl<'a, K: StackKeeper<'a>> Decoder<'a, K> {
    pub(super) fn new(prepared: &'a Prepared, roles: &'a Roles, keeper: K) -> Self {
        let (cgroups, contentions) = (CgroupTally::default(), Vec::new());
        let objects = ObjectReader::new(&prepared.wait_objects);
        Decoder { prepared, roles, keeper, cgroups, contentions, objects, stated: None }
    }

    /// Keeps the threads that have samples or switches. A recording of threads by name has sideband of others.
    pub(super) fn keeping_stated(self, recording: &Recording) -> Self {
        let by_name = recording.features.ledger().is_some_and(|ledger| ledger.names_chosen > 0);
        Decoder { stated: by_name.then(FxHashSet::default), ..self }
    }

    pub(super) fn keeper(&self) -> &K {
        &self.keeper
    }

    pub(super) fn decode(&mut self, pending: &PendingSample<'_>, out: &mut Vec<TimedSwitchEvent>) {
        let record = pending.record();
        if record.header.kind == record_type::SAMPLE {
            self.sample(pending, out);
        } else if let Some(timed_event) = self.side_band(record, pending.time) {
            out.push(timed_event);
        }
    }

    fn announce_switch(&mut self, pid: Pid, tid: Tid) {
        if let Some(stated) = &mut self.stated {
            stated.insert((pid, tid));
        }
    }

    fn side_band(&mut self, record: RawRecord<'_>, time: TimestampNs) -> Option<TimedSwitchEvent> {
        let id = self.prepared.events.parse_id_trailer(record);
        let (pid, tid) = id.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let by = timed_event(time, id.cpu, pid, tid);
        let source = Source::Record;
        Some(match SideBand::parse(record)? {
            SideBand::Switch { out: true, preempt, .. } => {
                self.announce_switch(pid, tid);
                let kind = if preempt { WaitKind::Preempt } else { WaitKind::Sync };
                let event = SwitchEvent::Out { source, kind, state: None, stack: StackRef::NONE };
                TimedSwitchEvent { event, ..by }
            }
            SideBand::Switch { out: false, .. } => {
                self.announce_switch(pid, tid);
                TimedSwitchEvent { event: SwitchEvent::In { source }, ..by }
            }
            SideBand::CpuAccount(account) => {
                TimedSwitchEvent { event: SwitchEvent::Account(account), ..by }
            }
            SideBand::ReadyFile(description) => {
                let object = self.objects.described(description);
                TimedSwitchEvent { event: SwitchEvent::Ready(object), ..by }
            }
            SideBand::Fork(task) => {
                let event = SwitchEvent::Fork { pid: task.pid, tid: task.tid };
                TimedSwitchEvent { pid: task.parent_pid, tid: task.parent_tid, event, ..by }
            }
            SideBand::Exit(task) => {
                TimedSwitchEvent { pid: task.pid, tid: task.tid, event: SwitchEvent::Exit, ..by }
            }
            // Only an exec names the thread that does it; names can be given from outside, too.
            SideBand::Comm { pid, tid, exec: true, .. } => {
                TimedSwitchEvent { pid, tid, event: SwitchEvent::Running, ..by }
            }
            _ => return None,
        })
    }

    fn sample(&mut self, pending: &PendingSample<'_>, out: &mut Vec<TimedSwitchEvent>) {
        let time = pending.time;
        let parsed = self.keeper.parse(pending.record(), pending.block());
        let Ok(parsed) = parsed else { return };
        let by = timed_event(time, parsed.sample.cpu, parsed.pid, parsed.tid);
        let role = self.roles.role(parsed.event);
        if !matches!(role, Role::Wake(_) | Role::Contention(_) | Role::None) {
            self.announce_switch(parsed.pid, parsed.tid);
        }
        let stack = self.keeper.keep(&parsed, role, time);
        let raw = parsed.sample.raw.unwrap_or_default();
        let cgroup = parsed.sample.cgroup.filter(|_| role != Role::Blocked);
        if let Some(cgroup) = cgroup.and_then(|number| self.prepared.cgroups.at(number, time)) {
            self.cgroups.add(parsed.pid, parsed.tid, cgroup, 1);
        }
        match role {
            Role::CpuTime => out.push(TimedSwitchEvent { event: SwitchEvent::Sample(stack), ..by }),
            Role::SwitchStack => {
                let event = SwitchEvent::SwitchStack {
                    stack,
                    state: TaskState::from_raw(raw),
                    object: self.objects.read(raw, TaskState::futex_from_raw(raw)),
                };
                out.push(TimedSwitchEvent { event, ..by });
            }
            Role::Running => out.push(by),
            Role::Blocked => {
                let Some(found) = BlockedThread::parse(raw) else { return };
                let BlockedThread { state, edge, switches, futex, owner } = found;
                let state = TaskState::from_prev_state(u64::from(state));
                let event = SwitchEvent::Blocked { edge, switches, state, stack, futex, owner };
                out.push(TimedSwitchEvent { event, ..by });
            }
            Role::Switch(fields) => {
                out.extend(fields.read(raw, by, stack).into_iter().flatten());
            }
            Role::Contention(fields) => self.contentions.extend(fields.read(raw, by, stack)),
            Role::Wake(fields) => out.extend(fields.read(raw, by, stack, &mut self.objects)),
            Role::None => {}
        }
    }
}

/// Call chains in a call tree.
pub(super) struct TreeStacks<'a> {
    number: u32,
    prepared: &'a Prepared,
    sums: SampleSums<'a>,
}

impl<'a> TreeStacks<'a> {
    pub(super) fn new(
        number: usize,
        reading: Reading<'a>,
        question: &Samples,
        prepared: &'a Prepared,
    ) -> Self {
        let sums = SampleSums::new(reading, question, prepared);
        TreeStacks { number: number as u32, prepared, sums }
    }
}

impl<'a> StackKeeper<'a> for TreeStacks<'a> {
    fn parse<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed>
    where
        'a: 'r,
    {
        self.sums.parse(record, block)
    }

    /// Wakers may be threads that are not asked for.
    fn keep(&mut self, parsed: &ParsedSample<'_>, role: Role, time: TimestampNs) -> StackRef {
        let prepared = self.prepared;
        let is_in_range = prepared.time.as_ref().is_none_or(|ranges| ranges.contains(time));
        // The stack of a switch before the range is that of a wait which may reach into it.
        let is_of_switch =
            !matches!(role, Role::CpuTime | Role::Running | Role::Contention(_) | Role::None);
        if !is_in_range && !is_of_switch {
            return StackRef::NONE;
        }
        let is_wanted = is_in_range && self.sums.wants(parsed, time);
        let node =
            if is_wanted { self.sums.add(parsed, time) } else { self.sums.node_of(parsed, time) };
        StackRef { worker: self.number, node }
    }
}

impl<'a> ordered_pool::Worker for Decoder<'a, TreeStacks<'a>> {
    type Job = Job;
    type Rest = (Aggregate, StopCounts, ThreadFacts);

    fn run(&mut self, job: &mut Job, _: &mut dyn FnMut(Job)) {
        job.timed_events.clear();
        for record in job.records.iter() {
            self.decode(&record, &mut job.timed_events);
        }
        job.contentions.clear();
        job.contentions.append(&mut self.contentions);
        // The blocks that the records stand in are free again.
        job.records.clear();
    }

    fn end(self) -> Self::Rest {
        let (sums, stops) = self.keeper.sums.finish();
        (sums, stops, ThreadFacts { cgroups: self.cgroups, stated: self.stated })
    }
}
