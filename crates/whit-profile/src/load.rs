//! Loading a recording: first pass, process model, second pass, symbols.

use crate::aggregate::Aggregate;
use crate::binaries::Binaries;
use crate::chain::{ChainContext, DEFAULT_MAX_STACK};
use crate::dso_table::{DsoIndex, DsoTable};
use crate::kernel_load::KernelLoad;
use crate::kernel_reference::kernel_reference;
use crate::machine::{RecordedMachine, ThisMachine};
use crate::model::Profile;
use crate::process::ProcessModel;
use crate::progress::Progress;
use crate::replay::{Replayed, replay};
use crate::sample_sums::SampleSums;
use crate::scan::{BlockTimes, Scan, scan};
use crate::stops::StopCounts;
use crate::time_filter::{TimeFilter, TimeRange};
use crate::work::WorkQueue;
use std::sync::Arc;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::{Feature, Features};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, record_type};
use whit_perfdata::stream::{BlockReader, StreamError};
use whit_symbolize::{Symbolizer, SymbolizerConfig};
use whit_types::{Arch, BuildId, Pid, Tid, TimestampNs};

/// Why a recording could not be loaded at all. What only spoils a part of it is a warning.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A stream that was readable in the first pass no longer is.
    #[error("the recording changed while it was read: {0}")]
    Changed(#[from] StreamError),
    /// A decoding thread panicked.
    #[error("a decoding thread ended unexpectedly; please report this with the recording")]
    WorkerDied,
}

/// What to load and how.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Decoding threads; at least one.
    pub threads: usize,
    /// Tell samples on different CPUs apart.
    pub by_cpu: bool,
    /// Part of the time.
    pub time: Option<TimeFilter>,
    /// Only these processes; all where empty.
    pub pids: Vec<Pid>,
    /// Only these threads; all where empty.
    pub tids: Vec<Tid>,
    /// Longest call chain.
    pub max_stack: usize,
    /// Where symbols come from.
    pub symbols: SymbolizerConfig,
    /// This machine: where it made the recording, files are told from others at their paths by their numbers,
    /// and opened through processes that still run. `None` takes files by their paths.
    pub machine: Option<ThisMachine>,
}

impl LoadOptions {
    /// Everything, with perf's bounds.
    pub fn new(threads: usize, symbols: SymbolizerConfig) -> LoadOptions {
        LoadOptions {
            threads: threads.max(1),
            by_cpu: false,
            time: None,
            pids: Vec::new(),
            tids: Vec::new(),
            max_stack: DEFAULT_MAX_STACK,
            symbols,
            machine: None,
        }
    }

    pub(crate) fn wants(&self, pid: Pid, tid: Tid) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }
}

/// What the first pass found, made ready for looking samples up.
pub(crate) struct Prepared {
    pub(crate) events: EventTable,
    pub(crate) scan: Scan,
    pub(crate) model: ProcessModel,
    /// Mappings of data too, where they were recorded and samples are read one by one.
    pub(crate) data: Option<ProcessModel>,
    pub(crate) dsos: DsoTable,
    pub(crate) binaries: Binaries,
    pub(crate) kernel_load: Arc<KernelLoad>,
    pub(crate) arch: Option<Arch>,
    pub(crate) time: Option<TimeRange>,
}

impl Prepared {
    /// Path of a binary; `None` for what no mapping explains.
    pub(crate) fn dso_path(&self, dso: DsoIndex) -> Option<&Arc<str>> {
        (dso != DsoIndex::UNKNOWN).then(|| &self.dsos.get(dso).path)
    }

    pub(crate) fn chain_context(&self, max_stack: usize) -> ChainContext<'_> {
        ChainContext {
            model: &self.model,
            dsos: &self.dsos,
            binaries: &self.binaries,
            arch: self.arch,
            max_stack,
        }
    }
}

/// First pass and process model.
pub(crate) fn prepare(
    recording: &Recording,
    options: &LoadOptions,
    block_times: BlockTimes,
    progress: &Progress<'_>,
) -> Result<Prepared, LoadError> {
    let events = EventTable::new(&recording.events);
    // Only single samples show addresses of data.
    let wants_data = block_times == BlockTimes::Note;
    let relative_time = options.time.as_ref().is_some_and(TimeFilter::is_relative);
    let skips = block_times == BlockTimes::Skip;
    let block_times = if relative_time && skips { BlockTimes::Note } else { block_times };
    let mut config = options.symbols.clone();
    config.kernel.reference = kernel_reference(recording);
    config.kernel.build_id = kernel_build_id(&recording.features).or(config.kernel.build_id);
    let symbolizer = Arc::new(Symbolizer::new(config));
    let kernel_load = if options.threads > 1 && has_kernel_samples(recording) {
        KernelLoad::start(symbolizer.clone())
    } else {
        Arc::default()
    };
    let mut scan = scan(recording, &events, block_times, options.threads, progress)?;
    let changes = std::mem::take(&mut scan.changes);
    let Replayed { model, data, dsos } = replay(changes, &recording.features, wants_data);
    let machine = RecordedMachine::of(recording, options.machine.as_ref());
    let binaries = Binaries::new(&dsos, &model, symbolizer, &machine);
    let time = options.time.as_ref().map(|filter| {
        let times = scan.plans.iter().flat_map(|plan| &plan.blocks).filter_map(|b| b.times);
        let (first, last) = times
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((TimestampNs(0), TimestampNs(u64::MAX)));
        filter.resolve(first, last)
    });
    let arch = recorded_arch(&recording.features);
    Ok(Prepared { events, scan, model, data, dsos, binaries, kernel_load, arch, time })
}

fn has_kernel_samples(recording: &Recording) -> bool {
    recording.events.iter().any(|event| !event.attr.has(AttrFlags::EXCLUDE_KERNEL))
}

fn kernel_build_id(features: &Features) -> Option<BuildId> {
    let entries = features.build_ids();
    entries.into_iter().find(|entry| entry.path.starts_with("[kernel")).map(|entry| entry.id)
}

fn recorded_arch(features: &Features) -> Option<Arch> {
    match features.string(Feature::ARCH) {
        Some(machine) => Arch::from_uname(&machine),
        None => Arch::native(),
    }
}

/// Loads a whole recording into a profile.
pub fn load(
    recording: &Recording,
    options: &LoadOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Profile, LoadError> {
    let stream_bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let progress = Progress::new(2 * stream_bytes, report_progress);
    let prepared = prepare(recording, options, BlockTimes::Skip, &progress)?;
    let (sums, stops) = second_pass(recording, options, &prepared, &progress)?;
    Ok(crate::finish::finish(recording, options, prepared, sums, &stops))
}

fn second_pass(
    recording: &Recording,
    options: &LoadOptions,
    prepared: &Prepared,
    progress: &Progress<'_>,
) -> Result<(Aggregate, StopCounts), LoadError> {
    let queue = WorkQueue::new(&prepared.scan.plans);
    let worker = || Worker::new(recording, options, prepared).run(&queue, progress);
    let (own, others) = prepared.kernel_load.run_beside(options.threads, worker);
    let (mut sums, mut stops) = own?;
    for other in others {
        let (other, other_stops) = other.map_err(|_| LoadError::WorkerDied)??;
        _ = sums.merge(other);
        stops.add(&other_stops);
    }
    Ok((sums, stops))
}

/// One thread of the second pass.
struct Worker<'a> {
    options: &'a LoadOptions,
    prepared: &'a Prepared,
    sums: SampleSums<'a>,
}

impl<'a> Worker<'a> {
    fn new(recording: &'a Recording, options: &'a LoadOptions, prepared: &'a Prepared) -> Self {
        Worker { options, prepared, sums: SampleSums::new(recording, options, prepared) }
    }

    fn run(
        mut self,
        queue: &WorkQueue<'_>,
        progress: &Progress<'_>,
    ) -> Result<(Aggregate, StopCounts), LoadError> {
        let (mut reader, mut block) = (BlockReader::default(), Vec::new());
        while let Some(position) = queue.next(&mut reader, &mut block, progress)? {
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                if record.header.kind == record_type::SAMPLE {
                    self.sample(record, position + (block.len() - rest.len()) as u64);
                }
                rest = tail;
            }
        }
        Ok(self.sums.finish())
    }

    fn sample(&mut self, record: RawRecord<'_>, position: u64) {
        let Some(parsed) = self.sums.parse(record) else { return };
        let time = parsed.sample.time.unwrap_or(TimestampNs(position));
        let is_wanted = self.options.wants(parsed.pid, parsed.tid);
        if is_wanted && self.prepared.time.is_none_or(|range| range.contains(time)) {
            self.sums.add(&parsed, time);
        }
    }
}
