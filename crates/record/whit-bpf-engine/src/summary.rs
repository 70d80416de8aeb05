//! The work of the engine, and a line that sums it up.

use std::fmt;
use std::time::Duration;

use whit_bpf::stacks::{Counts, NativeStayed, RunStatistics, StopReason};
use whit_engine_api::{DecodeCounts, EngineSummary};
use whit_perfdata::ledger::{BpfMeasurement, Ledger, StackLedger};
use whit_types::OpenFailure;

use super::{BlockedCounts, FollowCounts, UnopenedBinary};

/// Programs that are called while a recording runs: samples, switches, forks, execs.
const PROGRAMS: u64 = 4;

/// Reasons for which stacks were cut that are named; the others are counted.
const CUTS_NAMED_MAX: usize = 3;

/// Binaries that could not be opened and are named; the others are counted.
const UNOPENED_NAMED_MAX: usize = 3;

/// Counts of one program.
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

/// Counts of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackSummary {
    /// The program of samples.
    pub samples: PartSummary,
    /// The program of switches.
    pub switches: PartSummary,
    /// The program of tracepoints.
    pub traces: PartSummary,
    /// The program of wake-ups.
    pub wakes: PartSummary,
    /// The program that emits hits of probes.
    pub probes: PartSummary,
    /// The programs that sample waits.
    pub waits: PartSummary,
    /// The programs that record data of sockets.
    pub sockets: PartSummary,
    /// For how long the kernel took the programs' time.
    pub timed: Duration,
    /// Processes and tables.
    pub follow: FollowCounts,
    /// The readers' counts of the programs' records.
    pub decoder: DecodeCounts,
    /// Threads that were blocked when recording began or ended.
    pub(crate) blocked: BlockedCounts,
    /// Functions of interpreters whose names could not be read.
    pub unread_functions: u64,
    /// Switches were packed.
    pub is_packed: bool,
}

impl EngineSummary for StackSummary {
    fn enter(&self, ledger: &mut Ledger) {
        self.blocked.enter(ledger);
        // They come in rings of this engine alone, and no other account has them.
        ledger.lost_records = ledger.lost_records.saturating_add(self.follow.lost_records);
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
            not_opened: OpenFailure::ALL.map(|failure| {
                let of = |file: &&UnopenedBinary| file.error.failure == failure;
                self.follow.unopened.iter().filter(of).count() as u64
            }),
        };
        let ledger = &mut ledger.bpf;
        ledger.programs += PROGRAMS;
        // Waits and sockets have a program at each end.
        let (waits, sockets) = (self.waits.runs, self.sockets.runs);
        let others = [self.traces.runs, self.wakes.runs, self.probes.runs];
        let others = others.into_iter().chain([waits, waits, sockets, sockets]);
        ledger.programs += others.filter(|of| of.runs > 0).count() as u64;
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

    fn details(&self) -> String {
        Details(self).to_string()
    }
}

impl StackSummary {
    fn parts(&self) -> [&PartSummary; 7] {
        let StackSummary { samples, switches, traces, wakes, probes, waits, sockets, .. } = self;
        [samples, switches, traces, wakes, probes, waits, sockets]
    }

    /// A count of all programs.
    fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.parts().map(|part| of(&part.counts)).iter().sum()
    }

    /// Walks that ended for a reason, of all programs.
    fn ended(&self, reason: StopReason) -> u64 {
        self.sum(|of| of.ended(reason))
    }

    /// User stacks of recorded samples, switches and wake-ups that ended for a reason. Many of them were known again,
    /// without a walk.
    pub fn user_stacks(&self, reason: StopReason) -> u64 {
        self.decoder.user_stacks[reason as usize]
    }
}

impl StackSummary {
    /// Why stacks ended early, the most frequent reason first.
    fn cuts(&self) -> Vec<(u64, &'static str)> {
        let cut = StopReason::ALL.into_iter().filter(|reason| *reason != StopReason::EndOfStack);
        let mut cuts: Vec<_> =
            cut.map(|reason| (self.user_stacks(reason), reason.text())).collect();
        cuts.retain(|(count, _)| *count > 0);
        cuts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        cuts
    }

    /// Gaps of the recording beside cut stacks.
    fn missing(&self) -> [(u64, &'static str); 11] {
        [
            (self.sum(|of| of.lost + of.lost_stacks), "records or stacks lost"),
            (
                self.parts().map(|part| part.runs.missed).iter().sum(),
                "hits missed while a program ran",
            ),
            (self.decoder.unknown_stacks, "records name a stack that is not known"),
            (self.decoder.unreadable, "records cannot be read"),
            (self.decoder.without_stacks, "samples of tracepoints without their stacks"),
            (self.sum(|of| of.kernel_failures), "stacks the kernel would not give"),
            (self.follow.lost_records, "of the lost records were of mappings, for unwinding"),
            (self.follow.refused, "descriptions of processes refused"),
            (self.follow.unknown_mappings, "mappings beyond the bound of a process"),
            (self.unread_functions, "interpreted functions without a name"),
            (self.follow.unknown_processes, "records of processes beyond their bound"),
        ]
    }
}

/// How complete the stacks are, and the reasons of gaps.
impl fmt::Display for StackSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stacks = self.decoder.user_stacks.iter().sum();
        let complete = self.user_stacks(StopReason::EndOfStack);
        write!(f, "[ whit bpf: ")?;
        match stacks {
            0 => write!(f, "no stacks in user mode")?,
            _ => write!(f, "{} of {stacks} stacks complete", share(complete, stacks))?,
        }
        let cuts = self.cuts();
        for (count, why) in cuts.iter().take(CUTS_NAMED_MAX) {
            write!(f, "; {count} cut: {why}")?;
        }
        let others: u64 = cuts.iter().skip(CUTS_NAMED_MAX).map(|(count, _)| count).sum();
        if others > 0 {
            write!(f, "; {others} cut for other reasons (-v)")?;
        }
        if self.follow.tables.has_java && self.user_stacks(StopReason::NoUnwindInfo) > 0 {
            write!(f, " (Java keeps frame pointers with java -XX:+PreserveFramePointer)")?;
        }
        for (count, what) in self.missing().iter().filter(|(count, _)| *count > 0) {
            write!(f, "; {count} {what}")?;
        }
        write_unopened(f, &self.follow.unopened)?;
        if self.switches.counts.runs > 0 && self.is_packed {
            write!(f, "; for stock perf: whit export --perf")?;
        }
        write!(f, " ]")
    }
}

/// In percent. Less than all is never "100%".
fn share(part: u64, whole: u64) -> String {
    match part as f64 * 100.0 / whole as f64 {
        _ if part >= whole => "100%".to_owned(),
        percent if percent >= 99.995 => ">99.99%".to_owned(),
        percent => format!("{percent:.2}%"),
    }
}

struct Details<'a>(&'a StackSummary);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details(all) = self;
        write!(f, "[ whit bpf: programs ran for ")?;
        all.samples.write(f, "samples")?;
        write!(f, ", ")?;
        all.switches.write(f, "switches")?;
        for (part, what) in [
            (&all.wakes, "wake-ups"),
            (&all.traces, "hits of tracepoints"),
            (&all.probes, "hits of probes"),
            (&all.waits, "samples of waits"),
        ] {
            if part.is_called() {
                write!(f, ", ")?;
                part.write(f, what)?;
            }
        }
        let tables = &all.follow.tables;
        write!(
            f,
            "; {} lost; {} stacks walked ({:.1} frames), {} known again, {} of the kernel; {} told; {} tables ({} \
             KiB), {} of them from the cache, made or read in {:.1} ms",
            all.sum(|of| of.lost + of.lost_stacks),
            all.sum(|of| of.walks),
            all.sum(|of| of.frames) as f64 / all.sum(|of| of.walks).max(1) as f64,
            all.sum(|of| of.memo_hits),
            all.sum(|of| of.kernel_memo_hits),
            all.sum(|of| of.announced),
            tables.loaded,
            all.follow.table_bytes / 1024,
            tables.cached,
            tables.build_ns as f64 / 1e6,
        )?;
        if all.switches.counts.runs > 0 {
            write!(f, "; {} preemptions", all.decoder.preemptions)?;
            write!(f, "; switches {}packed", if all.is_packed { "" } else { "not " })?;
        }
        for (count, what) in [
            (all.sum(|of| of.late), "threads whose coming the kernel hid"),
            (all.sum(|of| of.learned), "mappings found before they were announced"),
            (tables.refused, "tables refused"),
            (tables.removed, "binaries taken out that no process mapped any more"),
            (tables.interpreters_refused, "interpreters refused"),
            (all.sum(|of| of.interpreted), "interpreted frames"),
        ] {
            if count > 0 {
                write!(f, "; {count} {what}")?;
            }
        }
        for (number, reason) in NativeStayed::ALL.into_iter().enumerate() {
            match all.sum(|of| of.native_stayed[number]) {
                0 => {}
                count => {
                    write!(f, "; {count} with native frames of an interpreter: {}", reason.text())?
                }
            }
        }
        all.cuts().iter().try_for_each(|(count, why)| write!(f, "; {count} cut: {why}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(ended: &[(StopReason, u64)]) -> StackSummary {
        let mut summary = StackSummary::default();
        for (reason, count) in ended {
            summary.decoder.user_stacks[*reason as usize] = *count;
        }
        summary
    }

    #[test]
    fn lost_records_of_mappings_are_in_the_account_of_losses() {
        let mut summary = summary(&[]);
        summary.follow.lost_records = 8;
        let mut ledger = Ledger { lost_records: 3, ..Ledger::default() };
        summary.enter(&mut ledger);
        assert_eq!(ledger.lost_records, 11);
    }

    #[test]
    fn one_sentence_says_how_complete_stacks_are() {
        let whole = summary(&[(StopReason::EndOfStack, 12)]);
        assert_eq!(whole.to_string(), "[ whit bpf: 100% of 12 stacks complete ]");
        let one = [(StopReason::EndOfStack, 2362), (StopReason::NoTableYet, 1)];
        assert_eq!(
            summary(&one).to_string(),
            "[ whit bpf: 99.96% of 2363 stacks complete; 1 cut: the unwind table was not loaded yet ]"
        );
        assert_eq!(share(999_999, 1_000_000), ">99.99%");
        assert_eq!(StackSummary::default().to_string(), "[ whit bpf: no stacks in user mode ]");
    }

    #[test]
    fn the_most_frequent_reasons_are_named_and_the_others_counted() {
        let ended = [
            (StopReason::EndOfStack, 60),
            (StopReason::Unreadable, 1),
            (StopReason::NoMapping, 3),
            (StopReason::NoTableYet, 30),
            (StopReason::NoProcess, 2),
            (StopReason::Not64Bit, 4),
        ];
        let summary = summary(&ended);
        assert_eq!(
            summary.to_string(),
            "[ whit bpf: 60.00% of 100 stacks complete; 30 cut: the unwind table was not loaded yet; 4 \
             cut: 32-bit code; 3 cut: the address lies in no known mapping; 3 cut for other reasons (-v) ]"
        );
        let details = summary.details().to_string();
        assert!(details.contains("; 1 cut: the stack could not be read"), "{details}");
    }

    #[test]
    fn cut_stacks_of_a_recording_with_java_name_its_option() {
        let cut = [(StopReason::EndOfStack, 9), (StopReason::NoUnwindInfo, 1)];
        let mut summary = summary(&cut);
        let option = "-XX:+PreserveFramePointer";
        assert!(!summary.to_string().contains(option));
        summary.follow.tables.has_java = true;
        assert!(summary.to_string().contains(option));
        summary.decoder.user_stacks[StopReason::NoUnwindInfo as usize] = 0;
        assert!(!summary.to_string().contains(option));
    }

    #[test]
    fn details_say_where_native_frames_of_interpreters_stayed() {
        let mut summary = summary(&[(StopReason::EndOfStack, 1)]);
        summary.samples.counts.interpreted = 5;
        summary.switches.counts.native_stayed[NativeStayed::NotEntered as usize] = 3;
        summary.unread_functions = 2;
        let (line, details) = (summary.to_string(), summary.details().to_string());
        assert!(line.contains("; 2 interpreted functions without a name"), "{line}");
        assert!(details.contains("; 5 interpreted frames"), "{details}");
        let stayed = "; 3 with native frames of an interpreter: the interpreter's loop was being";
        assert!(details.contains(stayed), "{details}");
    }

    #[test]
    fn gaps_are_reported_without_an_option() {
        let mut summary = summary(&[(StopReason::EndOfStack, 1)]);
        summary.switches.counts.lost = 7;
        summary.follow.lost_records = 8;
        assert_eq!(
            summary.to_string(),
            "[ whit bpf: 100% of 1 stacks complete; 7 records or stacks lost; 8 of the lost records were of mappings, for unwinding ]"
        );
    }
}
