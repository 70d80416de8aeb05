//! Switching the output: the recording goes on in a new file while nothing stops and nothing is lost.
//!
//! The new output is created and filled with what exists while the readers still write the old one.
//! What they drain meanwhile may be newer than what was read from `/proc`, so they keep its side
//! band, and begin the new stream with it when they are told to change over. Every sample goes into
//! one of the two; each is complete by itself.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Instant, SystemTime};

use whit_perfdata::blocked::Edge;

use super::finish::{Closing, Ending, reason, settle};
use super::output_file::OutputFile;
use super::reader_thread::{Order, ReaderShare};
use super::{CostBaseline, End, Session, readers};
use crate::error::CaptureError;
use crate::notice::Notice;
use crate::stream::StreamSink;

impl Session<'_> {
    /// Switches to a new output. Where that cannot be had, the old one is written on. An end is given
    /// where a reader has failed.
    pub(super) fn switch_output(&mut self) -> Result<Option<End>, CaptureError> {
        let now = Instant::now();
        self.schedule.switched(now);
        self.shared.quota.next_part();
        let kept = self.output_file.output.clone();
        let renamed = self.output_file.output.stamp(SystemTime::now());
        let next = match renamed {
            Ok(()) => self.next_part(),
            Err(source) => {
                Err(CaptureError::Output { attempt: "rename", output: kept.to_string(), source })
            }
        };
        let (next, sinks) = match next {
            Ok(next) => next,
            Err(error) => {
                self.output_file.output.restore(&kept);
                self.shared.keeps_journal.store(false, Ordering::SeqCst);
                self.listener.notice(Notice::NotSwitched { why: describe(&error) });
                return Ok(None);
            }
        };
        self.write_blocked(Edge::End);
        let (mut shares, mut failed) = self.change_over(sinks);
        self.write_blocked(Edge::Begin);
        let doubtful = self.losses().doubtful(&shares);
        failed = failed.or(self.losses().write(&mut shares, &doubtful).err());
        let unrecorded = self.unrecorded_cpus(&shares);
        failed = failed.or(self.losses().write(&mut shares, &unrecorded).err());
        self.shared.keeps_journal.store(false, Ordering::SeqCst);
        let output_file = std::mem::replace(&mut self.output_file, next);
        let journal_cut = shares.iter().any(|share| share.journal_cut);
        if journal_cut {
            self.listener.notice(Notice::Skipped {
                what: "some mappings and names in the new output".to_owned(),
                why: "too many came while it was being prepared".to_owned(),
            });
        }
        self.close_complete(output_file, shares, failed)
    }

    /// Creates the next output, with records for what exists. Gives one stream for each reader.
    fn next_part(&mut self) -> Result<(OutputFile, Vec<StreamSink>), CaptureError> {
        let cost_baseline = CostBaseline::open()?;
        let mut output_file = OutputFile::create(
            &self.plan.output,
            &self.descriptions,
            &self.features,
            cost_baseline,
            self.listener,
        )?;
        let result = self.fill(&mut output_file);
        match result {
            Ok(sinks) => {
                output_file.is_set_up();
                self.metering.settle(self.listener);
                output_file.mark = self.metering.mark();
                Ok((output_file, sinks))
            }
            Err(source) => {
                output_file.output.undo();
                let output = output_file.output.to_string();
                Err(CaptureError::Output { attempt: "write", output, source })
            }
        }
    }

    fn fill(&mut self, output_file: &mut OutputFile) -> io::Result<Vec<StreamSink>> {
        let mut sinks = Vec::with_capacity(self.rings_per_reader.len());
        for &rings in &self.rings_per_reader {
            sinks.push(readers::stream(&self.plan.streams, rings, &mut output_file.recording)?.0);
        }
        if self.plan.synthesis.what.at_end {
            return Ok(sinks);
        }
        self.shared.keeps_journal.store(true, Ordering::SeqCst);
        // What the readers drain from here on is kept; what there is, is read after that.
        let synthesis_context = super::SynthesisContext {
            wanted: &self.plan.synthesis,
            roots: self.roots,
            plan: &self.targets,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        };
        let main = output_file.main.as_mut().or(sinks.first_mut());
        if let Some(main) = main {
            output_file.cut_processes =
                synthesis_context.write(main, self.listener).map_err(|error| error.0)?;
        }
        Ok(sinks)
    }

    /// Gives every reader its new stream. Gives what each did for the old one, and the first error
    /// of one that failed at that.
    fn change_over(&mut self, sinks: Vec<StreamSink>) -> (Vec<ReaderShare>, Option<io::Error>) {
        let replies: Vec<_> = self
            .running
            .iter()
            .zip(sinks)
            .map(|(ring_drainer, sink)| {
                let (reply, share) = channel();
                ring_drainer.order(Order::Swap(Box::new(sink), reply));
                share
            })
            .collect();
        let mut shares = Vec::with_capacity(replies.len());
        let mut failed = None;
        let mut remaining = Vec::with_capacity(replies.len());
        for (ring_drainer, reply) in std::mem::take(&mut self.running).into_iter().zip(replies) {
            if let Ok(share) = reply.recv() {
                shares.push(share);
                remaining.push(ring_drainer);
                continue;
            }
            match ring_drainer.join() {
                Ok((reader_thread, result)) => {
                    shares.push(reader_thread.into_share());
                    let error = result.err().map(reason);
                    failed = failed.or(error).or(Some(io::Error::other("a reader ended early")));
                }
                Err(panicked) => failed = failed.or(Some(io::Error::other(panicked))),
            }
        }
        self.running = remaining;
        (shares, failed)
    }

    /// Completes the output that was switched away from.
    fn close_complete(
        &mut self,
        mut output_file: OutputFile,
        mut shares: Vec<ReaderShare>,
        failed: Option<io::Error>,
    ) -> Result<Option<End>, CaptureError> {
        let (now, used_ns) = (Instant::now(), output_file.cost_baseline.used().total_ns());
        let synthesis_context = super::SynthesisContext {
            wanted: &self.plan.synthesis,
            roots: self.roots,
            plan: &self.targets,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        };
        let settled = settle(&mut output_file, &mut shares, &synthesis_context, self.listener);
        let failed = failed.or(settled.err());
        let enabled = self.enabled.lap(now);
        output_file.state_spans(self.recorded.lap());
        let ending = Ending { stopped: now, used_ns };
        let ledger = self.ledger(&output_file, &shares, ending, enabled, &[]);
        let (plan, roots, files) = (&self.plan.output, self.roots, &self.known_files);
        let closing = Closing { plan, roots, files, output_file, shares, ledger, failed };
        let (summary, failed) = closing.close(self.listener, &mut self.complete);
        self.listener.notice(Notice::Switched { summary: Box::new(summary) });
        Ok(failed.map(End::WriteFailed))
    }
}

fn describe(error: &CaptureError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
