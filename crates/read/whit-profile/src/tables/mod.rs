//! A recording as tables: threads, binaries and cgroups at once; samples, waits and runs as streams.
//!
//! [`Tables`] makes the first pass. Streams of its [`TableSource`] then read the recording as often as somebody asks, in order of
//! time, with threads that decode ahead of the reader. Call sites and frames get numbers as streams meet them; the
//! numbers stay for as long as the source does, and do not depend on the number of threads.
//!
//! Memory grows with threads, binaries and distinct call chains ([`MAX_CALLSITES`]), not with samples.

mod dimensions;
mod goroutines;
mod hits;
mod objects;
mod request_marks;
mod sample_facts;
mod sample_rows;
mod sample_sums;
#[cfg(test)]
mod sample_sums_tests;

pub use crate::stack_table::{CallsiteRow, FrameRow, MAX_CALLSITES};
pub use crate::switches::{IntervalRow, RunRow, TaskState, Trust, WaitKind, WaitRow};
pub use dimensions::{BinaryRow, CgroupRow, Creation, LossRow, ThreadRow};
pub use goroutines::{Goroutine, GoroutineChange, GoroutineObject, GoroutineWaker};
pub use request_marks::{ConnectionMark, RequestEvents, RequestKey, RequestMark};
pub use sample_facts::{SampleWanted, WantedFacts};
pub use sample_rows::SampleEntry;
pub use sample_sums::SampleSum;

use crate::blocks::stream_plan::BlockTimes;
use crate::error::LoadError;
use crate::first_fetch::fetch_first;
use crate::first_pass::prepare::{Needs, Prepared, prepare};
use crate::first_pass::ring_losses::RecordedCpus;
use crate::loss_window::RingLoss;
use crate::model::{LossReport, RecordingInfo};
use crate::reading::{Question, ReadOptions, Reading};
use crate::result::describe;
use crate::samples::Samples;
use crate::stack_table::StackTable;
use crate::switches::{
    IntervalStream, Losses, NamedFrame, NamedObject, Roles, Sources, WaitClass, all_losses,
    classify,
};
use crate::tables::dimensions::Dimensions;
use crate::tables::objects::WaitObjects;
use crate::warning::Warning;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type;
use whit_types::{Arch, Pid, Tid};
use whit_unwind::StopReason;

/// A recording behind its first pass.
pub struct TableSource {
    recording: Recording,
    options: ReadOptions,
    prepared: Prepared,
    roles: Roles,
    ring_losses: Vec<RingLoss>,
    losses: Losses,
    recorded_cpus: RecordedCpus,
    dimensions: Dimensions,
    stacks: StackTable,
    troubles: Troubles,
    /// Warnings of the fetch of debug companions, which comes before the first call chain.
    fetched: Mutex<Option<Vec<Warning>>>,
    /// How often unwinding ended for each reason, once all samples were read with their call chains.
    unwind_ends: Mutex<Option<Vec<(StopReason, u64)>>>,
    /// Classes of voluntary waits by call site, as somebody asked for them.
    wait_classes: Mutex<FxHashMap<u32, WaitClass>>,
    wait_objects: WaitObjects,
}

/// Why a stream ended early.
#[derive(Debug, thiserror::Error)]
pub enum StreamEnd {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The taker wanted no more.
    #[error("the reader of the stream has gone")]
    Stopped,
    /// Sums would take more memory than they may.
    #[error("the sums need more memory than they may take")]
    NoRoom,
}

/// The most that any stream met; each reads the same recording.
#[derive(Debug, Default)]
struct Troubles {
    unreadable: AtomicU64,
    foreign_stacks: AtomicU64,
    disordered: AtomicU64,
}

/// A recording as tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables;

impl Question for Tables {
    type Answer = TableSource;
    type Error = LoadError;

    /// Makes the first pass.
    fn read(self, reading: Reading<'_>) -> Result<TableSource, LoadError> {
        let recording = reading.recording;
        let needs =
            Needs { census: true, ..Needs::in_order(Samples::default(), BlockTimes::NoteSwitches) };
        let mut prepared = prepare(reading, needs, &reading.progress(1))?;
        let mut ring_losses = all_losses(recording, &mut prepared.scan.ring_losses);
        let losses = Losses::new(&ring_losses);
        // A late switch-in makes intervals uncertain, and loses no record.
        ring_losses.retain(|loss| loss.thread.is_none());
        let roles = Roles::of(recording, &prepared.scan.samples_by_event);
        let recorded_cpus = std::mem::replace(&mut prepared.scan.recorded_cpus, RecordedCpus::Any);
        let dimensions = Dimensions::of(&prepared);
        Ok(TableSource {
            recording: recording.clone(),
            options: reading.options.clone(),
            prepared,
            roles,
            ring_losses,
            losses,
            recorded_cpus,
            dimensions,
            stacks: StackTable::default(),
            troubles: Troubles::default(),
            fetched: Mutex::default(),
            unwind_ends: Mutex::default(),
            wait_classes: Mutex::default(),
            wait_objects: WaitObjects::default(),
        })
    }
}

impl TableSource {
    /// The reading of each stream.
    fn reading(&self) -> Reading<'_> {
        Reading::open(&self.recording, &self.options)
    }

    /// The recording that was opened.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The architecture of the recorded programs, as far as it is known.
    pub fn arch(&self) -> Option<Arch> {
        self.prepared.arch
    }

    /// The recording's header.
    pub fn info(&self) -> RecordingInfo {
        let mut info = describe::header_of(&self.recording).recording;
        let times = self.prepared.scan.plans.iter().flat_map(|plan| &plan.blocks);
        let times = times.filter_map(|block| block.times);
        let span = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        (info.first_sample, info.last_sample) = (span.map(|span| span.0), span.map(|span| span.1));
        info
    }

    /// Everything that is known to be missing.
    pub fn losses(&self) -> LossReport {
        let loss = &self.prepared.scan.loss;
        LossReport {
            lost_records: loss.lost_records,
            lost_chunks: loss.lost_chunks,
            lost_samples: loss.lost_samples,
            paused_ns: loss.paused_ns,
            elapsed_ns: 0,
            truncated_bytes: loss.truncated_bytes,
        }
    }

    /// Samples of all events.
    pub fn nr_samples(&self) -> u64 {
        self.prepared.scan.samples_by_event.iter().sum()
    }

    /// Defects of the recording. There may be more when a stream was read.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = describe::scan_warnings(&self.recording, &self.prepared);
        warnings.extend(self.roles.warnings.iter().cloned());
        warnings.extend(self.fetched.lock().iter().flat_map(|it| it.iter().flatten()).cloned());
        let troubles = &self.troubles;
        if let samples @ 1.. = troubles.unreadable.load(Ordering::Relaxed) {
            warnings.push(Warning::UnreadableSamples { samples });
        }
        if let stacks @ 1.. = troubles.foreign_stacks.load(Ordering::Relaxed) {
            warnings.push(Warning::ForeignStacks { stacks });
        }
        if let samples @ 1.. = troubles.disordered.load(Ordering::Relaxed) {
            warnings.push(Warning::DisorderedSamples { samples });
        }
        if let chains @ 1.. = self.stacks.cut_chains() {
            let max_callsites = MAX_CALLSITES;
            warnings.push(Warning::ChainsCutAtCallsites { chains, max_callsites });
        }
        warnings
    }

    /// Fetches the debug companions that are wanted and not at hand, once.
    fn fetch_companions(&self) -> Result<(), LoadError> {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.is_none() {
            let (reading, question) = (self.reading(), &Samples::default());
            *fetched = Some(fetch_first(reading, question, &self.prepared, &reading.progress(1))?);
        }
        Ok(())
    }

    /// Hands batches of waits and runs to `take`, in the order in which they end, until it says no. Without `stacks`,
    /// call sites are absent.
    ///
    /// # Errors
    /// The recording changed, or `take` said no.
    pub fn intervals(
        &self,
        stacks: bool,
        take: &mut dyn FnMut(&mut Vec<IntervalRow>) -> bool,
    ) -> Result<(), StreamEnd> {
        if !self.has_switches() {
            return Ok(());
        }
        if stacks {
            self.fetch_companions()?;
        }
        let stream = IntervalStream {
            reading: self.reading(),
            prepared: &self.prepared,
            roles: &self.roles,
            losses: &self.losses,
            recorded_cpus: &self.recorded_cpus,
            table: &self.stacks,
            stacks,
        };
        let disordered = stream.run(|| StreamEnd::Stopped, take)?;
        self.troubles.disordered.fetch_max(disordered, Ordering::Relaxed);
        Ok(())
    }

    fn sources(&self) -> Sources {
        let counts = &self.prepared.scan.counts;
        let records = counts.of(record_type::SWITCH) + counts.of(record_type::SWITCH_CPU_WIDE);
        self.roles.sources(&self.recording, records)
    }

    /// Whether context switches were recorded.
    pub fn has_switches(&self) -> bool {
        self.sources().has_switches()
    }

    /// Whether wake-ups were recorded.
    pub fn has_wakeups(&self) -> bool {
        self.sources().wakeups
    }

    /// The number of the event over whose samples CPU time is distributed.
    pub fn cpu_time_event(&self) -> Option<u32> {
        self.sources().samples.map(|event| event.0)
    }

    /// The number of the thread that an interval belongs to, or of a waker.
    pub fn thread_of(&self, (pid, tid): (Pid, Tid)) -> Option<u32> {
        self.dimensions.any_thread(pid, tid)
    }

    /// A frame by its number.
    pub fn frame(&self, frame: u32) -> Option<FrameRow> {
        self.stacks.frame(frame)
    }

    /// A call site by its number.
    pub fn callsite(&self, callsite: u32) -> Option<CallsiteRow> {
        self.stacks.callsite(callsite)
    }

    /// The class of a wait; with the stack left out, that of a voluntary one is unknown.
    pub fn wait_class(&self, wait: &WaitRow) -> WaitClass {
        let by_stack =
            || wait.callsite.map_or(WaitClass::Unknown, |callsite| self.class_at(callsite));
        let by_stack = || by_stack().of_object(wait.object.brings());
        WaitClass::without_stack(wait.kind, wait.state).unwrap_or_else(by_stack)
    }

    /// The number of the object of a voluntary wait; `None` where it is not recorded.
    pub fn object_of(&self, wait: &WaitRow) -> Option<u32> {
        let key = Some(wait.object).filter(|_| wait.kind == WaitKind::Sync)?;
        self.wait_objects.number(&self.prepared, wait.task.0, key, wait.start)
    }

    /// An object by its number.
    pub fn object(&self, number: u32) -> Option<NamedObject> {
        self.wait_objects.get(number)
    }

    fn class_at(&self, callsite: u32) -> WaitClass {
        let mut classes = self.wait_classes.lock().unwrap_or_else(PoisonError::into_inner);
        *classes.entry(callsite).or_insert_with(|| {
            let chain = self.stacks.chain(callsite);
            let named =
                chain.iter().map(|frame| NamedFrame { name: &frame.name, kernel: frame.is_kernel });
            classify(&named.collect::<Vec<_>>())
        })
    }

    /// Whether all call sites and frames have their numbers.
    pub fn stacks_are_complete(&self) -> bool {
        self.unwind_ends.lock().is_ok_and(|ends| ends.is_some())
    }

    /// How often unwinding ended for each reason; `None` before all samples were read with their call chains.
    pub fn unwind_ends(&self) -> Option<Vec<(StopReason, u64)>> {
        self.unwind_ends.lock().ok()?.clone()
    }

    /// Reads all samples with their call chains, unless that was done. `goes_on` may end it.
    ///
    /// # Errors
    /// The recording changed, or `goes_on` said no.
    pub fn complete_stacks(&self, continues: &mut dyn FnMut() -> bool) -> Result<(), StreamEnd> {
        if self.stacks_are_complete() {
            return Ok(());
        }
        let wanted = SampleWanted { stacks: true, ..SampleWanted::default() };
        self.samples(&wanted, &mut |_| continues())
    }
}
