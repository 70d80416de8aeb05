//! What the engine did, and in one line.

use std::fmt;

use whit_bpf::stacks::{Counts, StopReason};
use whit_perfdata::ledger::{BpfMeasurement, Ledger, StackLedger};

use super::{ExpandCounts, FollowCounts};

/// Programs that are called while a recording runs: samples, switches, forks, execs.
const PROGRAMS: u64 = 4;

/// What the engine did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// The program that tells of samples.
    pub samples: Counts,
    /// The program that tells of switches.
    pub switches: Counts,
    /// Processes and tables.
    pub follow: FollowCounts,
    /// What readers made of their records.
    pub expand: ExpandCounts,
    /// Runs of the program for samples and their time, where the kernel keeps it.
    pub sample_runs: (u64, u64),
    /// The same of the program for switches.
    pub switch_runs: (u64, u64),
}

impl StackSummary {
    /// Enters what was done, and what the programs took, into the ledger.
    pub(crate) fn enter(&self, ledger: &mut Ledger) {
        let (a, b, tables) = (&self.samples, &self.switches, &self.follow.tables);
        ledger.stacks = StackLedger {
            walks: a.walks + b.walks,
            known_again: a.memo_hits + b.memo_hits,
            frames: a.frames + b.frames,
            tables: tables.loaded,
            cached_tables: tables.cached,
            without_table: tables.without,
            refused_tables: tables.refused,
            rows: tables.rows,
            rules: tables.rules,
            table_bytes: self.follow.table_bytes,
            build_ns: tables.build_ns,
            ended: StopReason::ALL.map(|reason| self.ended(reason)),
        };
        let ledger = &mut ledger.bpf;
        ledger.programs += PROGRAMS;
        let (runs, time_ns) =
            (self.sample_runs.0 + self.switch_runs.0, self.sample_runs.1 + self.switch_runs.1);
        if runs > 0 {
            ledger.measurement = BpfMeasurement::Statistics;
            ledger.runs += runs;
            ledger.run_time_ns += time_ns;
        }
    }

    /// Walks that ended for a reason, of both programs.
    pub fn ended(&self, reason: StopReason) -> u64 {
        self.samples.ended(reason) + self.switches.ended(reason)
    }
}

impl fmt::Display for StackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (&self.samples, &self.switches);
        let average = |(runs, time_ns): (u64, u64)| time_ns as f64 / runs.max(1) as f64 / 1e3;
        write!(f, "[ whit bpf: {} samples", a.runs)?;
        if self.sample_runs.0 > 0 {
            write!(f, " of {:.2} µs", average(self.sample_runs))?;
        }
        write!(f, ", {} switches", b.runs)?;
        if self.switch_runs.0 > 0 {
            write!(f, " of {:.2} µs", average(self.switch_runs))?;
        }
        let (walks, frames) = (a.walks + b.walks, a.frames + b.frames);
        write!(
            f,
            "; {} lost; {walks} stacks walked ({:.1} frames), {} known again, {} of the kernel; {} \
             told; {} tables ({} KiB)",
            a.lost + b.lost + a.lost_stacks + b.lost_stacks,
            frames as f64 / walks.max(1) as f64,
            a.memo_hits + b.memo_hits,
            b.kernel_memo_hits,
            a.told + b.told,
            self.follow.tables.loaded,
            self.follow.table_bytes / 1024,
        )?;
        let preempted = self.expand.preemptions;
        if b.runs > 0 {
            write!(f, "; {preempted} preemptions")?;
        }
        for (count, what) in [
            (self.expand.unknown_stacks, "records name a stack that is not known"),
            (self.expand.unreadable, "records cannot be read"),
            (a.kernel_failures + b.kernel_failures, "stacks the kernel would not give"),
            (self.follow.lost_records, "records of mappings lost"),
            (self.follow.refused, "descriptions of processes refused"),
            (self.follow.tables.refused, "tables refused"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        for reason in StopReason::ALL {
            let count = self.ended(reason);
            if count > 0 && reason != StopReason::EndOfStack {
                write!(f, "; {count} stacks cut: {}", reason.text())?;
            }
        }
        write!(f, " ]")
    }
}
