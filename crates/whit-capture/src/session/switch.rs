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

use super::drainer::{Order, Portion};
use super::finish::{Closing, Ending, reason, settle};
use super::part::Part;
use super::{Bill, End, Session, readers};
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
        let kept = self.part.output.clone();
        let renamed = self.part.output.stamp(SystemTime::now());
        let next = match renamed {
            Ok(()) => self.next_part(),
            Err(source) => {
                Err(CaptureError::Output { attempt: "rename", output: kept.to_string(), source })
            }
        };
        let (next, sinks) = match next {
            Ok(next) => next,
            Err(error) => {
                self.part.output.restore(&kept);
                self.shared.keeps_journal.store(false, Ordering::SeqCst);
                self.listener.notice(Notice::NotSwitched { why: describe(&error) });
                return Ok(None);
            }
        };
        let (mut portions, mut failed) = self.change_over(sinks);
        let doubtful = self.doubtful_ends(&portions);
        failed = failed.or(self.write_residue(&mut portions, &doubtful).err());
        let unrecorded = self.unrecorded_cpus(&portions);
        failed = failed.or(self.write_residue(&mut portions, &unrecorded).err());
        self.shared.keeps_journal.store(false, Ordering::SeqCst);
        let part = std::mem::replace(&mut self.part, next);
        let journal_cut = portions.iter().any(|portion| portion.journal_cut);
        if journal_cut {
            self.listener.notice(Notice::Skipped {
                what: "some mappings and names in the new output".to_owned(),
                why: "too many came while it was being prepared".to_owned(),
            });
        }
        self.close_complete(part, portions, failed)
    }

    /// Creates the next output, with records for what exists. Gives one stream for each reader.
    fn next_part(&mut self) -> Result<(Part, Vec<StreamSink>), CaptureError> {
        let bill = Bill::open()?;
        let mut part =
            Part::create(self.options, &self.descriptions, &self.features, bill, self.listener)?;
        let result = self.fill(&mut part);
        match result {
            Ok(sinks) => {
                part.is_set_up();
                self.metering.settle(self.listener);
                part.mark = self.metering.mark();
                Ok((part, sinks))
            }
            Err(source) => {
                part.output.undo();
                let output = part.output.to_string();
                Err(CaptureError::Output { attempt: "write", output, source })
            }
        }
    }

    fn fill(&mut self, part: &mut Part) -> io::Result<Vec<StreamSink>> {
        let mut sinks = Vec::with_capacity(self.rings_per_reader.len());
        for &rings in &self.rings_per_reader {
            sinks.push(readers::stream(self.options, rings, &mut part.recording)?.0);
        }
        if self.options.synthesis.at_end {
            return Ok(sinks);
        }
        self.shared.keeps_journal.store(true, Ordering::SeqCst);
        // What the readers drain from here on is kept; what there is, is read after that.
        let prologue = super::Prologue {
            options: self.options,
            roots: self.roots,
            plan: &self.plan,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        };
        let main = part.main.as_mut().or(sinks.first_mut());
        if let Some(main) = main {
            part.cut_processes = prologue.write(main, self.listener).map_err(|error| error.0)?;
        }
        Ok(sinks)
    }

    /// Gives every reader its new stream. Gives what each did for the old one, and the first error
    /// of one that failed at that.
    fn change_over(&mut self, sinks: Vec<StreamSink>) -> (Vec<Portion>, Option<io::Error>) {
        let replies: Vec<_> = self
            .running
            .iter()
            .zip(sinks)
            .map(|(reader, sink)| {
                let (reply, portion) = channel();
                reader.order(Order::Swap(Box::new(sink), reply));
                portion
            })
            .collect();
        let mut portions = Vec::with_capacity(replies.len());
        let mut failed = None;
        let mut remaining = Vec::with_capacity(replies.len());
        for (reader, reply) in std::mem::take(&mut self.running).into_iter().zip(replies) {
            if let Ok(portion) = reply.recv() {
                portions.push(portion);
                remaining.push(reader);
                continue;
            }
            match reader.join() {
                Ok((drainer, result)) => {
                    portions.push(drainer.into_portion());
                    let error = result.err().map(reason);
                    failed = failed.or(error).or(Some(io::Error::other("a reader ended early")));
                }
                Err(panicked) => failed = failed.or(Some(io::Error::other(panicked))),
            }
        }
        self.running = remaining;
        (portions, failed)
    }

    /// Completes the output that was switched away from.
    fn close_complete(
        &mut self,
        mut part: Part,
        mut portions: Vec<Portion>,
        failed: Option<io::Error>,
    ) -> Result<Option<End>, CaptureError> {
        let (now, used_ns) = (Instant::now(), part.bill.used().total_ns());
        let prologue = super::Prologue {
            options: self.options,
            roots: self.roots,
            plan: &self.plan,
            events: &self.shared.events,
            files: &self.known_files,
            waiting_command: None,
            has_run: true,
        };
        let settled = settle(&mut part, &mut portions, &prologue, self.listener);
        let failed = failed.or(settled.err());
        let enabled = self.enabled.lap(now);
        part.state_spans(self.recorded.lap());
        let ending = Ending { stopped: now, used_ns };
        let ledger = self.ledger(&part, &portions, ending, enabled, &[]);
        let (options, roots, files) = (self.options, self.roots, &self.known_files);
        let closing = Closing { options, roots, files, part, portions, ledger, failed };
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
