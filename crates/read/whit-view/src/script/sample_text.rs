//! Prints the samples of a recording, and the records between them.

use super::choice::Choice;
use super::fields::{EventTraits, FieldError, FieldSpec, Fields};
use super::records::append_record;
use super::write::{Layout, SampleContext, append_frame, append_line_start, append_sample};
use whit_perfdata::feature::EventDesc;
use whit_perfdata::record::{RecordHeader, misc, record_type};
use whit_profile::script::{
    Candidate, EventSwitches, Format, RecordKinds, ScriptedFrame, ScriptedRecord, ScriptedSample,
    TimeBase,
};
use whit_types::{Arch, OutsideText};

/// `PERF_SAMPLE_BRANCH_ANY`.
const ANY_BRANCH: u64 = 1 << 3;

/// How the samples of a recording are printed.
#[derive(Debug)]
pub struct SampleText {
    /// By event.
    layouts: Vec<Layout>,
    /// Facts that all samples share.
    pub context: SampleContext,
    /// The samples and frames that are printed.
    pub choice: Choice,
    /// Records that are printed between the samples.
    pub records: RecordKinds,
    /// Events that switch the printing on and off.
    pub switches: EventSwitches,
}

impl SampleText {
    /// With perf's fields, changed as the `-F` lists say.
    ///
    /// # Errors
    /// An event lacks a field.
    pub fn new(
        events: &[EventDesc],
        context: SampleContext,
        specs: &[FieldSpec],
        nanoseconds: bool,
        hides_chains: bool,
    ) -> Result<SampleText, FieldError> {
        let width = |event: &EventDesc| OutsideText::new(&event.name).escaped().len();
        let event_width = events.iter().map(width).max().unwrap_or(0);
        let layout = |event: &EventDesc| {
            let traits = EventTraits::of(event);
            let fields = FieldSpec::resolve(specs, &traits)?;
            let has_callchain = traits.has_callchain && !hides_chains;
            Ok(Layout { fields, event_width, nanoseconds, has_callchain })
        };
        let layouts = events.iter().map(layout).collect::<Result<_, _>>()?;
        let choice = Choice::default();
        let (records, switches) = (RecordKinds::default(), EventSwitches::default());
        Ok(SampleText { layouts, context, choice, records, switches })
    }

    /// Whether the instructions between branches can be known, where they are asked for.
    ///
    /// # Errors
    /// Some branches were not recorded, or the code is not of x86.
    pub fn check_instructions(&self, events: &[EventDesc]) -> Result<(), InstructionsError> {
        let asked = Fields::BRSTACKINSN;
        let events = self.layouts.iter().zip(events);
        let mut asking = events.filter(|(layout, _)| layout.fields.has(asked)).peekable();
        if asking.peek().is_some() && self.context.arch == Some(Arch::Aarch64) {
            return Err(InstructionsError::OtherMachine);
        }
        if asking.any(|(_, event)| event.attr.branch_sample_type & ANY_BRANCH == 0) {
            return Err(InstructionsError::SomeBranches);
        }
        Ok(())
    }
}

/// Why the instructions between branches cannot be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InstructionsError {
    /// The code is not of x86.
    #[error("brstackinsn knows the instructions of x86 alone: print branches with -F brstack")]
    OtherMachine,
    /// Branches between the recorded ones are unknown.
    #[error(
        "brstackinsn needs all branches, and the recording has a choice of them: record again with -b"
    )]
    SomeBranches,
}

impl Format for SampleText {
    fn time_base(&self) -> TimeBase {
        self.choice.time_base
    }

    fn records(&self) -> RecordKinds {
        self.records
    }

    fn switches(&self) -> EventSwitches {
        self.switches
    }

    fn shows_chain(&self, event: usize) -> bool {
        self.layouts[event].has_callchain
    }

    fn record(&self, scripted: &ScriptedRecord<'_>, out: &mut Vec<u8>) {
        let Some(layout) = self.layouts.get(scripted.event) else { return };
        append_line_start(out, &scripted.start, marks(scripted.record.header), layout);
        append_record(out, scripted.record);
    }

    fn wants(&self, candidate: &Candidate<'_>) -> bool {
        self.choice.wants(candidate)
    }

    fn ends_chain(&self, function: OutsideText<&str>) -> bool {
        self.choice.ends_chain(function)
    }

    fn wants_chain(&self, event: usize) -> bool {
        self.layouts[event].fields.has(Fields::IP)
    }

    fn frame(&self, event: usize, frame: &ScriptedFrame<'_>, out: &mut Vec<u8>) {
        append_frame(out, frame, &self.layouts[event]);
    }

    fn sample(&self, scripted: &ScriptedSample<'_>, out: &mut Vec<u8>) {
        append_sample(out, scripted, &self.layouts[scripted.event], &self.context);
    }
}

/// The letters of a record's type in field `misc`.
fn marks(header: RecordHeader) -> &'static str {
    let has = |bit: u16| header.misc & bit != 0;
    match header.kind {
        record_type::MMAP | record_type::MMAP2 if has(misc::MMAP_DATA) => "M",
        record_type::COMM if has(misc::COMM_EXEC) => "E",
        record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
            match (has(misc::SWITCH_OUT), has(misc::SWITCH_OUT_PREEMPT)) {
                (true, true) => "Sp",
                (true, false) => "S",
                _ => "",
            }
        }
        _ => "",
    }
}
