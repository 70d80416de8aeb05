//! A round: every counter in turn, with windows of nobody counting before and after.

use std::path::PathBuf;

use super::counter::{Command, Counter, CounterKind};
use super::groups::Groups;
use super::interruption::Interruption;
use super::load::{Hops, Load};
use super::machine::stolen_ticks;
use super::{Options, Run, Table, Windows};
use crate::error::Error;
use crate::rounds::order;

/// Share of a window that others may have had the CPU.
const TAKEN_MAX: f64 = 0.1;

/// Settings that all rounds have in common.
pub(super) struct Setting<'a> {
    pub(super) counters: &'a [Counter],
    pub(super) events: &'a [String],
    pub(super) options: &'a Options,
    pub(super) output: PathBuf,
    /// Where the token goes around.
    pub(super) cpu: u32,
    pub(super) interruption: &'a Interruption,
}

/// Results of a counter.
struct Counted {
    /// `None` where others had the CPU all the time.
    hops: Option<Hops>,
    counter_cpu: f64,
    program_ns: Option<f64>,
}

impl Setting<'_> {
    /// Everybody once; who was refused is not asked again.
    pub(super) fn round(
        &self,
        round: usize,
        groups: &Groups,
        table: &mut Table,
    ) -> Result<(), Error> {
        let work_ns = table.work_ns;
        let mut load = Load::start(self.options, groups, work_ns, self.cpu, self.interruption)?;
        // The first is to warm up.
        load.measure()?;
        let mut before = self.windows(&mut load, &mut table.alone)?;
        for turn in order(round, self.counters.len()) {
            let row = &mut table.rows[turn];
            if row.refused.is_some() {
                continue;
            }
            let counter = &self.counters[turn];
            let (events, output) = (self.events, self.output.as_path());
            let command = Command { counter, events, groups, output };
            let counted = self.counted(&command, &mut load, &mut row.windows)?;
            let after = self.windows(&mut load, &mut table.alone)?;
            match (counted, before, after) {
                (Ok(Counted { hops: Some(hops), counter_cpu, program_ns }), Some(b), Some(a)) => {
                    row.runs.push(Run { hops, alone: [b, a], counter_cpu, program_ns });
                }
                (Err(reason), ..) => row.refused = Some(reason),
                _ => {}
            }
            before = after;
        }
        Ok(())
    }

    /// With somebody counting, and that one's share of a CPU; or why it does not count.
    fn counted(
        &self,
        command: &Command<'_>,
        load: &mut Load,
        windows: &mut Windows,
    ) -> Result<Result<Counted, String>, Error> {
        let limit = self.options.setup.limit;
        let running = match command.start(limit, self.interruption)? {
            Ok(running) => running,
            Err(reason) => return Ok(Err(reason)),
        };
        let hops = self.windows(load, windows)?;
        let program_ns = match command.counter.kind {
            CounterKind::WhitBpf | CounterKind::Nothing => running.owner().run_ns(load)?,
            _ => None,
        };
        let stopped = running.stop(limit)?;
        Ok(stopped.map(|counter_cpu| Counted { hops, counter_cpu, program_ns }))
    }

    /// The medians of some windows; `None` where all were disturbed.
    fn windows(&self, load: &mut Load, windows: &mut Windows) -> Result<Option<Hops>, Error> {
        let mut kept = Vec::new();
        for _ in 0..self.options.windows {
            self.interruption.check()?;
            let stolen = stolen_ticks(self.cpu);
            let hops = load.measure()?;
            windows.measured += 1;
            if hops.taken > TAKEN_MAX || stolen_ticks(self.cpu) != stolen {
                windows.disturbed += 1;
            } else {
                kept.push(hops);
            }
        }
        Ok(Hops::median(&kept))
    }
}
