//! From records to statements: one thread's part.

use super::fact::{Fact, Source, StackRef, Statement, TaskState, WaitKind};
use super::roles::{Role, Roles, statement};
use crate::aggregate::Aggregate;
use crate::load::{LoadOptions, Prepared};
use crate::ordered::PendingSample;
use crate::sample_sums::{ParsedSample, SampleSums};
use crate::stops::StopCounts;
use crate::turns;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{Pid, Tid, TimestampNs};

/// Records to decode, and what they state.
#[derive(Default)]
pub(super) struct Job {
    pub(super) records: Vec<PendingSample>,
    pub(super) statements: Vec<Statement>,
}

/// Decodes records. One per thread.
pub(super) struct Decoder<'a> {
    number: u32,
    options: &'a LoadOptions,
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
        Decoder { number: number as u32, options, prepared, roles, sums }
    }

    fn decode(&mut self, pending: &PendingSample, out: &mut Vec<Statement>) {
        let record = pending.record();
        if record.header.kind == record_type::SAMPLE {
            self.sample(record, pending.time, out);
        } else if let Some(statement) = self.side_band(record, pending.time) {
            out.push(statement);
        }
    }

    fn side_band(&self, record: RawRecord<'_>, time: TimestampNs) -> Option<Statement> {
        let id = self.prepared.events.parse_id_trailer(record.body);
        let (pid, tid) = id.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        let by = statement(time, id.cpu, pid, tid);
        let source = Source::Record;
        Some(match SideBand::parse(record)? {
            SideBand::Switch { out: true, preempt, .. } => {
                let kind = if preempt { WaitKind::Preempt } else { WaitKind::Sync };
                let fact = Fact::Out { source, kind, state: None, stack: StackRef::NONE };
                Statement { fact, ..by }
            }
            SideBand::Switch { out: false, .. } => Statement { fact: Fact::In { source }, ..by },
            SideBand::Fork(task) => {
                let fact = Fact::Fork { pid: task.pid, tid: task.tid };
                Statement { pid: task.parent_pid, tid: task.parent_tid, fact, ..by }
            }
            SideBand::Exit(task) => {
                Statement { pid: task.pid, tid: task.tid, fact: Fact::Exit, ..by }
            }
            // Only an exec names the thread that does it; names can be given from outside, too.
            SideBand::Comm { pid, tid, exec: true, .. } => {
                Statement { pid, tid, fact: Fact::Running, ..by }
            }
            _ => return None,
        })
    }

    fn sample(&mut self, record: RawRecord<'_>, time: TimestampNs, out: &mut Vec<Statement>) {
        let Some(parsed) = self.sums.parse(record) else { return };
        let by = statement(time, parsed.sample.cpu, parsed.pid, parsed.tid);
        let stack = self.stack(&parsed, time);
        let raw = parsed.sample.raw.unwrap_or_default();
        match self.roles.role(parsed.event) {
            Role::CpuTime => out.push(Statement { fact: Fact::Sample(stack), ..by }),
            Role::SwitchStack => {
                let fact = Fact::SwitchStack { stack, state: TaskState::from_raw(raw) };
                out.push(Statement { fact, ..by });
            }
            Role::Running => out.push(by),
            Role::Switch(fields) => {
                out.extend(fields.tell(raw, by, stack).into_iter().flatten());
            }
            Role::Wake(fields) => out.extend(fields.tell(raw, by, stack)),
            Role::None => {}
        }
    }

    /// Wakers may be threads that are not asked for.
    fn stack(&mut self, parsed: &ParsedSample<'_>, time: TimestampNs) -> StackRef {
        let node = if self.options.wants(parsed.pid, parsed.tid) {
            self.sums.add(parsed, time)
        } else {
            self.sums.node_of(parsed, time)
        };
        StackRef { worker: self.number, node }
    }
}

impl turns::Worker for Decoder<'_> {
    type Job = Job;
    type Rest = (Aggregate, StopCounts);

    fn run(&mut self, job: &mut Job) {
        job.statements.clear();
        for record in &job.records {
            self.decode(record, &mut job.statements);
        }
        // The blocks that the records stand in are free again.
        job.records.clear();
    }

    fn end(self) -> (Aggregate, StopCounts) {
        self.sums.finish()
    }
}
