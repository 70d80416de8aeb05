//! The end of a recording: events stop, rings are emptied, losses are added up, the header is
//! completed, the command is waited for. And the end of one output of several.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use whit_engine::DecodeCounts;
use whit_host::named::Chosen;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_perfdata::feature::CompressedDesc;
use whit_perfdata::ledger::{Ledger, ReaderLedger};
use whit_sys::Workload;

use super::code::MappedCode;
use super::output_file::OutputFile;
use super::reader_thread::{DrainError, ReaderShare, ReaderThread, RunningDrainer};
use super::redraw::Redraws;
use super::unreported_loss::UnreportedLoss;
use super::wait::SessionWaiter;
use super::{End, Outcome, Session, SynthesisContext};
use crate::error::CaptureError;
use crate::file_cache::FileCache;
use crate::loss::RingCounts;
use crate::machine::own_peak_memory_bytes;
use crate::notice::{Listener, Notice};
use crate::output::OutputName;
use crate::plan::OutputPlan;
use crate::stream::{DECODED_BYTES_MAX, SinkError, StreamSink, WriteCounts};
use crate::summary::Summary;

/// When an output ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// When its target ended, or it was switched away from.
    pub(super) stopped: Instant,
    /// The recorder's CPU time when what was recorded until then had been taken from the rings.
    pub(super) used_ns: u64,
}

/// How long one look for signals takes while the command runs on.
const SIGNAL_INTERVAL: Duration = Duration::from_secs(10);
impl Session<'_> {
    pub(super) fn finish(mut self, end: End) -> Result<Outcome, CaptureError> {
        let stopped = Instant::now();
        self.switch_off(stopped);
        self.disable_side_band();
        let ran = self.watched.take().unwrap_or_default().end(self.roots);
        let (mut end, mut failed) = match end {
            End::WriteFailed(error) => (None, Some(error)),
            end => (Some(end), None),
        };
        let drained = self.drain();
        failed = failed.or(drained.err());
        let ending = Ending { stopped, used_ns: self.output_file.cost_baseline.used().total_ns() };
        let reader_threads = std::mem::take(&mut self.reader_threads);
        let mut decoded = DecodeCounts::default();
        reader_threads
            .iter()
            .for_each(|reader_thread| decoded += reader_thread.ring_drainer.decode_counts());
        let mut shares: Vec<_> = reader_threads.into_iter().map(ReaderThread::into_share).collect();
        let unreported_loss =
            if failed.is_none() { self.unreported_loss(&shares, stopped) } else { Vec::new() };
        let unrecorded = self.unrecorded_cpus(&shares);
        for behind in [&unreported_loss, &unrecorded] {
            if failed.is_none() {
                failed = self.write_unreported_loss(&mut shares, behind).err();
            }
        }
        if failed.is_none() {
            failed = self.settle_last(&mut shares).err();
        }
        if let Some(end) = &end {
            self.terminate_workload(end);
        }
        let enabled = self.enabled.lap(stopped);
        self.metering.settle(self.listener);
        let stacks = self.engine.summarise(decoded);
        let mut ledger = self.ledger(&self.output_file, &shares, ending, enabled, &unreported_loss);
        if self.plan.output.files.switch.is_none() {
            (ledger.watched_threads, ledger.ran_threads) = ran;
        }
        ledger.names_chosen = self.plan.events.target.chosen().map_or(0, Chosen::count);
        ledger.period_redraws = self.redraws.take().map_or(0, Redraws::end);
        if let Some(stacks) = &stacks {
            stacks.enter(&mut ledger);
        }
        self.compare_time(ledger.samples.saturating_add(ledger.lost_records));
        if let Some(notice) = nobody_ran(&ledger, &self.plan.events.target) {
            self.listener.notice(notice);
        }
        self.output_file.state_spans(self.recorded.lap());
        let Session {
            output_file,
            plan,
            roots,
            listener,
            shared,
            mut waiter,
            workload,
            mut complete,
            metering,
            known_files,
            ..
        } = self;
        // From here on the target runs undisturbed.
        drop((shared, metering));
        let closing = Closing {
            plan: &plan.output,
            roots,
            files: &known_files,
            output_file,
            shares,
            ledger,
            failed,
        };
        let (mut summary, failed) = closing.close(listener, &mut complete);
        if let Some(error) = failed {
            end = Some(End::WriteFailed(error));
        }
        let end = end.unwrap_or(End::ReaderEnded);
        waiter.close_control()?;
        let command = wait_for_command(workload, &mut waiter, &end)?;
        if matches!(end, End::WriteFailed(_) | End::ReaderEnded) {
            summary.unrecorded = Some(stopped.elapsed());
        }
        Ok(Outcome { summary, end, command, stacks })
    }

    fn disable_side_band(&self) {
        let side_band = self.shared.events.iter().filter(|event| event.event.is_side_band);
        for instance in side_band.flat_map(|event| &event.instances) {
            // A refusal means that the task has exited.
            let _ = instance.fd.disable();
        }
    }

    /// Lets the readers empty the rings, and takes them back. Gives the first error that one of
    /// them had.
    fn drain(&mut self) -> Result<(), io::Error> {
        let mut running = std::mem::take(&mut self.running);
        // All of them at once, before the first one is waited for.
        running.iter_mut().for_each(RunningDrainer::stop);
        let mut first = Ok(());
        for ring_drainer in running {
            match ring_drainer.join() {
                Ok((reader_thread, result)) => {
                    self.reader_threads.push(reader_thread);
                    first = first.and(result.map_err(reason));
                }
                Err(panicked) => first = first.and(Err(io::Error::other(panicked))),
            }
        }
        if first.is_err() {
            // Where one stream has ended early, what the others have must be written all the same.
            for reader_thread in &mut self.reader_threads {
                let _ = reader_thread.sink.finish();
            }
        }
        first
    }

    fn settle_last(&mut self, shares: &mut [ReaderShare]) -> io::Result<()> {
        let synthesis_context = SynthesisContext {
            wanted: &self.plan.synthesis,
            roots: self.roots,
            plan: &self.targets,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        };
        settle(&mut self.output_file, shares, &synthesis_context, self.listener)
    }

    /// The cost of an output that was `enabled` for so long and ended so.
    pub(super) fn ledger(
        &self,
        output_file: &OutputFile,
        shares: &[ReaderShare],
        ending: Ending,
        enabled: Duration,
        unreported_loss: &[UnreportedLoss],
    ) -> Ledger {
        let now = Instant::now();
        let used = output_file.cost_baseline.used();
        let Ending { stopped, used_ns } = ending;
        let sum = |field: fn(&RingCounts) -> u64| rings(shares).map(field).sum::<u64>();
        let writes = || {
            let main = output_file.main.as_ref().map(StreamSink::counts);
            main.into_iter().chain(shares.iter().map(|share| share.sink.counts()))
        };
        let written = |field: fn(&WriteCounts) -> u64| writes().map(field).sum::<u64>();
        // What is not sampled pauses nothing.
        let nr_rings = self.nr_sample_rings as u64;
        let unwritten_records = written(|w| w.unwritten.records);
        let (lost_cpus, late_cpus) = self.cpu_watch.counts();
        let (pmi, bpf) = self.metering.since(&output_file.mark, stopped);
        Ledger {
            wall_ns: output_file.age_ns(now),
            setup_ns: output_file.set_up_ns,
            teardown_ns: now.saturating_duration_since(stopped).as_nanos() as u64,
            user_cpu_ns: used.user_ns,
            system_cpu_ns: used.system_ns,
            ring_bytes: sum(|c| c.bytes),
            written_bytes: written(|w| w.bytes),
            writes: written(|w| w.writes),
            write_ns: written(|w| w.write_ns),
            wakeups: shares.iter().map(|share| share.wakeups).sum(),
            samples: sum(|c| c.samples).saturating_sub(written(|w| w.unwritten.samples)),
            lost_records: sum(|c| c.lost_records + c.lost_samples)
                + unreported_loss.iter().map(|ring| ring.lost).sum::<u64>()
                + unwritten_records,
            paused_ns: sum(|c| c.paused_ns)
                + unreported_loss.iter().map(|ring| ring.paused_ns).sum::<u64>(),
            // A command's own exec starts its events; it follows within microseconds.
            elapsed_ns: enabled.as_nanos() as u64 * nr_rings,
            rings: nr_rings,
            ring_size_bytes: self.ring_size_bytes as u64,
            compressed_from_bytes: written(|w| w.compressed_from_bytes),
            compressed_to_bytes: written(|w| w.compressed_to_bytes),
            stalls: written(|w| w.stalls),
            stall_ns: written(|w| w.stall_ns),
            unwritten_records,
            cut_processes: output_file.cut_processes,
            lost_cpus,
            late_cpus,
            peak_memory_bytes: own_peak_memory_bytes(self.roots),
            setup_cpu_ns: output_file.set_up_cpu_ns,
            teardown_cpu_ns: used.total_ns().saturating_sub(used_ns),
            pmi,
            bpf,
            readers: shares.iter().map(reader_ledger).collect(),
            // Threads that ran are known of the whole recording, not of one output of several. The engine enters
            // its own figures once it has ended.
            ..Ledger::default()
        }
    }

    /// As perf: who stops the recorder stops the command.
    fn terminate_workload(&mut self, end: &End) {
        let stops =
            matches!(end, End::Signal(_) | End::TargetEnded | End::Stopped | End::SizeReached);
        if let Some(workload) = self.workload.as_mut().filter(|_| stops)
            && let Err(errno) = workload.kill(SIGTERM)
        {
            let what = format!("ending '{}'", workload.command());
            self.listener.notice(Notice::Skipped { what, why: errno.to_string() });
        }
    }
}

/// The notice where none of the threads that were recorded ran.
fn nobody_ran(ledger: &Ledger, target: &Target) -> Option<Notice> {
    let id = match target {
        Target::Processes(ids) => ids.first().map(|pid| pid.main_thread()),
        Target::Threads(ids) => ids.first().copied(),
        _ => None,
    };
    let threads = ledger.watched_threads;
    let has_stacks = ledger.blocked_at_begin > 0;
    ledger.nobody_ran().then_some(Notice::NobodyRan { threads, id, has_stacks })
}

/// What passed through each ring.
fn rings(shares: &[ReaderShare]) -> impl Iterator<Item = &RingCounts> {
    shares.iter().flat_map(|share| &share.rings)
}

/// Writes what belongs at the end of an output, and waits until all of it is written.
pub(super) fn settle(
    output_file: &mut OutputFile,
    shares: &mut [ReaderShare],
    synthesis_context: &SynthesisContext<'_>,
    listener: &mut dyn Listener,
) -> io::Result<()> {
    let mut result = Ok(());
    if synthesis_context.wanted.what.at_end
        && let Some(main) = main_sink(output_file, shares)
    {
        let written = synthesis_context.write(main, listener);
        result = written.map(|cut_processes| output_file.cut_processes = cut_processes);
    }
    for sink in output_file.main.iter_mut().chain(shares.iter_mut().map(|share| &mut share.sink)) {
        result = result.and(sink.finish());
    }
    result.map_err(|error| error.0)
}

/// The stream behind the header.
fn main_sink<'s>(
    output_file: &'s mut OutputFile,
    shares: &'s mut [ReaderShare],
) -> Option<&'s mut StreamSink> {
    output_file.main.as_mut().or(shares.first_mut().map(|share| &mut share.sink))
}

/// `SIGTERM` has this number on every architecture.
const SIGTERM: i32 = 15;

fn reader_ledger(share: &ReaderShare) -> ReaderLedger {
    let counts = share.sink.counts();
    ReaderLedger {
        user_cpu_ns: share.usage.user_ns,
        system_cpu_ns: share.usage.system_ns,
        wakeups: share.wakeups,
        rings: share.rings.len() as u64,
        ring_bytes: share.rings.iter().map(|counts| counts.bytes).sum(),
        written_bytes: counts.bytes,
        writes: counts.writes,
        write_ns: counts.write_ns,
        stalls: counts.stalls,
        stall_ns: counts.stall_ns,
    }
}

pub(super) fn reason(error: DrainError) -> io::Error {
    match error {
        DrainError::Sink(SinkError(error)) => error,
        DrainError::Wait(error) => io::Error::other(error),
    }
}

/// An output whose streams are complete.
pub(super) struct Closing<'a> {
    pub(super) plan: &'a OutputPlan,
    pub(super) roots: &'a Roots,
    pub(super) files: &'a FileCache,
    pub(super) output_file: OutputFile,
    pub(super) shares: Vec<ReaderShare>,
    pub(super) ledger: Ledger,
    /// Why it could not be written to its end.
    pub(super) failed: Option<io::Error>,
}

impl Closing<'_> {
    /// Completes the header, or saves what a failed write left; gives the output its name, and
    /// removes the oldest one where there are too many.
    pub(super) fn close(
        mut self,
        listener: &mut dyn Listener,
        complete: &mut VecDeque<OutputName>,
    ) -> (Summary, Option<io::Error>) {
        self.complete_features(listener);
        let Closing { plan, output_file, shares, ledger, failed, .. } = self;
        let OutputFile { recording, main, mut output, features, .. } = output_file;
        let main = main.as_ref().or(shares.first().map(|share| &share.sink));
        let main_bytes = main.map_or(0, |sink| sink.file().size_bytes());
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
        let files = &plan.files;
        if (files.switch.is_some() || files.timestamp)
            && !output.is_stamped()
            && let Err(error) = output.stamp(SystemTime::now())
        {
            listener
                .notice(Notice::NotRenamed { output: output.to_string(), why: error.to_string() });
        }
        let size_bytes = size_bytes.unwrap_or(ledger.written_bytes).max(main_bytes);
        let summary = Summary { output: output.to_string(), size_bytes, ledger, unrecorded: None };
        complete.push_back(output);
        remove_oldest(complete, files.max_files, listener);
        (summary, failed)
    }

    fn complete_features(&mut self, listener: &mut dyn Listener) {
        let first = rings(&self.shares).filter_map(|c| c.first_sample).min();
        let last = rings(&self.shares).filter_map(|c| c.last_sample).max();
        let features = &mut self.output_file.features;
        if let (Some(first), Some(last)) = (first, last) {
            features.set_sample_time(first, last);
        }
        if let Some(level) = self.plan.compression_level {
            let ratio = self.ledger.compression_ratio().round().max(1.0) as u32;
            features.set_compressed(&CompressedDesc::zstd(level as u32, ratio, DECODED_BYTES_MAX));
        }
        if self.plan.build_ids {
            let mapped = self.shares.iter().map(|share| &share.mapped);
            MappedCode { files: self.files, roots: self.roots }.describe(
                features,
                mapped,
                self.plan.kept_files.clone(),
                listener,
            );
        }
        features.set_ledger(&self.ledger);
    }
}

/// Keeps no more than `max` outputs.
fn remove_oldest(
    complete: &mut VecDeque<OutputName>,
    max: Option<usize>,
    listener: &mut dyn Listener,
) {
    // Without a limit nobody asks for them again.
    let Some(max) = max else { return complete.clear() };
    while complete.len() > max.max(1) {
        let Some(oldest) = complete.pop_front() else { return };
        if let Err(error) = oldest.remove() {
            let what = format!("removing {oldest}");
            listener.notice(Notice::Skipped { what, why: error.to_string() });
        }
    }
}

/// Waits for the command. Where writing failed it runs on, and a signal to us is its signal too.
fn wait_for_command(
    workload: Option<Workload>,
    waiter: &mut SessionWaiter,
    end: &End,
) -> Result<Option<whit_sys::ExitStatus>, CaptureError> {
    let Some(mut workload) = workload else { return Ok(None) };
    loop {
        if let Some(exit) = workload.try_wait()? {
            return Ok(Some(exit.status));
        }
        let woken = waiter.wait(Some(SIGNAL_INTERVAL))?;
        if let Some(signal) = woken.stop {
            if matches!(end, End::Signal(_)) {
                // Asked twice: do not wait for a command that ignores SIGTERM.
                return Ok(None);
            }
            let _ = workload.kill(signal.number());
        }
    }
}
