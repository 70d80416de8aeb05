//! Waits as samples of `offcpu-time`, as `whit record --off-cpu` writes them behind the recorded ones.
//!
//! The intervals are those of [`SamplesAndSwitches`](super::SamplesAndSwitches), so that the sums are: each sync wait that nothing makes
//! uncertain is in one sample. A wait that reaches the threshold is a sample of its own. The others of a
//! thread at one call chain are one sample together, at the end of the last of them: in the address
//! space, and under the name, that the thread had.

use super::cpu_parts::CpuParts;
use super::decode::{Decoder, StackKeeper};
use super::interval::{Life, Run, Sink, Switch, Task, Trust, WaitEnd};
use super::intervals::Intervals;
use super::losses::Losses;
use super::recorded_spans::RecordedSpans;
use super::roles::{Role, Roles};
use super::switch_event::{StackRef, WaitKind};
use super::switches_pass::all_losses;
use crate::blocks::deferred::ChainedBlock;
use crate::blocks::stream_plan::BlockTimes;
use crate::error::LoadError;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::in_order::ordered::{Batch, OrderedSamples};
use crate::machine_model::process::{CommIndex, SpaceId};
use crate::reading::{Question, Reading};
use crate::samples::Samples;
use crate::second_pass::sample_sums::{ParsedSample, Unparsed};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;
use whit_perfdata::off_cpu::OffCpuSample;
use whit_perfdata::record::RawRecord;
use whit_perfdata::record::record_type::{SWITCH, SWITCH_CPU_WIDE};
use whit_perfdata::sample::context;
use whit_types::{CpuId, TimestampNs};

/// Memory for call chains; waits at others have none.
const MAX_CHAIN_BYTES: usize = 256 << 20;

/// Rows of a thread at a call chain; waits beyond are samples of their own.
const MAX_ROWS: usize = 1 << 20;

/// Why the samples could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OffCpuError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// They could not be written.
    #[error("cannot write the samples of waits: {0}")]
    Write(#[from] io::Error),
}

/// The waits in the samples, and those in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OffCpuTotals {
    /// How many were given to the caller.
    pub samples: u64,
    /// Waits in them, and how long these took.
    pub waits: u64,
    /// Nanoseconds.
    pub wait_ns: u64,
    /// Sync waits in no sample: a loss touches them, or their beginning or end is not in the recording.
    pub uncertain: u64,
    /// Waits without their call chain, beyond the bound.
    pub without_chain: u64,
}

/// Call chains as they were recorded.
struct RawStacks<'a> {
    prepared: &'a Prepared,
    chains: Vec<Arc<[u64]>>,
    by_chain: FxHashMap<Arc<[u64]>, u32>,
    bytes: usize,
    max_bytes: usize,
    left_out: u64,
    words: Vec<u64>,
}

impl<'a> RawStacks<'a> {
    fn new(prepared: &'a Prepared, max_bytes: usize) -> Self {
        RawStacks {
            prepared,
            chains: Vec::new(),
            by_chain: FxHashMap::default(),
            bytes: 0,
            max_bytes,
            left_out: 0,
            words: Vec::new(),
        }
    }

    /// The number of the chain in `words`.
    fn number(&mut self) -> Option<u32> {
        if let Some(number) = self.by_chain.get(&self.words[..]) {
            return Some(*number);
        }
        self.bytes = self.bytes.saturating_add(8 * self.words.len() + 64);
        if self.bytes > self.max_bytes {
            self.left_out += 1;
            return None;
        }
        let (chain, number) = (Arc::<[u64]>::from(&self.words[..]), self.chains.len() as u32);
        self.chains.push(chain.clone());
        self.by_chain.insert(chain, number);
        Some(number)
    }

    fn chain(&self, stack: StackRef) -> &[u64] {
        self.chains.get(stack.node as usize).map_or(&[], |chain| chain)
    }
}

impl<'a> StackKeeper<'a> for RawStacks<'a> {
    fn parse<'r>(
        &mut self,
        record: RawRecord<'r>,
        block: ChainedBlock<'r>,
    ) -> Result<ParsedSample<'r>, Unparsed>
    where
        'a: 'r,
    {
        ParsedSample::parse(self.prepared, record, block)
    }

    fn keep(&mut self, parsed: &ParsedSample<'_>, role: Role, _: TimestampNs) -> StackRef {
        if !matches!(role, Role::SwitchStack | Role::Switch(_)) {
            return StackRef::NONE;
        }
        let recorded = parsed.sample.callchain.iter();
        self.words.clear();
        self.words.extend(recorded.take_while(|word| *word != context::USER_DEFERRED));
        if let Some(deferred) = parsed.deferred {
            self.words.push(context::USER);
            self.words.extend(deferred.addresses.iter());
        }
        if self.words.is_empty() {
            return StackRef::NONE;
        }
        self.number().map_or(StackRef::NONE, |node| StackRef { worker: 0, node })
    }
}

/// Waits with the same key become one sample.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct RowKey {
    task: Task,
    stack: StackRef,
    space: Option<SpaceId>,
    comm: Option<CommIndex>,
}

/// Waits that become one sample.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    waits: u64,
    wait_ns: u64,
    /// End of the last of them.
    end: TimestampNs,
    cpu: Option<CpuId>,
}

impl Row {
    fn add(&mut self, wait: Row) {
        self.waits += wait.waits;
        self.wait_ns = self.wait_ns.saturating_add(wait.wait_ns);
        if wait.end >= self.end {
            (self.end, self.cpu) = (wait.end, wait.cpu);
        }
    }
}

/// Adds waits up.
struct Waits<'a> {
    prepared: &'a Prepared,
    threshold_ns: u64,
    max_rows: usize,
    rows: FxHashMap<RowKey, Row>,
    /// Samples of their own, which were not written yet.
    alone: Vec<(RowKey, Row)>,
    uncertain: u64,
}

impl Sink for Waits<'_> {
    fn switch(&mut self, switch: &Switch) {
        if switch.kind != WaitKind::Sync {
            return;
        }
        let (end, cpu) = match switch.end {
            WaitEnd::In { time, cpu, trust: Trust::Whole } if switch.found_blocked.is_none() => {
                (time, cpu)
            }
            _ => {
                self.uncertain += 1;
                return;
            }
        };
        let (task, model) = (switch.task, &self.prepared.model);
        let key = RowKey {
            task,
            stack: switch.stack,
            space: model.space_at(task.pid, end).map(|space| space.id),
            comm: model.comm_at(task.pid, task.tid, end),
        };
        let wait = Row { waits: 1, wait_ns: end.since(switch.out), end, cpu };
        let is_full = self.rows.len() >= self.max_rows && !self.rows.contains_key(&key);
        if wait.wait_ns >= self.threshold_ns || is_full {
            self.alone.push((key, wait));
        } else {
            self.rows.entry(key).or_default().add(wait);
        }
    }

    fn run(&mut self, _: &Run<'_>) {}
    fn idle(&mut self, _: CpuId, _: &CpuParts) {}
    fn end(&mut self, _: Task) {}
    fn life(&mut self, _: Task, _: Life) {}
    fn died(&mut self, _: Task, _: TimestampNs) {}
}

/// All waits of a recording as samples, which `emit` takes. Those that last `threshold_ns` or longer are samples of
/// their own. No code is named, and each wait counts, whatever the reading selects.
pub struct OffCpuSamples<'e> {
    /// From which length on a wait is a sample of its own.
    pub threshold_ns: u64,
    /// The taker.
    pub emit: &'e mut dyn FnMut(&OffCpuSample<'_>) -> io::Result<()>,
}

impl Question for OffCpuSamples<'_> {
    type Answer = OffCpuTotals;
    type Error = OffCpuError;

    fn read(self, reading: Reading<'_>) -> Result<OffCpuTotals, OffCpuError> {
        let (recording, progress) = (reading.recording, reading.progress(2));
        let OffCpuSamples { threshold_ns, emit } = self;
        let samples = Samples { names_kernel: false, ..Samples::default() };
        let takes = BlockTimes::NoteSwitches;
        let mut prepared = prepare(reading, Needs::in_order(samples, takes), &progress)?;
        let losses = Losses::new(&all_losses(recording, &mut prepared.scan.ring_losses));
        let cpus = std::mem::replace(&mut prepared.scan.recorded_cpus, RecordedCpus::Any);
        let roles = Roles::of(recording, &prepared.scan.samples_by_event);
        let counts = &prepared.scan.counts;
        let switch_records = counts.of(SWITCH) + counts.of(SWITCH_CPU_WIDE);
        let has_switch_ins = roles.sources(recording, switch_records).records;
        let spans = RecordedSpans::new(recording.features.recorded_spans());
        let mut intervals = Intervals::new(&losses, cpus, has_switch_ins, spans)
            .with_objects(&prepared.wait_objects);
        let mut records = OrderedSamples::new(&prepared, takes, reading.threads(), &progress);
        let stacks = RawStacks::new(&prepared, MAX_CHAIN_BYTES);
        let mut decoder = Decoder::new(&prepared, &roles, stacks);
        let mut waits = Waits {
            prepared: &prepared,
            threshold_ns,
            max_rows: MAX_ROWS,
            rows: FxHashMap::default(),
            alone: Vec::new(),
            uncertain: 0,
        };
        let mut totals = OffCpuTotals::default();
        let mut write = |stacks: &RawStacks<'_>, (key, row): (RowKey, Row)| {
            totals.samples += 1;
            totals.waits += row.waits;
            totals.wait_ns = totals.wait_ns.saturating_add(row.wait_ns);
            emit(&OffCpuSample {
                pid: key.task.pid,
                tid: key.task.tid,
                time: row.end,
                cpu: row.cpu,
                period_ns: row.wait_ns,
                chain: stacks.chain(key.stack),
            })
        };
        let (mut batch, mut events) = (Batch::default(), Vec::new());
        loop {
            records.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            batch.iter().for_each(|pending| decoder.decode(&pending, &mut events));
            batch.clear();
            events.drain(..).for_each(|event| intervals.take(&event, &mut waits));
            waits.alone.drain(..).try_for_each(|row| write(decoder.keeper(), row))?;
        }
        intervals.finish(&mut waits);
        // The order of a hash map is another one each time.
        let mut rows: Vec<_> = waits.rows.drain().collect();
        rows.sort_unstable_by_key(|(key, row)| (row.end, *key));
        waits.alone.drain(..).chain(rows).try_for_each(|row| write(decoder.keeper(), row))?;
        totals.uncertain = waits.uncertain;
        totals.without_chain = decoder.keeper().left_out;
        Ok(totals)
    }
}
