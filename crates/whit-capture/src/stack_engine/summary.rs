//! What the engine did, and in one line.

use std::fmt;
use std::time::Duration;

use whit_bpf::stacks::{Counts, RunStatistics, StopReason};
use whit_perfdata::ledger::{BpfMeasurement, Ledger, StackLedger};
use whit_types::OpenFailure;

use super::{ExpandCounts, FollowCounts, UnopenedBinary};

/// Programs that are called while a recording runs: samples, switches, forks, execs.
const PROGRAMS: u64 = 4;

/// Binaries that could not be opened and are named; the others are counted.
const UNOPENED_NAMED_MAX: usize = 3;

/// What one program did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartSummary {
    /// Its own counts.
    pub counts: Counts,
    /// The kernel's.
    pub runs: RunStatistics,
}

impl PartSummary {
    /// Whether it was called, or should have been.
    fn is_called(&self) -> bool {
        self.counts.runs > 0 || self.runs.missed > 0
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, what: &str) -> fmt::Result {
        let RunStatistics { runs, run_time_ns, missed } = self.runs;
        write!(f, "{} {what}", self.counts.runs)?;
        if runs > 0 {
            write!(f, " of {:.2} µs", run_time_ns as f64 / runs as f64 / 1e3)?;
        }
        if missed > 0 {
            write!(f, " ({missed} missed while a program ran)")?;
        }
        Ok(())
    }
}

/// What the engine did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// The program that tells of samples.
    pub samples: PartSummary,
    /// The program that tells of switches.
    pub switches: PartSummary,
    /// The program that tells of tracepoints.
    pub traces: PartSummary,
    /// The program that tells of wake-ups.
    pub wakes: PartSummary,
    /// For how long the kernel took the programs' time.
    pub timed: Duration,
    /// Processes and tables.
    pub follow: FollowCounts,
    /// What readers made of their records.
    pub expand: ExpandCounts,
    /// Switches were packed.
    pub is_packed: bool,
}

impl StackSummary {
    /// Enters what was done, and what the programs took, into the ledger.
    pub(crate) fn enter(&self, ledger: &mut Ledger) {
        let tables = &self.follow.tables;
        ledger.stacks = StackLedger {
            walks: self.sum(|of| of.walks),
            known_again: self.sum(|of| of.memo_hits),
            frames: self.sum(|of| of.frames),
            tables: tables.loaded,
            cached_tables: tables.cached,
            without_table: tables.without,
            refused_tables: tables.refused,
            unknown_mappings: self.follow.unknown_mappings,
            rows: tables.rows,
            rules: tables.rules,
            table_bytes: self.follow.table_bytes,
            build_ns: tables.build_ns,
            ended: StopReason::ALL.map(|reason| self.ended(reason)),
            unopened: OpenFailure::ALL.map(|failure| {
                let of = |file: &&UnopenedBinary| file.error.failure == failure;
                self.follow.unopened.iter().filter(of).count() as u64
            }),
        };
        let ledger = &mut ledger.bpf;
        ledger.programs += PROGRAMS;
        let others = [self.traces.runs, self.wakes.runs];
        ledger.programs += others.iter().filter(|of| of.runs > 0).count() as u64;
        let runs: u64 = self.parts().map(|part| part.runs.runs).iter().sum();
        if runs > 0 {
            ledger.measurement = BpfMeasurement::Statistics;
            ledger.runs += runs;
            ledger.run_time_ns +=
                self.parts().map(|part| part.runs.run_time_ns).iter().sum::<u64>();
            // Those of the meter and these have one timer.
            ledger.timed_ns = ledger.timed_ns.max(self.timed.as_nanos() as u64);
        }
    }

    fn parts(&self) -> [&PartSummary; 4] {
        [&self.samples, &self.switches, &self.traces, &self.wakes]
    }

    /// A count of all programs.
    fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.parts().map(|part| of(&part.counts)).iter().sum()
    }

    /// Walks that ended for a reason, of all programs.
    pub fn ended(&self, reason: StopReason) -> u64 {
        self.sum(|of| of.ended(reason))
    }
}

impl fmt::Display for StackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[ whit bpf: ")?;
        self.samples.write(f, "samples")?;
        write!(f, ", ")?;
        self.switches.write(f, "switches")?;
        for (part, what) in [(&self.wakes, "wake-ups"), (&self.traces, "hits of tracepoints")] {
            if part.is_called() {
                write!(f, ", ")?;
                part.write(f, what)?;
            }
        }
        let (walks, frames) = (self.sum(|of| of.walks), self.sum(|of| of.frames));
        write!(
            f,
            "; {} lost; {walks} stacks walked ({:.1} frames), {} known again, {} of the kernel; {} \
             told; {} tables ({} KiB)",
            self.sum(|of| of.lost + of.lost_stacks),
            frames as f64 / walks.max(1) as f64,
            self.sum(|of| of.memo_hits),
            self.sum(|of| of.kernel_memo_hits),
            self.sum(|of| of.told),
            self.follow.tables.loaded,
            self.follow.table_bytes / 1024,
        )?;
        let preempted = self.expand.preemptions;
        if self.switches.counts.runs > 0 {
            write!(f, "; {preempted} preemptions")?;
        }
        if self.switches.counts.runs > 0 && self.is_packed {
            write!(f, "; packed (for stock perf: whit export --perf)")?;
        }
        for (count, what) in [
            (self.expand.unknown_stacks, "records name a stack that is not known"),
            (self.expand.unreadable, "records cannot be read"),
            (self.expand.without_stacks, "samples of tracepoints without their stacks"),
            (self.sum(|of| of.kernel_failures), "stacks the kernel would not give"),
            (self.sum(|of| of.late), "threads whose coming the kernel hid"),
            (self.sum(|of| of.learned), "mappings found before they were told of"),
            (self.follow.lost_records, "records of mappings lost"),
            (self.follow.refused, "descriptions of processes refused"),
            (self.follow.unknown_mappings, "mappings beyond the bound of a process"),
            (self.follow.unknown_processes, "records of processes beyond their bound"),
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
        write_unopened(f, &self.follow.unopened)?;
        write!(f, " ]")
    }
}

/// Which binaries could not be opened, and why not.
fn write_unopened(f: &mut fmt::Formatter<'_>, unopened: &[UnopenedBinary]) -> fmt::Result {
    let Some((first, others)) = unopened.split_first() else { return Ok(()) };
    write!(f, "; {} could not be opened: {}", first.path, first.error)?;
    for other in others.iter().take(UNOPENED_NAMED_MAX - 1) {
        write!(f, ", {}: {}", other.path, other.error)?;
    }
    match unopened.len().saturating_sub(UNOPENED_NAMED_MAX) {
        0 => Ok(()),
        more => write!(f, ", and {more} more"),
    }
}
