//! Samples one by one, in order of time, with their call chains named.
//!
//! Text is made by a [`Format`]: that of a frame once for each place, which chains then repeat,
//! and that of each sample. Threads format batches of samples at once; the batches' texts are
//! written in order. Names are [`OutsideText`], so that a format cannot print them unescaped by
//! mistake.

mod event_switch;
mod frame_texts;
mod pipeline;
mod worker;

pub use crate::naming::lookup::{CodeAt, CodeLookup};
pub use crate::naming::scripted_frame::ScriptedFrame;
pub use event_switch::EventSwitches;
pub use frame_texts::ChainText;

use crate::blocks::stream_plan::BlockTimes;
pub use crate::blocks::stream_plan::RecordKinds;
use crate::error::LoadError;
use crate::first_fetch::fetch_first;
use crate::first_pass::prepare::{Needs, prepare};
use crate::in_order::ordered::OrderedSamples;
use crate::reading::{Question, Reading};
use crate::samples::Samples;
use crate::warning::Warning;
use std::io::Write;
use whit_perfdata::feature::EventDesc;
use whit_perfdata::record::RawRecord;
use whit_perfdata::sample::Sample;
use whit_types::{Avma, CpuId, OutsideText, Pid, Tid, TimestampNs};
use worker::Work;

/// Facts that samples and other records begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordStart<'a> {
    /// The thread's command name at that time, where known.
    pub comm: Option<OutsideText<&'a str>>,
    /// Thread that the command name belongs to.
    pub comm_tid: Tid,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, where recorded.
    pub cpu: Option<CpuId>,
    /// By the clock of the recording. Zero for records of older processes.
    pub time: TimestampNs,
    /// The moment from which times are shown: 0 of the recording's clock, or as [`TimeBase`] says.
    pub shown_since: TimestampNs,
    /// `misc` of the record.
    pub misc: u16,
}

/// A sample with everything that can be said of it.
#[derive(Clone, Copy)]
pub struct ScriptedSample<'a> {
    /// Index of the event.
    pub event: usize,
    /// Attributes, ids and name.
    pub event_desc: &'a EventDesc,
    /// Thread, CPU and time.
    pub start: RecordStart<'a>,
    /// Period, from the sample or from the event's attributes.
    pub period: u64,
    /// All that was recorded.
    pub sample: &'a Sample<'a>,
    /// Call chain; of events without one, the place of execution.
    pub chain: ChainText<'a>,
    /// Looks further addresses up.
    pub lookup: &'a dyn CodeLookup,
}

/// Why printing stopped.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The output could not be written.
    #[error("cannot write the samples: {0}")]
    Write(#[from] std::io::Error),
}

/// Counts and warnings of a run.
#[derive(Clone, Debug, Default)]
pub struct ScriptSummary {
    /// Samples given out.
    pub samples: u64,
    /// Losses and defects of the recording.
    pub warnings: Vec<Warning>,
}

/// The moment from which times are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeBase {
    /// The zero of the recording's clock.
    #[default]
    Clock,
    /// The first sample that is printed.
    First,
    /// The sample that was printed before.
    Previous,
}

/// Properties by which a format may leave a sample out.
pub struct Candidate<'a> {
    /// Index of the event.
    pub event: usize,
    /// Command name, where known.
    pub comm: Option<OutsideText<&'a str>>,
    /// Address of the executing instruction, where recorded.
    pub address: Option<Avma>,
    /// Looks the address up, which takes time.
    pub lookup: &'a dyn CodeLookup,
}

/// A record that is no sample.
#[derive(Clone, Copy)]
pub struct ScriptedRecord<'a> {
    /// The event that its id names, else the first.
    pub event: usize,
    /// Thread, CPU and time, of the id at the record's end.
    pub start: RecordStart<'a>,
    /// Header and body.
    pub record: RawRecord<'a>,
}

/// Makes text of samples.
pub trait Format: Sync {
    /// Records that are printed between the samples.
    fn records(&self) -> RecordKinds {
        RecordKinds::default()
    }

    /// Events that switch the printing of samples on and off.
    fn switches(&self) -> EventSwitches {
        EventSwitches::default()
    }

    /// Appends the text of such a record.
    fn record(&self, _record: &ScriptedRecord<'_>, _out: &mut Vec<u8>) {}

    /// From when times are shown.
    fn time_base(&self) -> TimeBase {
        TimeBase::Clock
    }

    /// False for samples to leave out.
    fn wants(&self, _candidate: &Candidate<'_>) -> bool {
        true
    }

    /// True for a function whose callers are not printed.
    fn ends_chain(&self, _function: OutsideText<&str>) -> bool {
        false
    }

    /// True where the text of the event's samples shows their call chains or places.
    fn wants_chain(&self, event: usize) -> bool;

    /// False where the place of execution is printed in place of the call chain.
    fn shows_chain(&self, _event: usize) -> bool {
        true
    }

    /// Appends the text of a frame, for samples of the event with that index. The text has to
    /// depend on nothing else: it is used again wherever the frame occurs. Inlined functions stand
    /// before those that they were inlined into; events without call chains have none.
    fn frame(&self, event: usize, frame: &ScriptedFrame<'_>, out: &mut Vec<u8>);

    /// Appends the text of a sample.
    fn sample(&self, sample: &ScriptedSample<'_>, out: &mut Vec<u8>);
}

/// The text of every sample, in order of time.
pub struct Script<'a> {
    /// Makes the text.
    pub format: &'a dyn Format,
    /// Where it is written.
    pub out: &'a mut dyn Write,
}

impl Question for Script<'_> {
    type Answer = ScriptSummary;
    type Error = ScriptError;

    fn read(self, reading: Reading<'_>) -> Result<ScriptSummary, ScriptError> {
        let Script { format, out } = self;
        let (question, progress) = (Samples::default(), reading.progress(2));
        let takes = match format.records() {
            kinds if kinds.is_empty() => BlockTimes::Note,
            kinds => BlockTimes::NoteRecords(kinds),
        };
        let prepared = prepare(reading, Needs::in_order(question, takes), &progress)?;
        let mut warnings = crate::result::describe::scan_warnings(reading.recording, &prepared);
        warnings.extend(fetch_first(reading, &question, &prepared, &progress)?);
        let mut summary = ScriptSummary { samples: 0, warnings };
        let mut samples = OrderedSamples::new(&prepared, takes, reading.threads(), &progress);
        let work = Work { reading, prepared: &prepared, format };
        pipeline::run(work, &mut samples, out, &mut summary)?;
        Ok(summary)
    }
}
