//! One output of a recording: its only one, or one of those that it is switched between.

use std::io;
use std::time::Instant;

use whit_perfdata::feature::{EventDesc, Features, RecordedSpan};

use super::CostBaseline;
use super::metering::MeterSnapshot;
use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::output::{self, OutputName};
use crate::plan::OutputPlan;
use crate::recording::Recording;
use crate::stream::{StreamOptions, StreamSink};

/// An output that is being written.
pub(super) struct OutputFile {
    pub(super) recording: Recording,
    /// The stream behind the header, where no reader has it.
    pub(super) main: Option<StreamSink>,
    pub(super) output: OutputName,
    pub(super) features: Features,
    /// When it began.
    pub(super) cost_baseline: CostBaseline,
    pub(super) set_up_ns: u64,
    /// The recorder's CPU time until then.
    pub(super) set_up_cpu_ns: u64,
    /// Processes whose mappings were not read to the end.
    pub(super) cut_processes: u64,
    /// What was metered before it began.
    pub(super) mark: MeterSnapshot,
}

impl OutputFile {
    /// Creates the output and writes the header as far as it is known.
    pub(super) fn create(
        plan: &OutputPlan,
        events: &[EventDesc],
        features: &Features,
        cost_baseline: CostBaseline,
        listener: &mut dyn Listener,
    ) -> Result<OutputFile, CaptureError> {
        let open = output::open(&plan.output, plan.makes_directory, listener)?;
        let output = open.name.clone();
        let fail = |source: io::Error| {
            output.undo();
            CaptureError::Output { attempt: "write", output: output.to_string(), source }
        };
        if (plan.files.switch.is_some() || plan.files.timestamp) && !output.is_file() {
            output.undo();
            return Err(CaptureError::PipeHasNoFiles);
        }
        let mut features = features.clone();
        let (recording, left_out) = Recording::create(open, events, &mut features).map_err(fail)?;
        for feature in left_out {
            listener.notice(Notice::FeatureLeftOut { feature: feature.0 });
        }
        let main = match recording.is_directory() {
            true => {
                Some(StreamSink::new(recording.main(), &StreamOptions::default()).map_err(fail)?.0)
            }
            false => None,
        };
        Ok(OutputFile {
            recording,
            main,
            output,
            features,
            cost_baseline,
            set_up_ns: 0,
            set_up_cpu_ns: 0,
            cut_processes: 0,
            mark: MeterSnapshot::default(),
        })
    }

    /// Notes when samples and switches were recorded, where that is known.
    pub(super) fn state_spans(&mut self, spans: Option<Vec<RecordedSpan>>) {
        if let Some(spans) = spans {
            self.features.set_recorded_spans(&spans);
        }
    }

    /// Notes that from here on it is recorded into.
    pub(super) fn is_set_up(&mut self) {
        self.set_up_ns = self.age_ns(Instant::now());
        self.set_up_cpu_ns = self.cost_baseline.used().total_ns();
    }

    /// Time since it began.
    pub(super) fn age_ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.cost_baseline.begin).as_nanos() as u64
    }
}
