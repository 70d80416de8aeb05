//! Looks for samples that keep step with the runs of threads, in passing.
//!
//! Blocks of a recording are read in any order, so a run counts where its switch-in, its samples and its switch-out stand
//! in one block, in the ring of one CPU. Which runs do so does not depend on where samples fall in them. Only clocks are
//! watched: other events happen where the program makes them happen.

use crate::precision::Precision;
use crate::prepare::Prepared;
use crate::switches::PhaseTest;
use rustc_hash::FxHashMap;
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_types::{CpuId, Tid, TimestampNs};

/// A thread that was switched in.
struct OpenRun {
    from: TimestampNs,
    cpu: Option<CpuId>,
    samples: Vec<TimestampNs>,
}

/// One thread's part of the search.
pub(crate) struct StepWatch<'a> {
    prepared: &'a Prepared,
    /// By event.
    is_clock: Vec<bool>,
    runs: FxHashMap<Tid, OpenRun>,
    test: PhaseTest,
}

impl<'a> StepWatch<'a> {
    /// `None` where the recording has no switches, or no clock that could keep step.
    pub(crate) fn new(recording: &Recording, prepared: &'a Prepared) -> Option<StepWatch<'a>> {
        let counts = &prepared.scan.counts;
        let switches = counts.of(record_type::SWITCH) + counts.of(record_type::SWITCH_CPU_WIDE);
        let is_recorded = recording.events.iter().any(|e| e.attr.has(AttrFlags::CONTEXT_SWITCH));
        let is_clock: Vec<bool> = recording
            .events
            .iter()
            .map(|event| matches!(Precision::of(&event.attr, 0), Precision::Timer { .. }))
            .collect();
        (is_recorded && switches > 0 && is_clock.contains(&true)).then(|| StepWatch {
            prepared,
            is_clock,
            runs: FxHashMap::default(),
            test: PhaseTest::default(),
        })
    }

    /// Forgets the runs of the block before.
    pub(crate) fn begin_block(&mut self) {
        self.runs.clear();
    }

    /// A record that is no sample.
    pub(crate) fn record(&mut self, record: RawRecord<'_>) {
        match record.header.kind {
            record_type::SWITCH | record_type::SWITCH_CPU_WIDE => self.switch(record),
            // Switches may be among the lost records.
            record_type::LOST | record_type::LOST_SAMPLES => self.runs.clear(),
            _ => {}
        }
    }

    fn switch(&mut self, record: RawRecord<'_>) {
        let id = self.prepared.events.parse_id_trailer(record.body);
        let (Some((_, tid)), Some(time)) = (id.pid_tid, id.time) else { return };
        let Some(SideBand::Switch { out, .. }) = SideBand::parse(record) else { return };
        if out {
            let run = self.runs.remove(&tid).filter(|run| run.cpu == id.cpu);
            if let Some(OpenRun { from, samples, .. }) = run {
                self.test.add_times(from, time, samples.iter().copied());
            }
        } else if tid.0 > 0 {
            let samples = Vec::new();
            self.runs.insert(tid, OpenRun { from: time, cpu: id.cpu, samples });
        }
    }

    /// A sample of an event.
    pub(crate) fn sample(&mut self, event: usize, tid: Tid, time: Option<TimestampNs>) {
        if self.is_clock.get(event) != Some(&true) {
            return;
        }
        if let (Some(run), Some(time)) = (self.runs.get_mut(&tid), time)
            && time >= run.from
        {
            run.samples.push(time);
        }
    }

    pub(crate) fn finish(self) -> PhaseTest {
        self.test
    }
}
