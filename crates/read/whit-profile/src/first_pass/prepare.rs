//! First pass and process model: what samples are looked up in.

use crate::blocks::deferred::{ChainedBlock, DeferredChains, UserChain};
use crate::blocks::stream_plan::BlockTimes;
use crate::call_chain::chain::{ChainContext, KEPT_DUMP_BYTES};
use crate::error::LoadError;
use crate::facets::{WantedData, WantedTrace};
use crate::first_pass::first_seen::FirstSeen;
use crate::first_pass::leaf_sums::LeafSums;
use crate::first_pass::sample_filter::SampleFilter;
use crate::first_pass::scan::{Scan, ScanWanted, scan};
use crate::loss_window::LossWindow;
use crate::machine_model::binaries::Binaries;
use crate::machine_model::cgroups::Cgroups;
use crate::machine_model::clock_relation::ClockRelation;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::DsoTable;
use crate::machine_model::kernel_load::KernelLoad;
use crate::machine_model::kernel_reference::kernel_reference;
use crate::machine_model::machine::RecordedMachine;
use crate::machine_model::own_names::read_own;
use crate::machine_model::process::ProcessModel;
use crate::machine_model::replay::{Replayed, replay};
use crate::object_table::ObjectTable;
use crate::parallelism::ParallelismOf;
use crate::progress::Progress;
use crate::reading::{ReadOptions, Reading};
use crate::samples::Samples;
use crate::time_filter::TimeRanges;
use crate::tracepoints::Tracepoints;
use crate::warning::Warning;
use std::sync::Arc;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::event_table::EventTable;
use whit_perfdata::feature::{Feature, Features};
use whit_perfdata::read_split::ReadSplit;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type;
use whit_perfdata::sample::Sample;
use whit_types::{Arch, BuildId, TimestampNs};

/// The result of the first pass, made ready for looking samples up.
pub(crate) struct Prepared {
    pub(crate) events: EventTable,
    pub(crate) scan: Scan,
    pub(crate) deferred: DeferredChains,
    pub(crate) model: ProcessModel,
    /// Mappings of data too, where they were recorded and somebody asks for the addresses of data.
    pub(crate) data: Option<ProcessModel>,
    pub(crate) cgroups: Cgroups,
    pub(crate) dsos: DsoTable,
    pub(crate) binaries: Binaries,
    pub(crate) kernel_load: Arc<KernelLoad>,
    pub(crate) arch: Option<Arch>,
    pub(crate) time: Option<TimeRanges>,
    /// The first and the last time stamp, where a part of the time was chosen.
    pub(crate) span: Option<(TimestampNs, TimestampNs)>,
    pub(crate) filter: SampleFilter,
    /// Where rows are told apart by the texts of tracepoints.
    pub(crate) tracepoints: Tracepoints,
    /// The objects of waits that the second pass has met.
    pub(crate) wait_objects: ObjectTable,
    /// Chains stand in the place of dumps.
    was_chained: bool,
    /// When records were lost, where somebody asks.
    pub(crate) loss_windows: Vec<LossWindow>,
}

impl Prepared {
    /// Path of a binary; `None` for code outside of all mappings.
    pub(crate) fn dso_path(&self, dso: DsoIndex) -> Option<&Arc<str>> {
        (dso != DsoIndex::UNKNOWN).then(|| &self.dsos.get(dso).path)
    }

    /// The user call chain that a sample of `block` awaits.
    pub(crate) fn deferred_chain<'r>(
        &'r self,
        sample: &Sample<'_>,
        block: ChainedBlock<'r>,
    ) -> Option<UserChain<'r>> {
        self.deferred.find(&self.events, sample, block)
    }

    /// An error where a walk came to a part of a dump that could not be read.
    pub(crate) fn check_dumps(&self) -> Result<(), LoadError> {
        let failure = self.scan.plans.iter().find_map(|plan| plan.stream.take_failure());
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    pub(crate) fn chain_context(&self, max_stack: usize) -> ChainContext<'_> {
        ChainContext {
            model: &self.model,
            dsos: &self.dsos,
            binaries: &self.binaries,
            arch: self.arch,
            max_stack,
            was_chained: self.was_chained,
        }
    }
}

/// The parts of the first pass that a question needs.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// How samples are read in the second pass.
    pub(crate) samples: Samples,
    /// Which notes the pass takes of blocks.
    pub(crate) block_times: BlockTimes,
    /// A census of the threads, CPUs and cgroups.
    pub(crate) census: bool,
    /// Samples are written again: those with counts of other events stay whole.
    pub(crate) keeps_reads_whole: bool,
}

impl Needs {
    /// No more than any second pass needs.
    pub(crate) fn of(samples: Samples) -> Needs {
        Needs { samples, block_times: BlockTimes::Skip, census: false, keeps_reads_whole: false }
    }

    /// The same with blocks in order of time.
    pub(crate) fn in_order(samples: Samples, block_times: BlockTimes) -> Needs {
        Needs { block_times, ..Needs::of(samples) }
    }
}

/// First pass and process model.
pub(crate) fn prepare(
    reading: Reading<'_>,
    needs: Needs,
    progress: &Progress<'_>,
) -> Result<Prepared, LoadError> {
    let Reading {
        recording, options: ReadOptions { selection, names, threads, max_stack }, ..
    } = reading;
    let Needs { samples: question, block_times, census, keeps_reads_whole } = needs;
    let split = ReadSplit::of(&recording.events).filter(|_| !keeps_reads_whole).map(Arc::new);
    let events = match &split {
        Some(split) => split.events().clone(),
        None => EventTable::new(&recording.events),
    };
    let wants_data = matches!(block_times, BlockTimes::Note | BlockTimes::NoteRecords(_))
        || question.facets.data != WantedData::Nothing;
    let skips = block_times == BlockTimes::Skip;
    let block_times =
        if selection.time.is_some() && skips { BlockTimes::Note } else { block_times };
    let mut config = names.symbols.clone();
    config.inlines &= question.shows_inlined();
    config.lines &= !question.leaves;
    config.kernel.reference = kernel_reference(recording);
    config.kernel.build_id = kernel_build_id(&recording.features).or(config.kernel.build_id);
    let (own, defect) = read_own(recording);
    config.embedded = own.or(config.embedded.take());
    let symbolizer = names.symbolizer(config);
    let wants_names = question.names_kernel && has_kernel_samples(recording);
    let kernel_load = if *threads > 1 && wants_names {
        KernelLoad::start(symbolizer.clone())
    } else {
        Arc::default()
    };
    let bounds = (*threads, *max_stack);
    let first_seen =
        question.parallelism.map(|of| FirstSeen::new(recording, of == ParallelismOf::Cgroup));
    let kept_dump_bytes = if question.leaves { 0 } else { KEPT_DUMP_BYTES };
    let leaves = LeafSums::new(recording, &events, selection, &question);
    let wanted = ScanWanted { block_times, first_seen, census, leaves, kept_dump_bytes, split };
    let mut scan = scan(recording, &events, wanted, bounds, progress)?;
    scan.warnings.extend(defect);
    let history = std::mem::take(&mut scan.budget).finish();
    scan.warnings.extend(history.and_then(|it| it.reduction()).map(Warning::Reduced));
    let recorded_chains = scan.counts.of(record_type::CALLCHAIN_DEFERRED);
    let awaited = scan.awaited_chains.take();
    let deferred = DeferredChains::join(&scan.plans, &events, awaited, recorded_chains, bounds)?;
    let changes = std::mem::take(&mut scan.changes);
    let Replayed { model, data, dsos, cgroups } = replay(changes, &recording.features, wants_data);
    let machine = RecordedMachine::of(recording, names.machine.as_ref(), &scan.clocks);
    let clock = ClockRelation::new(&recording.events, scan.clocks.clone());
    let binaries = Binaries::new(&dsos, &model, symbolizer, &machine, clock);
    let times = scan.plans.iter().flat_map(|plan| &plan.blocks).filter_map(|block| block.times);
    let span = times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (first, last) = span.unwrap_or((TimestampNs(0), TimestampNs(u64::MAX)));
    let time = selection.time.as_ref().map(|filter| filter.resolve(first, last));
    let arch = recorded_arch(&recording.features);
    let filter = SampleFilter::new(selection, &cgroups);
    let tracepoints = match question.facets.trace {
        WantedTrace::Nothing => Tracepoints::default(),
        wanted => Tracepoints::of(recording, wanted),
    };
    Ok(Prepared {
        events,
        scan,
        deferred,
        model,
        cgroups,
        data,
        dsos,
        binaries,
        kernel_load,
        arch,
        time,
        span,
        filter,
        tracepoints,
        wait_objects: ObjectTable::default(),
        was_chained: recording.features.unwound().is_some(),
        loss_windows: Vec::new(),
    })
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
