//! Switching the output: the recording goes on in a new file while nothing stops and nothing is lost.
//!
//! The new output is created, and filled with existing processes, while the readers still write the old one.
//! Records that they drain meanwhile may be newer than the state that was read from `/proc`. So readers keep the
//! sideband among them, and begin the new stream with it when they change over. Every sample goes into one of the
//! two; each is complete by itself.

use std::time::{Instant, SystemTime};

use whit_perfdata::blocked::Edge;

use super::Running;
use crate::error::CaptureError;
use crate::notice::Notice;
use crate::session::budget::BudgetKeeper;
use crate::session::cost_baseline::CostBaseline;
use crate::session::ledger::Ending;
use crate::session::outcome::End;
use crate::session::output_file::{EndedOutput, NewOutput};
use crate::session::unreported_loss::Losses;

impl Running<'_> {
    /// Switches to a new output. Where that cannot be had, the old one is written on. An end is given
    /// where a reader has failed.
    pub(super) fn switch_output(&mut self) -> Result<Option<End>, CaptureError> {
        self.schedule.switched(Instant::now());
        self.readers.begin_output();
        let kept = self.output.name().clone();
        let next = match self.output.name_mut().stamp(SystemTime::now()) {
            Ok(()) => self.next_output(),
            Err(source) => {
                Err(CaptureError::Output { attempt: "rename", output: kept.to_string(), source })
            }
        };
        match next {
            Ok(next) => Ok(self.change_over(next)),
            Err(error) => {
                self.output.name_mut().restore(&kept);
                self.readers.keep_journal(false);
                self.parts.listener.notice(Notice::NotSwitched { why: describe(&error) });
                Ok(None)
            }
        }
    }

    /// Creates the next output, with records for existing processes and code.
    fn next_output(&mut self) -> Result<NewOutput, CaptureError> {
        let parts = &mut self.parts;
        let plan = &parts.context.plan;
        let baseline = CostBaseline::open()?;
        let mut next = parts.outputs.create(plan, baseline, parts.listener)?;
        let synthesis = parts.context.synthesis(parts.control.events());
        if !synthesis.is_at_end() {
            // Before `/proc` is read: later sideband is kept.
            self.readers.keep_journal(true);
        }
        if let Err(error) = next.synthesize(&synthesis, parts.listener) {
            return Err(next.undo_for(error));
        }
        let metering = &mut parts.meters.metering;
        next.is_set_up();
        metering.settle(parts.listener);
        next.set_metered_before(metering.mark());
        Ok(next)
    }

    /// Has the readers go on in the new output, and completes the old one.
    fn change_over(&mut self, next: NewOutput) -> Option<End> {
        let (next, streams) = next.into_parts();
        self.write_blocked(Edge::End);
        self.write_settings();
        self.write_clocks();
        let (shares, failed) = self.readers.change_over(streams);
        self.parts.budget.as_mut().map(BudgetKeeper::lap);
        self.write_settings();
        self.write_clocks();
        self.write_blocked(Edge::Begin);
        let parts = &mut self.parts;
        let mut ended = std::mem::replace(&mut self.output, next).ended(shares, failed);
        let end = parts.control.end_output(None);
        let losses = Losses { events: parts.control.events(), of_engine: &end.losses };
        ended.write_losses(losses, &losses.doubtful(ended.shares()));
        let unrecorded =
            parts.meters.unrecorded(parts.context.roots, losses, ended.shares(), parts.listener);
        ended.write_losses(losses, &unrecorded);
        self.readers.keep_journal(false);
        if ended.shares().iter().any(|share| share.journal_cut) {
            parts.listener.notice(Notice::Skipped {
                what: "some mappings and names in the new output".to_owned(),
                why: "too many came while it was being prepared".to_owned(),
            });
        }
        ended.write_last(&end.records, end.interpreted);
        self.close(ended)
    }

    /// Completes the output that was switched away from.
    fn close(&mut self, mut ended: EndedOutput) -> Option<End> {
        let parts = &mut self.parts;
        let (stopped, used_ns) = (Instant::now(), ended.used_ns());
        ended.settle(&parts.context.synthesis(parts.control.events()), parts.listener);
        let (enabled, spans) = parts.control.lap(stopped);
        ended.state_spans(spans);
        let ending = Ending { stopped, used_ns, enabled };
        let ledger = ended.ledger(&parts.meters, &ending, &[], parts.context.roots);
        let (summary, failed) = parts.outputs.close(ended, &parts.context, ledger, parts.listener);
        parts.listener.notice(Notice::Switched { summary: Box::new(summary) });
        failed.map(End::WriteFailed)
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
