//! An output that nothing is recorded into any more.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Instant, SystemTime};

use whit_host::roots::Roots;
use whit_perfdata::attr::{AttrFlags, pmu_type};
use whit_perfdata::feature::{CompressedDesc, EventDesc, Feature, Features, RecordedSpan};
use whit_perfdata::ledger::Ledger;
use whit_sys::usage::CpuUsage;
use whit_types::Pid;

use super::OutputFile;
use crate::event::software;
use crate::loss::RingCounts;
use crate::notice::{Listener, Notice};
use crate::output::OutputName;
use crate::plan::OutputPlan;
use crate::session::code::MappedCode;
use crate::session::context::SessionContext;
use crate::session::ledger::{Ending, Meters, OutputCosts};
use crate::session::reader_share::ReaderShare;
use crate::session::synthesis::SynthesisContext;
use crate::session::unreported_loss::{Losses, UnreportedLoss};
use crate::stream::{DECODED_BYTES_MAX, Sink, StreamSink};
use crate::summary::Summary;

/// An output with the share of each reader.
pub(in crate::session) struct EndedOutput {
    pub(super) file: OutputFile,
    pub(super) shares: Vec<ReaderShare>,
    /// Why it could not be written to its end.
    pub(super) failed: Option<io::Error>,
}

impl EndedOutput {
    pub(in crate::session) fn shares(&self) -> &[ReaderShare] {
        &self.shares
    }

    /// The recorder's CPU time since the output began.
    pub(in crate::session) fn used_ns(&self) -> u64 {
        self.file.used_ns()
    }

    pub(in crate::session) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes a record for each ring with losses that no other record reports.
    pub(in crate::session) fn write_losses(
        &mut self,
        losses: Losses<'_>,
        found: &[UnreportedLoss],
    ) {
        if !self.has_failed() {
            self.failed = losses.write(&mut self.shares, found).err();
        }
    }

    /// Writes the records that belong at the end of an output, and waits until everything is written.
    pub(in crate::session) fn settle(
        &mut self,
        context: &SynthesisContext<'_>,
        listener: &mut dyn Listener,
    ) {
        if !self.has_failed()
            && let Some(main) = self.main_sink()
        {
            let written = match context.is_at_end() {
                true => context.write(main, listener).map(Some),
                false => context.write_later_cgroups(main).map(|()| None),
            };
            match written {
                Ok(Some(cut_processes)) => self.file.cut_processes = cut_processes,
                Ok(None) => {}
                Err(error) => self.failed = Some(error.0),
            }
        }
        let streams = self.shares.iter_mut().map(|share| &mut share.sink);
        for sink in self.file.main.iter_mut().chain(streams) {
            // Where one stream has ended early, the others are written all the same.
            let finished = sink.finish();
            self.failed = self.failed.take().or(finished.err().map(|error| error.0));
        }
    }

    /// The stream behind the header.
    fn main_sink(&mut self) -> Option<&mut StreamSink> {
        self.file.main.as_mut().or(self.shares.first_mut().map(|share| &mut share.sink))
    }

    /// Its cost.
    pub(in crate::session) fn ledger(
        &self,
        meters: &Meters,
        ending: &Ending,
        unreported: &[UnreportedLoss],
        roots: &Roots,
    ) -> Ledger {
        let (file, now) = (&self.file, Instant::now());
        let costs = OutputCosts {
            shares: &self.shares,
            main: file.main.as_ref().map(StreamSink::counts),
            unreported,
            ending,
            now,
            wall_ns: file.cost_baseline.age_ns(now),
            used: file.cost_baseline.used(),
        };
        Ledger {
            setup_ns: file.set_up_ns,
            setup_cpu_ns: file.set_up_cpu_ns,
            cut_processes: file.cut_processes,
            ..costs.ledger(meters, &file.metered_before, roots)
        }
    }

    pub(in crate::session) fn state_spans(&mut self, spans: Option<Vec<RecordedSpan>>) {
        self.file.state_spans(spans);
    }

    /// Writes records of the engine's at the end, and notes which processes have functions of interpreters.
    pub(in crate::session) fn write_last(&mut self, records: &[u8], interpreted: BTreeSet<Pid>) {
        self.file.interpreted = interpreted;
        if !self.has_failed()
            && !records.is_empty()
            && let Some(main) = self.main_sink()
        {
            self.failed = main.records(records).err().map(|error| error.0);
        }
    }

    /// Completes the header, or saves the records before a failed write, and gives the output its name. Says why it could not
    /// be written to its end.
    pub(in crate::session) fn close(
        mut self,
        context: &SessionContext<'_>,
        mut ledger: Ledger,
        listener: &mut dyn Listener,
    ) -> (OutputName, Summary, Option<io::Error>) {
        let plan = &context.plan.output;
        self.complete_features(context, &mut ledger, listener);
        let main_bytes = self.main_sink().map_or(0, |sink| sink.file().size_bytes());
        let EndedOutput { file, failed, .. } = self;
        let OutputFile { recording, name: mut output, features, .. } = file;
        let mut report = |error: &io::Error| {
            let output = output.to_string();
            listener.notice(Notice::WriteFailed { output, errno: error.to_string() });
        };
        if let Some(error) = &failed {
            report(error);
        }
        let (size_bytes, failed) = match recording.finish(main_bytes, &features, failed.is_some()) {
            Ok(size) => (size, failed),
            Err(error) => {
                report(&error);
                (None, failed.or(Some(error)))
            }
        };
        stamp(&mut output, plan, listener);
        let size_bytes = size_bytes.unwrap_or(ledger.written_bytes).max(main_bytes);
        let path = output.created().map(Path::to_owned);
        let output_name = output.to_string();
        let summary = Summary { output: output_name, path, size_bytes, ledger, unrecorded: None };
        (output, summary, failed)
    }

    fn complete_features(
        &mut self,
        context: &SessionContext<'_>,
        ledger: &mut Ledger,
        listener: &mut dyn Listener,
    ) {
        let plan = &context.plan.output;
        let first = rings(&self.shares).filter_map(|c| c.first_sample).min();
        let last = rings(&self.shares).filter_map(|c| c.last_sample).max();
        let interpreted = &self.file.interpreted;
        let features = &mut self.file.features;
        if let (Some(first), Some(last)) = (first, last) {
            features.set_sample_time(first, last);
        }
        if let Some(level) = plan.compression_level {
            let ratio = ledger.compression_ratio().round().max(1.0) as u32;
            features.set_compressed(&CompressedDesc::zstd(level as u32, ratio, DECODED_BYTES_MAX));
        }
        let mapped = self.shares.iter().map(|share| &share.mapped);
        let before = CpuUsage::of_thread().unwrap_or_default();
        let code = MappedCode {
            choices: plan.choices,
            files: &context.known_files,
            roots: context.roots,
            target: &context.plan.synthesis.target,
            interpreted,
            has_kernel: ledger.samples > 0 && may_sample_kernel(features),
        };
        let kept = code.describe(features, mapped, plan.kept_files.as_ref(), listener);
        (ledger.kept_binaries, ledger.kept_bytes) = (kept.kept, kept.copied_bytes);
        ledger.kept_ns = kept.time_ns;
        // Copies are made when all else was added up.
        ledger.teardown_ns += kept.time_ns;
        ledger.wall_ns += kept.time_ns;
        let used = CpuUsage::of_thread().unwrap_or_default().since(&before);
        ledger.user_cpu_ns += used.user_ns;
        ledger.system_cpu_ns += used.system_ns;
        ledger.teardown_cpu_ns += used.total_ns();
        if plan.choices.room_for_names {
            features.set(Feature::WHIT_NAMES, Vec::new());
        }
        features.set_ledger(ledger);
    }
}

/// Whether an event samples in the kernel.
fn may_sample_kernel(features: &Features) -> bool {
    let is_kernels = |event: EventDesc| {
        let attr = &event.attr;
        // Events that carry other records sample nothing of their own.
        let carriers = [software::DUMMY, software::BPF_OUTPUT];
        let is_carrier = attr.pmu_type == pmu_type::SOFTWARE && carriers.contains(&attr.config);
        !is_carrier && !attr.has(AttrFlags::EXCLUDE_KERNEL)
    };
    features.event_desc().into_iter().flatten().any(is_kernels)
}

/// Gives the output a name with the time, where outputs have one.
fn stamp(output: &mut OutputName, plan: &OutputPlan, listener: &mut dyn Listener) {
    if plan.files.are_stamped()
        && !output.is_stamped()
        && let Err(error) = output.stamp(SystemTime::now())
    {
        listener.notice(Notice::NotRenamed { output: output.to_string(), why: error.to_string() });
    }
}

/// The counts of each ring.
fn rings(shares: &[ReaderShare]) -> impl Iterator<Item = &RingCounts> {
    shares.iter().flat_map(|share| &share.rings)
}
