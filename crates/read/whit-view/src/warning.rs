//! The wording of warnings, one line each.

use crate::units::{bytes, counted, date};
use whit_perfdata::dump_cause::DumpCause;
use whit_perfdata::ledger::no_thread_ran_text;
use whit_perfdata::let_go::LetGo;
use whit_perfdata::stream::Missing;
use whit_profile::warning::{GivenUp, LeftOut, NoMatch, NotFetched, Warning, WhyNoMatch};
use whit_types::{OutsideText, TimestampNs};

/// The line that people read of a warning.
pub fn warning_text(warning: &Warning) -> OutsideText {
    line(warning).into()
}

fn line(warning: &Warning) -> String {
    match warning {
        Warning::OfRecording { path, warning } => format!("{}: {}", path.exact(), line(warning)),
        Warning::Recording(defect) => defect.to_string(),
        Warning::Stream(error) => error.to_string(),
        Warning::TraceFormats(error) => error.to_string(),
        Warning::StreamCut { path, missing: None } => format!("{}: cut short", path.display()),
        Warning::StreamCut { path, missing: Some(Missing { offset, size_bytes }) } => format!(
            "{}: cut short: {size_bytes} bytes at offset {offset} hold no whole record",
            path.display()
        ),
        Warning::StreamHole { path, missing: Missing { offset, size_bytes } } => format!(
            "{}: {size_bytes} bytes from offset {offset} on were never written; what follows them is read",
            path.display()
        ),
        Warning::Reduced(reduction) => reduction.to_string(),
        Warning::DumpOf(cause) => dump_of(cause),
        Warning::LetGo(let_go) => let_go_of(let_go),
        Warning::NoThreadRan { threads, has_stacks } => no_thread_ran_text(*threads, "PID", *has_stacks),
        Warning::NoMatch(no_match) => no_match_text(no_match),
        Warning::OrphanSamples(left_out) => {
            skipped("samples that belong to no event of the recording", left_out)
        }
        Warning::UnsplitSamples(left_out) => skipped(
            "samples with counts of so many events that a sample for each would take more than 16 times the memory",
            left_out,
        ),
        Warning::MalformedRecords(left_out) => {
            skipped("records that are shorter than their fields say", left_out)
        }
        Warning::UnreadableSamples { samples } => {
            format!("{samples} samples are shorter than their fields say and were left out")
        }
        Warning::ForeignStacks { stacks } => format!(
            "{stacks} user stacks were not unwound: of 32-bit processes, or of a machine neither x86-64 nor arm64"
        ),
        Warning::DisorderedSamples { samples } => {
            format!("{samples} samples stand behind later ones: their order needs more memory")
        }
        Warning::ChainsMissing { without_chain, samples } => format!(
            "{without_chain} of {samples} samples with a deferred user call chain lack it: the recording ends before \
             the thread returns to user mode, or the record (CALLCHAIN_DEFERRED) was lost"
        ),
        Warning::ChainsUnclaimed { chains } => format!(
            "{chains} deferred user call chains (CALLCHAIN_DEFERRED) belong to no sample of the recording"
        ),
        Warning::ChainsBeyondBound { left_apart, bound_bytes } => format!(
            "{left_apart} samples and deferred user call chains were not joined: those that stand apart have {} MiB \
             of memory",
            bound_bytes >> 20
        ),
        Warning::HardwareTrace { blocks } => format!(
            "the recording has a hardware trace ({blocks} AUXTRACE records) that is not decoded here: rows are of the recorded \
             samples alone (perf report and perf script decode it)"
        ),
        Warning::OneFrameChains { chains, of_one_frame } => format!(
            "{of_one_frame} of {chains} user call chains have one frame, as those of code without frame pointers: for complete \
             ones, leave --call-graph and --engine=ring out of whit record (perf record: --call-graph dwarf)"
        ),
        Warning::ChainsCut { chains, max_nodes } => {
            format!("{chains} call chains were cut: the call tree has reached {max_nodes} nodes")
        }
        Warning::ChainsCutAtCallsites { chains, max_callsites } => format!(
            "{chains} call chains are cut at their inner end: there are more than {max_callsites} call sites"
        ),
        Warning::FacetsMerged { samples, max_facets } => format!(
            "{samples} samples stand in rows that some sort keys do not tell apart: there were {max_facets} distinct \
             values; sort by fewer keys, or choose a part with --time, --pid or --cpu"
        ),
        Warning::MapsCut { first, processes } => {
            let more = match processes {
                1 => String::new(),
                processes => format!(" and {} more", processes - 1),
            };
            format!(
                "mappings of process {}{more} are missing: the recorder gave up reading /proc/PID/maps; functions in \
                 them have no names, and stacks end there (record with a longer --proc-map-timeout)",
                first.0
            )
        }
        Warning::EpochsCut { changes, max_epochs } => format!(
            "{changes} changes of address spaces were not told apart by time: a process changed its mappings more than \
             {max_epochs} times, or all together did too often"
        ),
        Warning::UnsplitGroups { events } => {
            let names: Vec<_> = events.iter().map(OutsideText::exact).collect();
            format!(
                "events that were only read with the samples of their group's leader (`:S`), which whit does not split \
                 among them: {}",
                names.join(", ")
            )
        }
        Warning::OwnNames(defect) => format!(
            "the names that the recording carries are not used, since {defect}: names come from this machine's \
             binaries"
        ),
        Warning::NoSymbols { binary, reason } => {
            format!("no symbols for {}: {reason}", binary.exact())
        }
        Warning::MoreWithoutSymbols { binaries } => {
            format!("no symbols for {binaries} more binaries")
        }
        Warning::MissingUnits { binary, file, files } => {
            let others = match files - 1 {
                0 => String::new(),
                1 => " and one more file".to_owned(),
                more => format!(" and {more} more files"),
            };
            let binary = binary.exact();
            format!(
                "inlined functions of {binary} have no names where its debug information lies in {}{others}: not found, \
                 or of another build (keep .dwo files where the compiler wrote them or beside the binary, or make \
                 {binary}.dwp: dwp -e {binary})",
                file.exact()
            )
        }
        Warning::NamesGivenUp { binary, given_up } => names_given_up(binary.exact(), given_up),
        Warning::NamesOffered { first, binaries } => {
            let more = match binaries {
                1 => String::new(),
                binaries => format!(" and {} more", binaries - 1),
            };
            format!(
                "functions of {}{more} have no names here, and a server may have them: {DEBUGINFOD_EXAMPLE} asks it \
                 (--no-debuginfod hides this line)",
                first.exact()
            )
        }
        Warning::NotFetched { binary, share, reason } => {
            let (binary, percent) = (binary.exact(), 100.0 * share);
            format!("{binary} ({percent:.1}% of the samples): {}", not_fetched(reason))
        }
        Warning::MoreNotFetched { binaries } => {
            format!("debug information of {binaries} more binaries was not fetched")
        }
        Warning::BelowFetchLimit { binaries, least_share } => format!(
            "{binaries} binaries lack debug information and have less than {}% of the samples each: it was not \
             fetched (--debuginfod-limit=0 fetches it)",
            100.0 * least_share
        ),
        Warning::NamesAloneFetched { binary } => format!(
            "lines and inlined functions of {} were not fetched: call chains begin in it and hardly come back \
             (--debuginfod-limit=0 fetches them)",
            binary.exact()
        ),
        Warning::RuntimeWithoutNames { runtime, first, processes } => {
            let more = match processes {
                0 | 1 => String::new(),
                processes => format!(" and {} more", processes - 1),
            };
            let advice = runtime.advice();
            format!(
                "functions of {runtime} have no names (process {}{more}); to get names: {advice}",
                first.0
            )
        }
        Warning::PeriodOverflow => {
            format!("{} (a corrupt recording?)", line(&Warning::MergedPeriodOverflow))
        }
        Warning::MergedPeriodOverflow => {
            "the periods of an event add up to more than 64 bits hold: shares are wrong".to_owned()
        }
        Warning::SamplesInStep { misplaced } => format!(
            "samples keep step with the recorded threads: {:.0}% of them are not where they would be in their runs \
             without it, and shares of functions are wrong (record clocks on CPUs, whose periods whit draws: -a or \
             --engine=bpf without --fixed-periods and -c; or take another -F)",
            100.0 * misplaced
        ),
        Warning::SampledTracepoint { event } => format!(
            "not every '{}' was recorded, only samples of it: record it with period=1",
            event.exact()
        ),
        Warning::UnknownFields { tracepoint } => format!(
            "{} was left out: the recording does not say where its fields are",
            tracepoint.exact()
        ),
        Warning::RootCgroupAlone => {
            "all samples are in the cgroup /: the kernel records the hierarchy that perf events count by (version 1 where \
             perf_event is mounted, else version 2), and no other; whit record --engine=bpf takes those of cpu of \
             version 1, too"
                .to_owned()
        }
        Warning::UnknownCgroups { threads } => format!(
            "{threads} threads are left out by --cgroup, since no sample of theirs or of their process tells their \
             cgroup"
        ),
        Warning::NoSuchWaitObject { parts, recorded: false, .. } => format!(
            "--wait-object {}: the recording names no objects of waits; whit record --engine=bpf does",
            parts.join(", ")
        ),
        Warning::NoSuchWaitObject { parts, recorded: true, longest } => format!(
            "--wait-object {}: no thread waited for an object of such a name; the longest waits are for {}",
            parts.join(", "),
            longest.join(", ")
        ),
        Warning::ImpossibleCpuTime { taken_ns, nr_cpus, available_ns } => {
            let seconds = |ns: &u64| *ns as f64 / 1e9;
            format!(
                "CPU times are wrong: threads took {:.3} s, but {nr_cpus} CPUs had {:.3} s while switches were recorded \
                 (the recording contradicts itself: please report it)",
                seconds(taken_ns),
                seconds(available_ns)
            )
        }
    }
}

/// The option as most people need it.
const DEBUGINFOD_EXAMPLE: &str = "--debuginfod=https://debuginfod.elfutils.org";

fn dump_of(cause: &DumpCause) -> String {
    let DumpCause { kind, detail, wall_clock_ns, wanted_ns, covered_ns } = cause;
    let seconds = |ns: &u64| format!("{:.1} s", *ns as f64 / 1e9);
    let is_short = covered_ns < wanted_ns;
    let wanted = if is_short {
        format!(", of {} that were wanted,", seconds(wanted_ns))
    } else {
        String::new()
    };
    let at = date(wall_clock_ns / 1_000_000_000);
    format!(
        "this is a dump: the last {}{wanted} of a recording. Triggered by {kind} at {at}: {detail}",
        seconds(covered_ns)
    )
}

fn let_go_of(let_go: &LetGo) -> String {
    format!(
        "missing at the beginning: {} ({}), more than whit watch keeps of a window (window-bytes). No ring was full there",
        counted(let_go.records, "record"),
        bytes(let_go.bytes)
    )
}

fn names_given_up(binary: &str, given_up: &GivenUp) -> String {
    let GivenUp { nesting, reading, packed_bytes, map_bytes } = *given_up;
    let parts = [
        (nesting > 0).then(|| {
            format!(
                "{nesting} of its addresses have no inlined functions, since these nest deeper than whit follows them"
            )
        }),
        (reading > 0).then(|| {
            format!(
                "{reading} of its addresses have neither inlined functions nor lines, since reading them takes more \
                 than debug information of its size may"
            )
        }),
        (packed_bytes > 0).then(|| {
            format!(
                "its debug information is not read, since it says that it unpacks to {}",
                bytes(packed_bytes)
            )
        }),
        (map_bytes > 0).then(|| {
            let front = bytes(map_bytes);
            format!("the first {front} of its perf-map are not read, since it is too long")
        }),
    ];
    format!(
        "names of {binary} are incomplete: {}",
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    )
}

fn not_fetched(reason: &NotFetched) -> String {
    match reason {
        NotFetched::NoProgram { path } => format!(
            "debug information was not fetched: there is no {}, the program that fetches (`make install` in whit's \
             repository installs it)",
            path.display()
        ),
        NotFetched::Stopped => {
            "debug information was not fetched: the fetch was stopped (the same command goes on with it)".to_owned()
        }
        NotFetched::Failed { reason } => {
            format!("debug information was not fetched: {}", reason.exact())
        }
        NotFetched::OtherBuild { folder } => format!(
            "the debug information that a server has is of another build, and is not used (rm -r {} asks again)",
            folder.display()
        ),
    }
}

fn skipped(records: &str, left_out: &LeftOut) -> String {
    let LeftOut { records: count, path, offset } = left_out;
    format!("{records}, left out: {count} (the first at offset {offset} of {})", path.display())
}

/// Why an option chooses nothing.
fn no_match_text(NoMatch { option, value, why }: &NoMatch) -> String {
    let reason = match why {
        WhyNoMatch::OtherNames(names) if names.is_empty() => {
            let key = option.trim_start_matches("--").trim_end_matches('s');
            format!("no sample and no switch has such a name: `whit report -s {key}` lists all")
        }
        WhyNoMatch::OtherNames(names) => {
            let names: Vec<_> = names.iter().map(OutsideText::exact).collect();
            format!(
                "no sample and no switch has such a name; the recording has {}",
                names.join(", ")
            )
        }
        WhyNoMatch::UnknownTask => {
            "the recording does not name this ID: `whit report --tasks` lists those that it has"
                .to_owned()
        }
        WhyNoMatch::NothingRecorded => "no sample and no switch was recorded of it".to_owned(),
        WhyNoMatch::OtherTime { first, last } => {
            let seconds = |time: &TimestampNs| time.0 as f64 / 1e9;
            format!("the recording is from {:.6} to {:.6}", seconds(first), seconds(last))
        }
    };
    let value = value.exact();
    let space = if value.is_empty() { "" } else { " " };
    format!("{option}{space}{value} chooses nothing: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_types::Pid;

    fn text(warning: &Warning) -> String {
        warning_text(warning).into_exact()
    }

    #[test]
    fn further_processes_with_cut_mappings_are_counted() {
        let cut = |processes| text(&Warning::MapsCut { first: Pid(7), processes });
        assert!(cut(1).starts_with("mappings of process 7 are missing: "), "{}", cut(1));
        assert!(cut(2).starts_with("mappings of process 7 and 1 more are missing: "), "{}", cut(2));
    }

    #[test]
    fn a_dump_names_its_event_and_the_time_that_it_has() {
        let mut cause = DumpCause {
            kind: "latency".to_owned(),
            detail: "latency:shop:250ms, took 251ms".to_owned(),
            wall_clock_ns: 1_795_291_532_000_000_007,
            wanted_ns: 10_000_000_000,
            covered_ns: 10_240_000_000,
        };
        assert_eq!(
            text(&Warning::DumpOf(cause.clone())),
            "this is a dump: the last 10.2 s of a recording. Triggered by latency at Sat Nov 21 20:05:32 2026 UTC: latency:shop:250ms, took 251ms"
        );
        cause.covered_ns = 4_000_000_000;
        let short = text(&Warning::DumpOf(cause));
        assert!(short.contains("the last 4.0 s, of 10.0 s that were wanted, of a"), "{short}");
    }

    #[test]
    fn records_that_a_bound_took_name_the_keys() {
        let let_go = LetGo { records: 1, bytes: 2048, until: whit_types::TimestampNs(7) };
        let said = text(&Warning::LetGo(let_go));
        assert!(said.starts_with("missing at the beginning: 1 record (2.0 KiB), "), "{said}");
        assert!(said.contains("(window-bytes)"), "{said}");
    }

    #[test]
    fn records_that_were_left_out_are_counted_with_the_place_of_the_first() {
        let left_out = LeftOut { records: 17, path: "perf.data".into(), offset: 1234 };
        assert_eq!(
            text(&Warning::OrphanSamples(left_out)),
            "samples that belong to no event of the recording, left out: 17 (the first at offset 1234 of perf.data)"
        );
        let left_out = LeftOut { records: 2, path: "perf.data".into(), offset: 8 };
        let said = text(&Warning::UnsplitSamples(left_out));
        assert!(
            said.ends_with(
                "more than 16 times the memory, left out: 2 (the first at offset 8 of perf.data)"
            ),
            "{said}"
        );
    }

    #[test]
    fn the_warning_of_one_of_several_recordings_begins_with_its_path() {
        let path = "other".into();
        let warning = Box::new(Warning::PeriodOverflow);
        let merged = text(&Warning::OfRecording { path, warning });
        assert!(
            merged.starts_with("other: the periods") && merged.ends_with("recording?)"),
            "{merged}"
        );
    }

    #[test]
    fn a_runtime_without_names_has_the_way_to_them() {
        let runtime = whit_types::Runtime::Node;
        let unnamed =
            |processes| text(&Warning::RuntimeWithoutNames { runtime, first: Pid(7), processes });
        let one =
            "functions of Node.js have no names (process 7); to get names: node --perf-basic-prof";
        assert!(unnamed(1).starts_with(one), "{}", unnamed(1));
        assert!(unnamed(3).contains("(process 7 and 2 more);"), "{}", unnamed(3));
    }

    #[test]
    fn names_of_others_are_printed_escaped() {
        let warning = Warning::UnknownFields { tracepoint: "a\x1b[2J".into() };
        assert!(warning_text(&warning).to_string().starts_with("a\\x1b[2J was left out"));
    }
}
