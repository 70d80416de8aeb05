//! An output that nothing is recorded into yet.

use std::collections::BTreeSet;
use std::io;

use whit_perfdata::feature::Features;
use whit_sys::affinity;

use super::OutputFile;
use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::ASYNC_BLOCKS_MAX;
use crate::output;
use crate::plan::{OutputPlan, StreamPlan};
use crate::recording::Recording;
use crate::session::cost_baseline::CostBaseline;
use crate::session::header::KnownHeader;
use crate::session::metering::MeterSnapshot;
use crate::session::synthesis::SynthesisContext;
use crate::stream::{AsyncEngine, Sink, SinkError, StreamOptions, StreamSink};

/// An output with all its streams.
pub(in crate::session) struct NewOutput {
    file: OutputFile,
    /// One for each reader; the first one stands behind the header, unless the file has that itself.
    streams: Vec<StreamSink>,
    /// How blocks are written while others are filled.
    async_engine: Option<AsyncEngine>,
}

impl NewOutput {
    /// Creates the output, writes the header as far as it is known, and opens a stream for each reader. After an
    /// error all is as it was before.
    pub(in crate::session) fn create(
        (plan, streams): (&OutputPlan, &StreamPlan),
        header: &KnownHeader,
        rings_per_reader: &[usize],
        cost_baseline: CostBaseline,
        listener: &mut dyn Listener,
    ) -> Result<NewOutput, CaptureError> {
        let file = OutputFile::create(plan, header, cost_baseline, listener)?;
        let mut output = NewOutput { file, streams: Vec::new(), async_engine: None };
        let opened = output.open_streams(streams, rings_per_reader);
        opened.and_then(|()| output.name_events(header)).map_err(|error| {
            output.file.undo();
            output.file.write_error(error)
        })?;
        Ok(output)
    }

    fn open_streams(&mut self, plan: &StreamPlan, rings_per_reader: &[usize]) -> io::Result<()> {
        for &nr_rings in rings_per_reader {
            let recording = &mut self.file.recording;
            let options = stream_options(plan, nr_rings, recording.is_pipe());
            let (sink, engine) = StreamSink::new(recording.next_stream()?, &options)?;
            self.async_engine = self.async_engine.or(engine);
            self.streams.push(sink);
        }
        Ok(())
    }

    /// Tells readers of pipes what events are called.
    fn name_events(&mut self, header: &KnownHeader) -> io::Result<()> {
        if !self.file.recording.is_pipe() {
            return Ok(());
        }
        self.main_sink().records(&header.names()).map_err(|SinkError(error)| error)
    }

    /// The stream behind the header.
    fn main_sink(&mut self) -> &mut StreamSink {
        self.file.main.as_mut().unwrap_or(&mut self.streams[0])
    }

    /// Writes records for existing processes and code, unless these stand at the end of an output.
    pub(in crate::session) fn synthesize(
        &mut self,
        context: &SynthesisContext<'_>,
        listener: &mut dyn Listener,
    ) -> Result<(), SinkError> {
        if !context.is_at_end() {
            self.file.cut_processes = context.write(self.main_sink(), listener)?;
        }
        Ok(())
    }

    /// Whether other streams are files of their own.
    pub(in crate::session) fn is_directory(&self) -> bool {
        self.file.recording.is_directory()
    }

    /// Says where a thread writes, since the kernel does not.
    pub(in crate::session) fn say_engine(&self, listener: &mut dyn Listener) {
        if self.async_engine == Some(AsyncEngine::Thread) {
            listener.notice(Notice::WritesByThread { pipe: self.file.recording.is_pipe() });
        }
    }

    /// Removes it, after a failed write.
    pub(in crate::session) fn undo_for(self, SinkError(error): SinkError) -> CaptureError {
        self.file.undo();
        self.file.write_error(error)
    }

    /// Notes that it can be recorded into.
    pub(in crate::session) fn is_set_up(&mut self) {
        self.file.is_set_up();
    }

    /// Notes the meter's sums from before it began.
    pub(in crate::session) fn set_metered_before(&mut self, before: MeterSnapshot) {
        self.file.metered_before = before;
    }

    pub(in crate::session) fn file(&self) -> &OutputFile {
        &self.file
    }

    /// The output and the streams, which are the readers' from here on.
    pub(in crate::session) fn into_parts(self) -> (OutputFile, Vec<StreamSink>) {
        (self.file, self.streams)
    }
}

impl OutputFile {
    fn create(
        plan: &OutputPlan,
        header: &KnownHeader,
        cost_baseline: CostBaseline,
        listener: &mut dyn Listener,
    ) -> Result<OutputFile, CaptureError> {
        let open = output::open(&plan.output, plan.makes_directory, listener)?;
        let name = open.name.clone();
        let fail = |source: io::Error| {
            name.undo();
            CaptureError::Output { attempt: "write", output: name.to_string(), source }
        };
        if plan.files.are_stamped() && !name.is_file() {
            name.undo();
            return Err(CaptureError::PipeHasNoFiles);
        }
        let mut features: Features = header.features.clone();
        let (recording, left_out) =
            Recording::create(open, &header.descriptions, &mut features).map_err(fail)?;
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
            name,
            features,
            cost_baseline,
            set_up_ns: 0,
            set_up_cpu_ns: 0,
            cut_processes: 0,
            interpreted: BTreeSet::new(),
            metered_before: MeterSnapshot::default(),
        })
    }
}

/// For a reader of so many rings.
fn stream_options(plan: &StreamPlan, nr_rings: usize, is_pipe: bool) -> StreamOptions {
    let streaming = &plan.streaming;
    StreamOptions {
        compression_level: streaming.compression_level,
        is_packed: plan.is_packed,
        whole_frames: is_pipe && streaming.threads.is_some(),
        async_blocks: streaming.async_blocks.min(ASYNC_BLOCKS_MAX) * nr_rings,
        cpus: affinity::get(0).unwrap_or_default(),
    }
}
