//! The end of a recording: events stop, rings are emptied, losses are added up, the header is
//! completed, the command is waited for.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use whit_perfdata::attr::{ReadFormat, SampleType};
use whit_perfdata::encode::push_record;
use whit_perfdata::feature::Features;
use whit_perfdata::ledger::Ledger;
use whit_perfdata::record::record_type;
use whit_sys::Workload;
use whit_sys::usage::CpuUsage;

use super::{End, Outcome, Session};
use crate::error::CaptureError;
use crate::notice::Listener;
use crate::notice::Notice;
use crate::open::OpenEvent;
use crate::output::OutputName;
use crate::sink::{RecordingSink, Sink, SinkError};
use crate::summary::Summary;

/// Rounds in which the rings are emptied after the events have stopped. One would do; a task on
/// another CPU may just be writing its last record.
const LAST_ROUNDS_MAX: u32 = 1000;
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
        let mut residue = Residue::default();
        if !matches!(end, End::WriteFailed(_)) {
            match self.drain(stopped) {
                Ok(found) => residue = found,
                Err(error) => end = End::WriteFailed(error.source),
            }
        }
        self.terminate_workload(&end);
        let ledger = self.ledger(stopped, residue);
        self.complete_features(&ledger);
        self.waiter.forget_rings(&self.events);
        let Session {
            sink, features, output, listener, mut waiter, workload, reader, events, ..
        } = self;
        // From here on the target runs undisturbed.
        drop(events);
        drop(reader);
        let (size_bytes, end) = close(sink, &features, end, &output, listener);
        let command = wait_for_command(workload, &mut waiter, &end)?;
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

    /// Empties the rings, and writes down what was lost without a record of it.
    fn drain(&mut self, stopped: Instant) -> Result<Residue, SinkError> {
        let since_pass = stopped.saturating_duration_since(self.last_pass).as_nanos() as u64;
        for _ in 0..LAST_ROUNDS_MAX {
            if self.pass()? == 0 {
                break;
            }
        }
        let residue = self.residue(since_pass);
        if residue.lost > 0 {
            let record = self.lost_samples(residue.lost);
            self.sink.records(&record)?;
        }
        Ok(residue)
    }

    /// Records that were dropped after the last one that found room: the kernel would report
    /// them in front of the next record, which never comes. The ring was then full from some
    /// moment after the last pass until the end; all of that time is counted.
    fn residue(&self, since_pass_ns: u64) -> Residue {
        let lost_by_id = self.lost_by_id();
        let mut residue = Residue::default();
        for (ring, counts) in self.reader.rings() {
            let id = |&(event, index): &(usize, usize)| self.events[event].instances[index].id;
            let lost: u64 = ring.members.iter().filter_map(|m| lost_by_id.get(&id(m))).sum();
            let unreported = lost.saturating_sub(counts.lost_records);
            if unreported > 0 {
                residue.lost += unreported;
                residue.paused_ns += since_pass_ns;
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
        let times = self.reader.rings().filter_map(|(_, counts)| counts.last_record);
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

    fn ledger(&self, stopped: Instant, residue: Residue) -> Ledger {
        let now = Instant::now();
        let ns = |from: Instant, to: Instant| to.saturating_duration_since(from).as_nanos() as u64;
        let used = CpuUsage::of_process().map(|u| u.since(&self.bill.usage)).unwrap_or_default();
        let rings = self.reader.rings().count() as u64;
        let sum = |field: fn(&crate::loss::RingCounts) -> u64| {
            self.reader.rings().map(|(_, counts)| field(counts)).sum::<u64>()
        };
        // A command's own exec starts its events; it follows within microseconds.
        let recorded_ns = self.enabled.map_or(0, |enabled| ns(enabled, stopped));
        Ledger {
            wall_ns: ns(self.bill.begin, now),
            setup_ns: self.set_up_ns,
            teardown_ns: ns(stopped, now),
            user_cpu_ns: used.user_ns,
            system_cpu_ns: used.system_ns,
            ring_bytes: sum(|c| c.bytes),
            written_bytes: self.sink.counts.bytes,
            writes: self.sink.counts.writes,
            write_ns: self.sink.counts.write_ns,
            wakeups: self.wakeups,
            samples: sum(|c| c.samples),
            lost_records: sum(|c| c.lost_records + c.lost_samples) + residue.lost,
            paused_ns: sum(|c| c.paused_ns) + residue.paused_ns,
            elapsed_ns: recorded_ns * rings,
            rings,
            ring_size_bytes: self.reader.ring_size_bytes() as u64,
        }
    }

    fn complete_features(&mut self, ledger: &Ledger) {
        let first = self.reader.rings().filter_map(|(_, c)| c.first_sample).min();
        let last = self.reader.rings().filter_map(|(_, c)| c.last_sample).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.features.set_sample_time(first, last);
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

/// Completes the file, or saves what a failed write left. Gives its size.
fn close(
    sink: RecordingSink,
    features: &Features,
    end: End,
    output: &OutputName,
    listener: &mut dyn Listener,
) -> (u64, End) {
    let records = sink.counts.bytes;
    let mut report = |error: &io::Error| {
        let output = output.to_string();
        listener.notice(Notice::WriteFailed { output, errno: error.to_string() });
    };
    if let End::WriteFailed(error) = &end {
        report(error);
        let size = match sink.salvage(features) {
            Ok(file) => file.as_ref().map_or(records, size_of),
            Err(error) => {
                report(&error);
                records
            }
        };
        return (size, end);
    }
    match sink.finish(features) {
        Ok(file) => (size_of(&file).max(records), end),
        Err(error) => {
            report(&error);
            (records, End::WriteFailed(error))
        }
    }
}

fn size_of(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

/// Waits for the command. Where writing failed it runs on, and a signal to us is its signal too.
fn wait_for_command(
    workload: Option<Workload>,
    waiter: &mut super::wait::Waiter,
    end: &End,
) -> Result<Option<whit_sys::ExitStatus>, CaptureError> {
    let Some(mut workload) = workload else { return Ok(None) };
    loop {
        if let Some(exit) = workload.try_wait()? {
            return Ok(Some(exit.status));
        }
        let woken = waiter.wait_for_signal(SIGNAL_INTERVAL)?;
        if let Some(signal) = woken.stop {
            if matches!(end, End::Signal(_)) {
                // Asked twice: do not wait for a command that ignores SIGTERM.
                return Ok(None);
            }
            let _ = workload.kill(signal.number());
        }
    }
}
