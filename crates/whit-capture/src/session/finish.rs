//! The end of a recording: events stop, rings are emptied, losses are added up, the header is
//! completed, the command is waited for.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use whit_perfdata::attr::{ReadFormat, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::{CompressedDesc, Features};
use whit_perfdata::ledger::{Ledger, ReaderLedger};
use whit_perfdata::record::record_type;
use whit_sys::Workload;
use whit_sys::usage::CpuUsage;

use super::drainer::{DrainError, Drainer, RunningDrainer};
use super::wait::SessionWaiter;
use super::{End, Outcome, Session};
use crate::error::CaptureError;
use crate::loss::RingCounts;
use crate::mapped_files::MappedFiles;
use crate::notice::{Listener, Notice};
use crate::open::OpenEvent;
use crate::output::OutputName;
use crate::recording::Recording;
use crate::stream::{DECODED_BYTES_MAX, Sink, SinkError, WriteCounts};
use crate::summary::Summary;

/// How long one look for signals takes while the command runs on.
const SIGNAL_INTERVAL: Duration = Duration::from_secs(10);
/// Words of the largest group that is read.
const GROUP_WORDS_MAX: usize = 1024;

/// What had to be dropped and no record in the rings tells of.
#[derive(Clone, Copy, Debug, Default)]
struct Residue {
    lost: u64,
    paused_ns: u64,
}

impl Session<'_> {
    pub(super) fn finish(mut self, end: End) -> Result<Outcome, CaptureError> {
        let stopped = Instant::now();
        self.disable();
        let mut end = end;
        if let Err(error) = self.drain() {
            end = End::WriteFailed(error);
        }
        let mut residue = Residue::default();
        if !matches!(end, End::WriteFailed(_)) {
            residue = self.residue(stopped);
            if let Err(SinkError(error)) = self.write_residue(residue) {
                end = End::WriteFailed(error);
            }
        }
        self.terminate_workload(&end);
        let ledger = self.ledger(stopped, residue);
        self.complete_features(&ledger);
        let main_bytes = self.main_sink().file().size_bytes();
        let Session {
            recording,
            features,
            output,
            listener,
            mut waiter,
            workload,
            drainers,
            events,
            ..
        } = self;
        // From here on the target runs undisturbed.
        drop(drainers);
        drop(events);
        let closing = Closing { recording, features, output: &output, main_bytes };
        let (size_bytes, end) = closing.close(end, listener);
        let command = wait_for_command(workload, &mut waiter, &end)?;
        let size_bytes = size_bytes.unwrap_or(ledger.written_bytes).max(main_bytes);
        let summary = Summary { output: output.to_string(), size_bytes, ledger };
        Ok(Outcome { summary, end, command })
    }

    fn disable(&self) {
        for instance in self.events.iter().flat_map(|event| &event.instances) {
            // Members stop with their leader, but stopping them again does no harm; a refusal
            // means that the task has exited.
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
        for reader in running {
            match reader.join() {
                Ok((drainer, result)) => {
                    self.drainers.push(drainer);
                    first = first.and(result.map_err(reason));
                }
                Err(panicked) => first = first.and(Err(io::Error::other(panicked))),
            }
        }
        if first.is_err() {
            // Where one stream has ended early, what the others have must be written all the same.
            for drainer in &mut self.drainers {
                let _ = drainer.sink.finish();
            }
        }
        first
    }

    fn write_residue(&mut self, residue: Residue) -> Result<(), SinkError> {
        if residue.lost > 0 {
            let record = self.lost_samples(residue.lost);
            self.main_sink().records(&record)?;
        }
        self.main_sink().finish()
    }

    /// Records that were dropped after the last one that found room: the kernel would report
    /// them in front of the next record, which never comes. The ring was then full from some
    /// moment after the last pass until the end; all of that time is counted.
    fn residue(&self, stopped: Instant) -> Residue {
        let lost_by_id = self.lost_by_id();
        let mut residue = Residue::default();
        for drainer in &self.drainers {
            let since_pass = stopped.saturating_duration_since(drainer.last_pass);
            for (ring, counts) in drainer.reader.rings() {
                let id = |&(event, index): &(usize, usize)| self.events[event].instances[index].id;
                let lost: u64 = ring.members.iter().filter_map(|m| lost_by_id.get(&id(m))).sum();
                let unreported = lost.saturating_sub(counts.lost_records);
                if unreported > 0 {
                    residue.lost += unreported;
                    residue.paused_ns += since_pass.as_nanos() as u64;
                }
            }
        }
        residue
    }

    /// The kernel's own count of dropped records, by event id.
    fn lost_by_id(&self) -> HashMap<u64, u64> {
        let mut all = HashMap::new();
        for (index, event) in self.events.iter().enumerate() {
            if event.event.attr.read_format.contains(ReadFormat::LOST)
                && !event.event.spec.is_member(index)
            {
                read_lost(event, &mut all);
            }
        }
        all
    }

    /// A LOST_SAMPLES record with the trailer of the first event.
    fn lost_samples(&self, lost: u64) -> Vec<u8> {
        let fields = self.events[0].event.attr.sample_type;
        let id = self.descriptions[0].ids.first().copied().unwrap_or(0);
        let times = self.counts().filter_map(|counts| counts.last_record);
        let time = times.max().unwrap_or_default().0;
        let mut body = lost.to_le_bytes().to_vec();
        for (field, value) in [
            (SampleType::TID, 0),
            (SampleType::TIME, time),
            (SampleType::ID, id),
            (SampleType::STREAM_ID, 0),
            (SampleType::CPU, 0),
            (SampleType::IDENTIFIER, id),
        ] {
            if fields.contains(field) {
                body.extend(value.to_le_bytes());
            }
        }
        let mut out = Vec::new();
        push_record(&mut out, record_type::LOST_SAMPLES, 0, &body);
        out
    }

    /// What passed through each ring.
    fn counts(&self) -> impl Iterator<Item = &RingCounts> {
        self.drainers.iter().flat_map(|drainer| drainer.reader.rings().map(|(_, counts)| counts))
    }

    /// What each stream cost to write.
    fn writes(&self) -> impl Iterator<Item = &WriteCounts> {
        let main = self.main.as_ref().map(|sink| &sink.counts);
        main.into_iter().chain(self.drainers.iter().map(|drainer| &drainer.sink.counts))
    }

    fn ledger(&self, stopped: Instant, residue: Residue) -> Ledger {
        let now = Instant::now();
        let ns = |from: Instant, to: Instant| to.saturating_duration_since(from).as_nanos() as u64;
        let used = CpuUsage::of_process().map(|u| u.since(&self.bill.usage)).unwrap_or_default();
        let sum = |field: fn(&RingCounts) -> u64| self.counts().map(field).sum::<u64>();
        let written = |field: fn(&WriteCounts) -> u64| self.writes().map(field).sum::<u64>();
        // A command's own exec starts its events; it follows within microseconds.
        let recorded_ns = self.enabled.map_or(0, |enabled| ns(enabled, stopped));
        let unwritten_records = written(|w| w.unwritten.records);
        Ledger {
            wall_ns: ns(self.bill.begin, now),
            setup_ns: self.set_up_ns,
            teardown_ns: ns(stopped, now),
            user_cpu_ns: used.user_ns,
            system_cpu_ns: used.system_ns,
            ring_bytes: sum(|c| c.bytes),
            written_bytes: written(|w| w.bytes),
            writes: written(|w| w.writes),
            write_ns: written(|w| w.write_ns),
            wakeups: self.drainers.iter().map(|drainer| drainer.wakeups).sum(),
            samples: sum(|c| c.samples).saturating_sub(written(|w| w.unwritten.samples)),
            lost_records: sum(|c| c.lost_records + c.lost_samples)
                + residue.lost
                + unwritten_records,
            paused_ns: sum(|c| c.paused_ns) + residue.paused_ns,
            elapsed_ns: recorded_ns * self.nr_rings as u64,
            rings: self.nr_rings as u64,
            ring_size_bytes: self.ring_size_bytes as u64,
            compressed_from_bytes: written(|w| w.compressed_from_bytes),
            compressed_to_bytes: written(|w| w.compressed_to_bytes),
            stalls: written(|w| w.stalls),
            stall_ns: written(|w| w.stall_ns),
            unwritten_records,
            readers: self.drainers.iter().map(reader_ledger).collect(),
        }
    }

    fn complete_features(&mut self, ledger: &Ledger) {
        let first = self.counts().filter_map(|c| c.first_sample).min();
        let last = self.counts().filter_map(|c| c.last_sample).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.features.set_sample_time(first, last);
        }
        if let Some(level) = self.options.streaming.compression_level {
            let ratio = ledger.compression_ratio().round().max(1.0) as u32;
            let described = CompressedDesc::zstd(level as u32, ratio, DECODED_BYTES_MAX);
            self.features.set_compressed(&described);
        }
        if self.options.build_ids {
            let mut files = MappedFiles::default();
            let seen = self.drainers.iter().flat_map(|drainer| drainer.reader.mapped_files());
            seen.for_each(|of_ring| files.merge(of_ring));
            let mut all = self.features.build_ids();
            all.extend(files.build_ids());
            self.features.set_build_ids(&all);
        }
        self.features.set_ledger(ledger);
    }

    /// As perf: who stops the recorder stops the command.
    fn terminate_workload(&mut self, end: &End) {
        if let (Some(workload), End::Signal(_) | End::TargetEnded) = (&mut self.workload, end)
            && let Err(errno) = workload.kill(SIGTERM)
        {
            let what = format!("ending '{}'", workload.command());
            self.listener.notice(Notice::Skipped { what, why: errno.to_string() });
        }
    }
}

/// `SIGTERM` has this number on every architecture.
const SIGTERM: i32 = 15;

/// Reads `value, id, lost` of an event, or of each member of its group.
fn read_lost(event: &OpenEvent, all: &mut HashMap<u64, u64>) {
    let is_group = event.event.attr.read_format.contains(ReadFormat::GROUP);
    let mut words = vec![0u64; if is_group { GROUP_WORDS_MAX } else { 3 }];
    for instance in &event.instances {
        // An event in error reads as nothing; its loss is then not known better than by the
        // LOST records.
        let Ok(count) = instance.fd.read(&mut words) else { continue };
        let values = &words[usize::from(is_group).min(count)..count];
        for value in values.chunks_exact(3) {
            all.insert(value[1], value[2]);
        }
    }
}

fn reader_ledger(drainer: &Drainer) -> ReaderLedger {
    let counts = &drainer.sink.counts;
    ReaderLedger {
        user_cpu_ns: drainer.usage.user_ns,
        system_cpu_ns: drainer.usage.system_ns,
        wakeups: drainer.wakeups,
        rings: drainer.reader.rings().count() as u64,
        ring_bytes: drainer.reader.rings().map(|(_, counts)| counts.bytes).sum(),
        written_bytes: counts.bytes,
        writes: counts.writes,
        write_ns: counts.write_ns,
        stalls: counts.stalls,
        stall_ns: counts.stall_ns,
    }
}

fn reason(error: DrainError) -> io::Error {
    match error {
        DrainError::Sink(SinkError(error)) => error,
        DrainError::Wait(error) => io::Error::other(error),
    }
}

/// What is left to do for the file.
struct Closing<'a> {
    recording: Recording,
    features: Features,
    output: &'a OutputName,
    main_bytes: u64,
}

impl Closing<'_> {
    /// Completes the header, or saves what a failed write left. Gives the recording's size, as far
    /// as it is known.
    fn close(self, end: End, listener: &mut dyn Listener) -> (Option<u64>, End) {
        let Closing { recording, features, output, main_bytes } = self;
        let mut report = |error: &io::Error| {
            let output = output.to_string();
            listener.notice(Notice::WriteFailed { output, errno: error.to_string() });
        };
        let failed = matches!(end, End::WriteFailed(_));
        if let End::WriteFailed(error) = &end {
            report(error);
        }
        match recording.finish(main_bytes, &features, failed) {
            Ok(size) => (size, end),
            Err(error) => {
                report(&error);
                (None, if failed { end } else { End::WriteFailed(error) })
            }
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
