//! Samples one by one, in order of time, with their call chains named.
//!
//! Batches of samples are shared out to threads; each formats its part into a buffer, and the
//! buffers are written in order.

use crate::chain::{Chain, ChainEntry, ChainMaker, CodePlace};
use crate::kernel_names::KernelNames;
use crate::load::{LoadError, LoadOptions, Prepared};
use crate::ordered::{OrderedSamples, PendingSample, prepare_ordered};
use crate::place_symbols::{NamedCode, PlaceNamer};
use crate::progress::Progress;
use rustc_hash::FxHashMap;
use std::io::Write;
use std::sync::Arc;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::reader::Recording;
use whit_perfdata::sample::Sample;
use whit_types::{Avma, Pid, Tid, TimestampNs};

/// Named places that one thread remembers.
const MAX_NAME_CACHE: usize = 1 << 18;

/// A frame of a sample: one physical function, or one that was inlined.
#[derive(Clone, Debug)]
pub struct ScriptedFrame {
    /// The address in the process, as recorded or unwound.
    pub address: Avma,
    /// Function, where known.
    pub function: Option<Arc<str>>,
    /// Distance from the function's start; zero for inlined functions.
    pub function_offset: u64,
    /// Path of the binary; `None` where no mapping explains the address.
    pub dso: Option<Arc<str>>,
    /// Source file and line.
    pub source: Option<(Arc<str>, u32)>,
    /// True where the function was inlined into that of the next frame.
    pub inlined: bool,
}

/// A sample with everything that can be said of it.
#[derive(Clone, Copy)]
pub struct ScriptedSample<'a> {
    /// Index of the event.
    pub event: usize,
    /// The event.
    pub event_desc: &'a EventDesc,
    /// Command name; empty where unknown.
    pub comm: &'a str,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// Time.
    pub time: TimestampNs,
    /// Period, from the sample or from the event's attributes.
    pub period: u64,
    /// All that was recorded.
    pub sample: &'a Sample<'a>,
    /// Call chain, innermost first, inlined functions before those that they were inlined into.
    pub frames: &'a [ScriptedFrame],
    /// The kernel function at an address, and the distance from its start.
    pub kernel_function_at: &'a dyn Fn(u64) -> Option<(Arc<str>, u64)>,
}

/// Why printing stopped.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The output could not be written.
    #[error("cannot write the samples: {0}")]
    Write(#[from] std::io::Error),
}

/// What was met on the way.
#[derive(Clone, Debug, Default)]
pub struct ScriptSummary {
    /// Samples given out.
    pub samples: u64,
    /// What to warn of.
    pub warnings: Vec<String>,
}

/// Formats one sample into a buffer.
pub type Format<'f> = &'f (dyn Fn(&ScriptedSample<'_>, &mut Vec<u8>) + Sync);

/// Hands every sample to `format` and writes what that appends, in order of time.
pub fn script(
    recording: &Recording,
    options: &LoadOptions,
    report_progress: &(dyn Fn(u64, u64) + Sync),
    format: Format<'_>,
    out: &mut dyn Write,
) -> Result<ScriptSummary, ScriptError> {
    let stream_bytes: u64 = recording.streams.iter().map(|stream| stream.size_bytes()).sum();
    let progress = Progress::new(2 * stream_bytes, report_progress);
    let prepared = prepare_ordered(recording, options, &progress)?;
    let mut summary = ScriptSummary::default();
    summary.warnings.extend(crate::describe::scan_warnings(recording, &prepared));
    let mut workers: Vec<_> =
        (0..options.threads).map(|_| Scripter::new(recording, options, &prepared)).collect();
    let mut samples = OrderedSamples::new(&prepared, &progress);
    loop {
        let batch = samples.next_batch()?;
        if batch.is_empty() {
            break;
        }
        summary.samples += format_batch(&batch, &mut workers, format, out)?;
    }
    let unreadable = workers.iter().map(|worker| worker.unreadable_samples).sum();
    let mut counted = |count: u64, text: &str| {
        if count > 0 {
            summary.warnings.push(format!("{count} {text}"));
        }
    };
    counted(unreadable, crate::describe::UNREADABLE_SAMPLES);
    counted(samples.disordered(), "samples stand behind later ones: their order needs more memory");
    Ok(summary)
}

fn format_batch(
    batch: &[PendingSample],
    workers: &mut [Scripter<'_>],
    format: Format<'_>,
    out: &mut dyn Write,
) -> Result<u64, ScriptError> {
    let share = batch.len().div_ceil(workers.len());
    let parts = batch.chunks(share).zip(workers);
    std::thread::scope(|scope| {
        let handles: Vec<_> = parts
            .map(|(part, worker)| scope.spawn(move || worker.format_all(part, format)))
            .collect();
        let mut count = 0;
        for handle in handles {
            let (text, formatted) = handle.join().map_err(|_| LoadError::WorkerDied)?;
            out.write_all(&text)?;
            count += formatted;
        }
        Ok(count)
    })
}

struct Scripter<'a> {
    recording: &'a Recording,
    options: &'a LoadOptions,
    prepared: &'a Prepared,
    maker: ChainMaker<'a>,
    namer: PlaceNamer<'a>,
    names: FxHashMap<CodePlace, Arc<NamedCode>>,
    chain: Chain,
    frames: Vec<ScriptedFrame>,
    unreadable_samples: u64,
    kernel_names: KernelNames<'a>,
}

impl<'a> Scripter<'a> {
    fn new(recording: &'a Recording, options: &'a LoadOptions, prepared: &'a Prepared) -> Self {
        Scripter {
            recording,
            options,
            prepared,
            maker: ChainMaker::new(prepared.chain_context(options.max_stack)),
            namer: PlaceNamer::new(&prepared.dsos, &prepared.binaries),
            names: FxHashMap::default(),
            chain: Chain::default(),
            frames: Vec::new(),
            unreadable_samples: 0,
            kernel_names: KernelNames::new(prepared),
        }
    }

    fn format_all(&mut self, samples: &[PendingSample], format: Format<'_>) -> (Vec<u8>, u64) {
        let mut text = Vec::new();
        let formatted = samples.iter().filter_map(|s| self.format(s, format, &mut text)).count();
        (text, formatted as u64)
    }

    fn format(
        &mut self,
        pending: &PendingSample,
        format: Format<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let record = pending.record();
        let prepared = self.prepared;
        let event = prepared.events.event_of_sample(record.body)?;
        let Some(sample) = prepared.events.layout(event)?.parse(record.body) else {
            self.unreadable_samples += 1;
            return None;
        };
        let (pid, tid) = sample.pid_tid.unwrap_or((Pid(-1), Tid(-1)));
        if !self.options.wants(pid, tid) {
            return None;
        }
        let event_desc = &self.recording.events[event];
        let attr = &event_desc.attr;
        let epoch = prepared.model.space_at(pid, pending.time);
        self.maker.make(&sample, record.header.cpu_mode(), attr, epoch, &mut self.chain);
        self.frames.clear();
        for entry in std::mem::take(&mut self.chain.entries) {
            let place = self.maker.locate(entry, pid, epoch, pending.time);
            self.add_frames(entry, place);
        }
        let comm = prepared.model.comm_at(pid, tid, pending.time);
        let comm = comm.and_then(|comm| prepared.model.comm_names().get(comm.0 as usize));
        let fixed = if attr.has(AttrFlags::FREQ) { 1 } else { attr.sample_period_or_freq };
        let scripted = ScriptedSample {
            event,
            event_desc,
            comm: comm.map_or("", |comm| comm),
            pid,
            tid,
            time: pending.time,
            period: sample.period.unwrap_or(fixed),
            sample: &sample,
            frames: &self.frames,
            kernel_function_at: &|address| self.kernel_names.function_at(address),
        };
        format(&scripted, out);
        Some(())
    }

    fn add_frames(&mut self, entry: ChainEntry, place: CodePlace) {
        let named = self.name(place);
        let dso = self.prepared.dsos.get(place.dso);
        let dso = (place.dso != crate::dso_table::DsoIndex::UNKNOWN).then(|| dso.path.clone());
        let frame = |function, function_offset, source, inlined| ScriptedFrame {
            address: entry.address,
            function,
            function_offset,
            dso: dso.clone(),
            source,
            inlined,
        };
        for inlined in named.inlined.iter().rev() {
            self.frames.push(frame(Some(inlined.name.clone()), 0, inlined.source.clone(), true));
        }
        let from_start = named.address.0.wrapping_sub(named.function_start.0);
        let offset = from_start.wrapping_add(u64::from(entry.is_return_address));
        self.frames.push(frame(named.function.clone(), offset, named.source.clone(), false));
    }

    fn name(&mut self, place: CodePlace) -> Arc<NamedCode> {
        if let Some(named) = self.names.get(&place) {
            return named.clone();
        }
        if self.names.len() >= MAX_NAME_CACHE {
            self.names.clear();
        }
        let named = Arc::new(self.namer.name(&place));
        self.names.insert(place, named.clone());
        named
    }
}
