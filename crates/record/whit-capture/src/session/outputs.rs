//! All outputs of a recording: how each begins, and which are complete.

use std::collections::VecDeque;
use std::io;

use whit_perfdata::ledger::Ledger;

use super::context::SessionContext;
use super::cost_baseline::CostBaseline;
use super::header::KnownHeader;
use super::output_file::{EndedOutput, NewOutput};
use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::output::OutputName;
use crate::plan::RecordPlan;
use crate::summary::Summary;

/// Makes outputs that begin alike.
pub(super) struct Outputs {
    header: KnownHeader,
    rings_per_reader: Vec<usize>,
    /// Outputs that are complete, the oldest first, as long as they must be counted.
    complete: VecDeque<OutputName>,
}

impl Outputs {
    /// Outputs with one stream for each reader.
    pub(super) fn new(header: KnownHeader, rings_per_reader: Vec<usize>) -> Outputs {
        Outputs { header, rings_per_reader, complete: VecDeque::new() }
    }

    /// Creates the first output, or the next one.
    pub(super) fn create(
        &self,
        plan: &RecordPlan,
        cost_baseline: CostBaseline,
        listener: &mut dyn Listener,
    ) -> Result<NewOutput, CaptureError> {
        let plans = (&plan.output, &plan.streams);
        NewOutput::create(plans, &self.header, &self.rings_per_reader, cost_baseline, listener)
    }

    /// Completes an output, and removes the oldest one where there are too many.
    pub(super) fn close(
        &mut self,
        output: EndedOutput,
        context: &SessionContext<'_>,
        ledger: Ledger,
        listener: &mut dyn Listener,
    ) -> (Summary, Option<io::Error>) {
        let (name, summary, failed) = output.close(context, ledger, listener);
        self.complete.push_back(name);
        self.remove_oldest(context.plan.output.files.max_files, listener);
        (summary, failed)
    }

    /// Keeps no more than `max` outputs.
    fn remove_oldest(&mut self, max: Option<usize>, listener: &mut dyn Listener) {
        // Without a limit nobody asks for them again.
        let Some(max) = max else { return self.complete.clear() };
        while self.complete.len() > max.max(1) {
            let Some(oldest) = self.complete.pop_front() else { return };
            if let Err(error) = oldest.remove() {
                let what = format!("removing {oldest}");
                listener.notice(Notice::Skipped { what, why: error.to_string() });
            }
        }
    }
}
