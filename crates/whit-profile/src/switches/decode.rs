//! From records to statements: one thread's part.

use super::roles::{Role, Roles, timed_event};
use super::switch_event::{Source, StackRef, SwitchEvent, TaskState, TimedSwitchEvent, WaitKind};
use crate::aggregate::Aggregate;
use crate::options::LoadOptions;
use crate::ordered::PendingSample;
use crate::ordered_pool;
use crate::prepare::Prepared;
use crate::sample_sums::{ParsedSample, SampleSums};
use crate::stops::StopCounts;
use whit_perfdata::blocked::BlockedThread;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{Pid, Tid, TimestampNs};

/// Records to decode, and what they state.
#[derive(Default)]
pub(super) struct Job {
    pub(super) records: Vec<PendingSample>,
    pub(super) timed_events: Vec<TimedSwitchEvent>,
}

/// Decodes records. One per thread.
pub(super) struct Decoder<'a> {
    number: u32,
    prepared: &'a Prepared,
    roles: &'a Roles,
    sums: SampleSums<'a>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        number: usize,
        recording: &'a Recording,
        options: &'a LoadOptions,
        prepared: &'a Prepared,
        roles: &'a Roles,
    ) -> Self {
        let sums = SampleSums::new(recording, options, prepared);
        Decoder { number: number as u32, prepared, roles, sums }
    }

    fn decode(&mut self, pending: &PendingSample, out: &mut Vec<TimedSwitchEvent>) {
        let record = pending.record();
        if record.header.kind == record_type::SAMPLE {
            self.sample(record, pending.time, out);
        } else if let Some(timed_event) = self.side_band(record, pending.time) {
            out.push(timed_event);
        }
    }

    fn side_band(&self, record: RawRecord<'_>, time: TimestampNs) -> Option<TimedSwitchEvent> {
        let id = self.prepared.events.parse_id_trailer(record.body);
        let (pid, tid) = id.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let by = timed_event(time, id.cpu, pid, tid);
        let source = Source::Record;
        Some(match SideBand::parse(record)? {
            SideBand::Switch { out: true, preempt, .. } => {
                let kind = if preempt { WaitKind::Preempt } else { WaitKind::Sync };
                let event = SwitchEvent::Out { source, kind, state: None, stack: StackRef::NONE };
                TimedSwitchEvent { event, ..by }
            }
            SideBand::Switch { out: false, .. } => {
                TimedSwitchEvent { event: SwitchEvent::In { source }, ..by }
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

    fn sample(
        &mut self,
        record: RawRecord<'_>,
        time: TimestampNs,
        out: &mut Vec<TimedSwitchEvent>,
    ) {
        let Some(parsed) = self.sums.parse(record) else { return };
        let by = timed_event(time, parsed.sample.cpu, parsed.pid, parsed.tid);
        let role = self.roles.role(parsed.event);
        let stack = self.stack(&parsed, role, time);
        let raw = parsed.sample.raw.unwrap_or_default();
        match role {
            Role::CpuTime => out.push(TimedSwitchEvent { event: SwitchEvent::Sample(stack), ..by }),
            Role::SwitchStack => {
                let event = SwitchEvent::SwitchStack { stack, state: TaskState::from_raw(raw) };
                out.push(TimedSwitchEvent { event, ..by });
            }
            Role::Running => out.push(by),
            Role::Blocked => {
                let Some(BlockedThread { state, edge, switches }) = BlockedThread::parse(raw)
                else {
                    return;
                };
                let state = TaskState::from_prev_state(u64::from(state));
                out.push(TimedSwitchEvent {
                    event: SwitchEvent::Blocked { edge, switches, state, stack },
                    ..by
                });
            }
            Role::Switch(fields) => {
                out.extend(fields.tell(raw, by, stack).into_iter().flatten());
            }
            Role::Wake(fields) => out.extend(fields.tell(raw, by, stack)),
            Role::None => {}
        }
    }

    /// Wakers may be threads that are not asked for.
    fn stack(&mut self, parsed: &ParsedSample<'_>, role: Role, time: TimestampNs) -> StackRef {
        let prepared = self.prepared;
        let is_in_range = prepared.time.is_none_or(|range| range.contains(time));
        // The stack of a switch before the range is that of a wait which may reach into it.
        if !is_in_range && matches!(role, Role::CpuTime | Role::Running | Role::None) {
            return StackRef::NONE;
        }
        let is_wanted = is_in_range && self.sums.wants(parsed, time);
        let node =
            if is_wanted { self.sums.add(parsed, time) } else { self.sums.node_of(parsed, time) };
        StackRef { worker: self.number, node }
    }
}

impl ordered_pool::Worker for Decoder<'_> {
    type Job = Job;
    type Rest = (Aggregate, StopCounts);

    fn run(&mut self, job: &mut Job) {
        job.timed_events.clear();
        for record in &job.records {
            self.decode(record, &mut job.timed_events);
        }
        // The blocks that the records stand in are free again.
        job.records.clear();
    }

    fn end(self) -> (Aggregate, StopCounts) {
        self.sums.finish()
    }
}
