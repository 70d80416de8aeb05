//! Looks for samples that keep step with the runs of threads, in passing.
//!
//! Blocks of a recording are read in any order, so a run counts where its switch-in, its samples and its switch-out stand
//! in one block, without another switch between them: in the ring of one CPU. Which runs do so does not depend on where
//! samples fall in them. Only clocks are watched: other events happen where the program makes them happen.
//!
//! A recording can have a thousand times more switches than samples of clocks. So a switch is decoded only where such a
//! sample stands beside it.

use crate::first_pass::prepare::Prepared;
use crate::precision::{clocks, records_switches_and_clocks};
use crate::second_pass::sample_sums::ParsedSample;
use crate::switches::PhaseTest;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, misc, record_type};
use whit_perfdata::sample::SampleId;
use whit_types::{Tid, TimestampNs};

/// A thread that was switched in and sampled.
struct SampledRun {
    tid: Tid,
    from: TimestampNs,
    samples: Vec<TimestampNs>,
}

/// One thread's part of the search.
pub(crate) struct StepWatch<'a> {
    prepared: &'a Prepared,
    /// By event.
    is_clock: Vec<bool>,
    /// Where the last switch stands in the block, if it is a switch-in.
    last_in: Option<usize>,
    run: Option<SampledRun>,
    test: PhaseTest,
}

impl<'a> StepWatch<'a> {
    /// `None` where the recording has no switches, or no clock that could keep step.
    pub(crate) fn new(recording: &Recording, prepared: &'a Prepared) -> Option<StepWatch<'a>> {
        let counts = &prepared.scan.counts;
        let switches = counts.of(record_type::SWITCH) + counts.of(record_type::SWITCH_CPU_WIDE);
        (switches > 0 && records_switches_and_clocks(recording)).then(|| StepWatch {
            prepared,
            is_clock: clocks(recording),
            last_in: None,
            run: None,
            test: PhaseTest::default(),
        })
    }

    /// Forgets the switches so far: a new block begins, or switches may be lost.
    pub(crate) fn forget(&mut self) {
        (self.last_in, self.run) = (None, None);
    }

    /// A record that is no sample, and its place in the block.
    #[inline]
    pub(crate) fn record(&mut self, record: RawRecord<'_>, at: usize) {
        match record.header.kind {
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
                let is_out = record.header.misc & misc::SWITCH_OUT != 0;
                if let Some(run) = self.run.take().filter(|_| is_out) {
                    self.end(run, record);
                }
                self.last_in = (!is_out).then_some(at);
            }
            record_type::LOST | record_type::LOST_SAMPLES if !record.states_no_loss() => {
                self.forget()
            }
            _ => {}
        }
    }

    fn end(&mut self, run: SampledRun, switch_out: RawRecord<'_>) {
        let SampleId { pid_tid, time, .. } = self.prepared.events.parse_id_trailer(switch_out);
        if let (Some((_, tid)), Some(to)) = (pid_tid, time)
            && tid == run.tid
        {
            self.test.add_times(run.from, to, run.samples.into_iter());
        }
    }

    /// A sample in the block.
    #[inline]
    pub(crate) fn sample(&mut self, parsed: &ParsedSample<'_>, block: &[u8]) {
        if self.is_clock.get(parsed.event) == Some(&true) {
            self.sample_of_clock(parsed, block);
        }
    }

    fn sample_of_clock(&mut self, parsed: &ParsedSample<'_>, block: &[u8]) {
        let Some(time) = parsed.sample.time else { return };
        if self.run.is_none() {
            self.run = self.last_in.and_then(|at| self.begin(block.get(at..)?));
        }
        if let Some(run) = &mut self.run
            && run.tid == parsed.tid
            && time >= run.from
        {
            run.samples.push(time);
        }
    }

    fn begin(&self, from: &[u8]) -> Option<SampledRun> {
        let (switch_in, _) = RawRecord::split(from)?;
        let id = self.prepared.events.parse_id_trailer(switch_in);
        let ((_, tid), from) = (id.pid_tid?, id.time?);
        (tid.0 > 0).then(|| SampledRun { tid, from, samples: Vec::new() })
    }

    pub(crate) fn finish(self) -> PhaseTest {
        self.test
    }
}
