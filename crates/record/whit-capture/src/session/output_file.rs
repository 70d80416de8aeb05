//! One output of a recording: its only one, or one of those that it is switched between.
//!
//! An output passes three states, each a type of its own. A [`NewOutput`] has its streams itself, for records of
//! processes that existed before. An [`OutputFile`] has given the streams to the readers. An [`EndedOutput`] has them
//! back, with the work of each reader.

use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

use whit_perfdata::feature::{Features, RecordedSpan};
use whit_types::Pid;

use super::cost_baseline::CostBaseline;
use super::metering::MeterSnapshot;
use super::reader_share::ReaderShare;
use crate::error::CaptureError;
use crate::output::OutputName;
use crate::recording::Recording;
use crate::stream::StreamSink;

mod ended;
mod new;

pub(super) use ended::EndedOutput;
pub(super) use new::NewOutput;

/// An output that readers write.
pub(super) struct OutputFile {
    recording: Recording,
    /// The stream behind the header, where no reader has it.
    main: Option<StreamSink>,
    name: OutputName,
    features: Features,
    /// When it began.
    cost_baseline: CostBaseline,
    set_up_ns: u64,
    /// The recorder's CPU time until then.
    set_up_cpu_ns: u64,
    /// Processes whose mappings were not read to the end.
    cut_processes: u64,
    /// Processes with functions of interpreters that have names.
    interpreted: BTreeSet<Pid>,
    /// The meter's sums from before it began.
    metered_before: MeterSnapshot,
}

impl OutputFile {
    pub(super) fn name(&self) -> &OutputName {
        &self.name
    }

    /// The same, for another name of the file.
    pub(super) fn name_mut(&mut self) -> &mut OutputName {
        &mut self.name
    }

    /// Removes it, and puts the file that was there before back.
    pub(super) fn undo(&self) {
        self.name.undo();
    }

    /// The recorder's CPU time since the output began.
    pub(super) fn used_ns(&self) -> u64 {
        self.cost_baseline.used().total_ns()
    }

    /// Notes that from here on it is recorded into.
    pub(super) fn is_set_up(&mut self) {
        self.set_up_ns = self.cost_baseline.age_ns(Instant::now());
        self.set_up_cpu_ns = self.used_ns();
    }

    /// Notes when samples and switches were recorded, where that is known.
    pub(super) fn state_spans(&mut self, spans: Option<Vec<RecordedSpan>>) {
        if let Some(spans) = spans {
            self.features.set_recorded_spans(&spans);
        }
    }

    /// Takes the streams back. `failed` says why one of them ended early.
    pub(super) fn ended(self, shares: Vec<ReaderShare>, failed: Option<io::Error>) -> EndedOutput {
        EndedOutput { file: self, shares, failed }
    }

    fn write_error(&self, source: io::Error) -> CaptureError {
        CaptureError::Output { attempt: "write", output: self.name.to_string(), source }
    }
}
