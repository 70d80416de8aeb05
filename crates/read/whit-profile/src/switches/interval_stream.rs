//! Waits and runs one by one, as they end.

use super::cpu_parts::CpuParts;
use super::decode::{Decoder, StackKeeper};
use super::interval::{Life, Run, Sink, Switch, Task, Trust, WaitEnd};
use super::intervals::Intervals;
use super::losses::Losses;
use super::object_key::ObjectKey;
use super::recorded_spans::RecordedSpans;
use super::roles::{Role, Roles};
use super::switch_event::{StackRef, TaskState, TimedSwitchEvent, WaitKind};
use crate::blocks::deferred::ChainedBlock;
use crate::blocks::stream_plan::BlockTimes;
use crate::error::LoadError;
use crate::first_pass::prepare::Prepared;
use crate::first_pass::recorded_parts::RecordedParts;
use crate::first_pass::ring_losses::RecordedCpus;
use crate::in_order::ordered::{Batch, OrderedSamples};
use crate::in_order::ordered_pool::{self, in_turn};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::second_pass::sample_sums::{ParsedSample, SampleSums, Unparsed};
use crate::selection::Selection;
use crate::stack_table::{NewNode, NodeAnnouncer, StackTable};
use rustc_hash::FxHashMap;
use whit_perfdata::record::RawRecord;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_types::{CpuId, Pid, Tid, TimestampNs};

/// Rows that are handed out together.
const BATCH_ROWS: usize = 256;

/// A stretch of time of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalRow {
    /// On no CPU.
    Wait(WaitRow),
    /// On a CPU.
    Run(RunRow),
}

/// A stretch of time on no CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitRow {
    /// The thread.
    pub task: (Pid, Tid),
    /// When it left its CPU or was made; the beginning of the recording where the switch was before.
    pub start: TimestampNs,
    /// Until it came onto a CPU or the recording ended; `None` where its end is missing.
    pub duration_ns: Option<u64>,
    /// Why it waits.
    pub kind: WaitKind,
    /// Its state, where recorded.
    pub state: Option<TaskState>,
    /// The CPU that it left.
    pub cpu: Option<CpuId>,
    /// Innermost call site at the switch.
    pub callsite: Option<u32>,
    /// Address of the futex, where recorded.
    pub futex: Option<u64>,
    /// The object of a voluntary wait.
    pub(crate) object: ObjectKey,
    /// Time of the wake-up.
    pub woken_at: Option<TimestampNs>,
    /// Thread that made it.
    pub waker: Option<(Pid, Tid)>,
    /// Its call site.
    pub waker_callsite: Option<u32>,
    /// True where an interrupt woke, and the waker only happened to run.
    pub from_interrupt: bool,
    /// Whether a loss may hide switches.
    pub trust: Trust,
    /// True where the end is not in the recording.
    pub is_open: bool,
    /// True where the switch is not in the recording.
    pub begun_before: bool,
}

/// A stretch of time on one CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunRow {
    /// The thread.
    pub task: (Pid, Tid),
    /// When it came onto the CPU.
    pub start: TimestampNs,
    /// How long it stayed.
    pub duration_ns: u64,
    /// Where it ran.
    pub cpu: Option<CpuId>,
    /// The wait behind it, where the recording has it: its kind and state.
    pub end: Option<(WaitKind, Option<TaskState>)>,
    /// Whether a loss may hide switches.
    pub trust: Trust,
    /// True where its beginning or end is not in the recording.
    pub is_open: bool,
    /// The parts in which the CPU did not execute the thread.
    pub parts: CpuParts,
    /// Whether the time of interrupts among them is recorded,
    pub has_interrupts: bool,
    /// and that of the hypervisor.
    pub has_stolen: bool,
}

/// The inputs of a stream.
pub(crate) struct IntervalStream<'a> {
    pub(crate) reading: Reading<'a>,
    pub(crate) prepared: &'a Prepared,
    pub(crate) roles: &'a Roles,
    pub(crate) losses: &'a Losses,
    pub(crate) recorded_cpus: &'a RecordedCpus,
    pub(crate) table: &'a StackTable,
    /// Without them, call sites are absent.
    pub(crate) stacks: bool,
}

#[derive(Default)]
struct Job {
    records: Batch,
    events: Vec<TimedSwitchEvent>,
    new_nodes: Vec<NewNode>,
    worker: usize,
}

struct Worker<'a> {
    number: usize,
    decoder: Decoder<'a, Nodes<'a>>,
    announcer: NodeAnnouncer<'a>,
}

impl ordered_pool::Worker for Worker<'_> {
    type Job = Job;
    type Rest = ();

    fn run(&mut self, job: &mut Job, _: &mut dyn FnMut(Job)) {
        job.events.clear();
        for record in job.records.iter() {
            self.decoder.decode(&record, &mut job.events);
        }
        self.announcer.announce(self.decoder.keeper().sums.sums(), &mut job.new_nodes);
        job.worker = self.number;
        job.records.clear();
    }

    fn end(self) {}
}

/// Keeps the call chains of switches and wake-ups.
struct Nodes<'a> {
    number: u32,
    sums: SampleSums<'a>,
    stacks: bool,
}

impl<'a> StackKeeper<'a> for Nodes<'a> {
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

    fn keep(&mut self, parsed: &ParsedSample<'_>, role: Role, time: TimestampNs) -> StackRef {
        let is_kept =
            matches!(role, Role::SwitchStack | Role::Switch(_) | Role::Wake(_) | Role::Blocked);
        if !(self.stacks && is_kept) {
            return StackRef::NONE;
        }
        StackRef { worker: self.number, node: self.sums.node_of(parsed, time) }
    }
}

/// Makes rows of intervals.
struct Rows<'a> {
    numbers: Vec<Vec<u32>>,
    /// The last run of each thread: the wait behind it tells why it ended.
    runs: FxHashMap<Task, RunRow>,
    rows: Vec<IntervalRow>,
    selection: &'a Selection,
    recorded_parts: RecordedParts,
}

impl Rows<'_> {
    fn callsite(&self, stack: StackRef) -> Option<u32> {
        self.numbers.get(stack.worker as usize)?.get(stack.node as usize).copied()
    }

    fn end_run(&mut self, task: Task) {
        self.rows.extend(self.runs.remove(&task).map(IntervalRow::Run));
    }
}

impl Sink for Rows<'_> {
    fn switch(&mut self, switch: &Switch) {
        let task = switch.task;
        if !self.selection.wants(task.pid, task.tid) {
            return;
        }
        if let Some(run) = self.runs.get_mut(&task)
            && run.start.0.saturating_add(run.duration_ns) == switch.out.0
        {
            run.end = Some((switch.kind, switch.state));
        }
        self.end_run(task);
        let (end, trust, is_open) = match switch.end {
            WaitEnd::In { time, trust, .. } => (Some(time), trust, false),
            WaitEnd::Open { until, trust } => (Some(until), trust, true),
            WaitEnd::Missing => (None, Trust::Lossy, true),
        };
        let woken = switch.woken;
        self.rows.push(IntervalRow::Wait(WaitRow {
            task: (task.pid, task.tid),
            start: switch.out,
            duration_ns: end.map(|end| end.since(switch.out)),
            kind: switch.kind,
            state: switch.state,
            cpu: switch.cpu,
            callsite: self.callsite(switch.stack),
            futex: Some(switch.object.futex()).filter(|futex| *futex > 0),
            object: switch.object,
            woken_at: woken.map(|woken| woken.time),
            waker: woken.map(|woken| (woken.waker.pid, woken.waker.tid)),
            waker_callsite: woken.and_then(|woken| self.callsite(woken.stack)),
            from_interrupt: woken.is_some_and(|woken| woken.from_interrupt),
            trust,
            is_open,
            begun_before: switch.found_blocked.is_some(),
        }));
    }

    fn run(&mut self, run: &Run<'_>) {
        let task = run.task;
        if !self.selection.wants(task.pid, task.tid) {
            return;
        }
        if let Some(last) = self.runs.get_mut(&task) {
            let continues = last.start.0.saturating_add(last.duration_ns) == run.from.0
                && last.cpu == run.cpu
                && last.trust == run.trust;
            // A long run is given out in parts.
            if continues {
                last.duration_ns = run.to.since(last.start);
                last.is_open |= run.is_open;
                last.parts.add(&run.parts);
                return;
            }
        }
        self.end_run(task);
        self.runs.insert(
            task,
            RunRow {
                task: (task.pid, task.tid),
                start: run.from,
                duration_ns: run.to.since(run.from),
                cpu: run.cpu,
                end: None,
                trust: run.trust,
                is_open: run.is_open,
                parts: run.parts,
                has_interrupts: self.recorded_parts.interrupts,
                has_stolen: self.recorded_parts.stolen,
            },
        );
    }

    fn idle(&mut self, _: CpuId, _: &CpuParts) {}

    fn end(&mut self, task: Task) {
        self.end_run(task);
    }

    fn life(&mut self, _: Task, _: Life) {}
    fn died(&mut self, _: Task, _: TimestampNs) {}
}

impl IntervalStream<'_> {
    /// Hands batches of rows to `take`, in the order in which the intervals end, until it says no. `stopped` makes the
    /// error for that.
    pub(crate) fn run<E: From<LoadError>>(
        &self,
        stopped: fn() -> E,
        take: &mut dyn FnMut(&mut Vec<IntervalRow>) -> bool,
    ) -> Result<u64, E> {
        let &IntervalStream { reading, prepared, roles, table, .. } = self;
        let (recording, selection) = (reading.recording, reading.selection());
        let progress = reading.progress(1);
        let counts = &prepared.scan.counts;
        let switch_records = counts.of(SWITCH) + counts.of(SWITCH_CPU_WIDE);
        let has_switch_ins = roles.sources(recording, switch_records).records;
        let spans = RecordedSpans::new(recording.features.recorded_spans());
        let cpus = self.recorded_cpus.clone();
        let mut intervals = Intervals::new(self.losses, cpus, has_switch_ins, spans)
            .with_objects(&prepared.wait_objects);
        let takes = BlockTimes::NoteSwitches;
        let workers = reading.threads().max(1);
        let mut records = OrderedSamples::new(prepared, takes, workers, &progress);
        let numbers = vec![Vec::new(); workers];
        let recorded_parts = prepared.scan.recorded_parts;
        let runs = FxHashMap::default();
        let mut rows = Rows { numbers, runs, rows: Vec::new(), selection, recorded_parts };
        let make = |number: usize| {
            let sums = SampleSums::new(reading, &Samples::default(), prepared);
            let nodes = Nodes { number: number as u32, sums, stacks: self.stacks };
            Worker {
                number,
                decoder: Decoder::new(prepared, roles, nodes),
                announcer: NodeAnnouncer::new(prepared, table),
            }
        };
        let fill = |job: &mut Job| {
            records.next_batch(&mut job.records)?;
            Ok(!job.records.is_empty())
        };
        let mut hand_out = |rows: &mut Vec<IntervalRow>| {
            let continues = take(rows);
            rows.clear();
            if continues { Ok(()) } else { Err(stopped()) }
        };
        let take_job = |job: &mut Job| {
            table.adopt(&mut rows.numbers[job.worker], &mut job.new_nodes);
            job.events.iter().for_each(|event| intervals.take(event, &mut rows));
            if rows.rows.len() >= BATCH_ROWS { hand_out(&mut rows.rows) } else { Ok(()) }
        };
        in_turn(workers, make, || fill, take_job)?;
        prepared.check_dumps()?;
        intervals.finish(&mut rows);
        let mut last: Vec<_> = rows.runs.drain().map(|(_, run)| run).collect();
        // The order of a hash map is another one each time.
        last.sort_unstable_by_key(|run| (run.start, run.task));
        rows.rows.extend(last.into_iter().map(IntervalRow::Run));
        hand_out(&mut rows.rows)?;
        Ok(records.disordered())
    }
}
