//! Reports of hand-built profiles, as text.

use whit_perfdata::feature::{ClockData, CompressedDesc, Feature};
use whit_perfdata::ledger::{
    BpfLedger, BpfMeasurement, Ledger, PmiLedger, PmiMeasurement, ReaderLedger, StackLedger,
};
use whit_profile::model::{
    HeaderEvent, HeaderFacts, LossReport, Profile, RecordingInfo, StopReason,
};
use whit_profile::warning::{Reason, Warning};
use whit_types::{OutsideText, TimestampNs};

use super::*;
use crate::builder::{At, Builder, Who, at};
use crate::hists::{ChainOptions, Filters};

const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: Some(0) };
const WORKER: Who<'static> = Who { comm: "worker thread", pid: 7, tid: 8, cpu: Some(1) };

fn user(name: &str, address: u64) -> At {
    at(name, "/bin/app", address)
}

fn kernel(name: &str, address: u64) -> At {
    at(name, "[kernel.kallsyms]", address).kernel()
}

/// User and kernel code, an inlined function, recursion, an address without a symbol, two
/// threads, two events.
fn rich() -> Profile {
    let mut builder = Builder::default();
    let (cycles, faults) = (builder.event("cpu-clock"), builder.event("page-faults"));
    let (start, main) = (at("_start", "/lib/ld.so", 0x10), user("main", 0x1000));
    let rec = user("rec", 0x1100).line("src/app.c", 20);
    let inner = user("inner", 0x1200).inlined().line("src/app.c", 5);
    let leaf = user("leaf", 0x1200).line("src/app.c", 12);
    let base = [start, main];
    let chain = |rest: &[&At]| -> Vec<At> {
        base.iter().cloned().chain(rest.iter().map(|a| (*a).clone())).collect()
    };
    for _ in 0..4 {
        builder.sample(cycles, MAIN, &chain(&[&rec, &rec, &leaf, &inner]), 250);
    }
    builder.sample(cycles, MAIN, &chain(&[&rec, &leaf, &inner]), 250);
    builder.sample(cycles, MAIN, &chain(&[&leaf]), 250);
    let (entry, read) = (kernel("entry_64", 0xffff_8000), kernel("vfs_read", 0xffff_9000));
    builder.sample(cycles, MAIN, &chain(&[&entry, &read]), 500);
    let unknown = at("0x7f0012", "[unknown]", 0x7f_0012).unknown();
    builder.sample(cycles, WORKER, &[user("thread", 0x1300), unknown], 100);
    builder.sample(faults, MAIN, &chain(&[&entry]), 3);
    builder.profile
}

fn losses() -> LossReport {
    LossReport {
        lost_records: 40,
        lost_chunks: 2,
        lost_samples: 3,
        paused_ns: 20_000_000,
        elapsed_ns: 1_000_000_000,
        truncated_bytes: 100,
    }
}

fn ledger() -> Ledger {
    Ledger {
        wall_ns: 1_000_000_000,
        setup_ns: 2_000_000,
        teardown_ns: 1_000_000,
        setup_cpu_ns: 1_500_000,
        teardown_cpu_ns: 500_000,
        watched_threads: 5,
        ran_threads: 4,
        user_cpu_ns: 3_000_000,
        system_cpu_ns: 7_000_000,
        ring_bytes: 1_000_000,
        written_bytes: 250_000,
        writes: 12,
        write_ns: 800_000,
        wakeups: 20,
        samples: 1000,
        lost_records: 40,
        paused_ns: 20_000_000,
        elapsed_ns: 1_000_000_000,
        rings: 2,
        ring_size_bytes: 524_288,
        compressed_from_bytes: 1_000_000,
        compressed_to_bytes: 240_000,
        stalls: 3,
        stall_ns: 40_000,
        unwritten_records: 5,
        pmi: PmiLedger {
            measurement: PmiMeasurement::PerfHandlers,
            count: 1000,
            time_ns: 2_500_000,
            longest_ns: 40_000,
            measured_ns: 990_000_000,
        },
        bpf: BpfLedger {
            measurement: BpfMeasurement::Statistics,
            programs: 1,
            runs: 3000,
            run_time_ns: 300_000,
            timed_ns: 100_000_000,
        },
        cut_processes: 0,
        lost_cpus: 1,
        late_cpus: 0,
        stacks: StackLedger {
            unknown_mappings: 0,
            walks: 2000,
            known_again: 500,
            frames: 80_500,
            tables: 9,
            cached_tables: 7,
            without_table: 1,
            refused_tables: 2,
            rows: 81_000,
            rules: 900,
            table_bytes: 354_304,
            build_ns: 25_000_000,
            ended: std::array::from_fn(|number| match number {
                1 => 1900,
                5 => 99,
                14 => 1,
                _ => 0,
            }),
            not_opened: std::array::from_fn(|number| u64::from(number == 0)),
        },
        readers: vec![ReaderLedger { rings: 1, wakeups: 10, ..ReaderLedger::default() }; 2],
        ..Ledger::default()
    }
}

fn report(profile: &Profile, options: &StdioOptions) -> String {
    let mut out = Vec::new();
    write_report(&mut out, profile, options).unwrap();
    String::from_utf8(out).unwrap()
}

fn with(hists: HistsOptions) -> StdioOptions {
    StdioOptions { hists, ..StdioOptions::default() }
}

fn chains(text: &str) -> HistsOptions {
    HistsOptions { chains: ChainOptions::parse(text).unwrap(), ..HistsOptions::default() }
}

#[test]
fn children_with_callers() {
    insta::assert_snapshot!(report(&rich(), &StdioOptions::default()));
}

#[test]
fn no_children_with_callees() {
    let hists = HistsOptions { children: false, ..HistsOptions::default() };
    insta::assert_snapshot!(report(&rich(), &with(hists)));
}

#[test]
fn fractal_chains_show_the_rest() {
    insta::assert_snapshot!(report(&rich(), &with(chains("fractal,30,caller"))));
}

#[test]
fn flat_and_folded_chains() {
    let flat = HistsOptions { children: false, ..chains("flat") };
    let folded = HistsOptions { children: false, ..chains("folded") };
    let both = report(&rich(), &with(flat)) + &report(&rich(), &with(folded));
    insta::assert_snapshot!(both);
}

#[test]
fn no_chains_and_all_columns() {
    let sort = SortKey::parse_list("comm,pid,tgid,cpu,dso,sym,srcline,srcfile").unwrap();
    let hists = HistsOptions { sort, children: false, ..chains("none") };
    let options = StdioOptions { show_samples: true, show_period: true, ..with(hists) };
    insta::assert_snapshot!(report(&rich(), &options));
}

#[test]
fn a_single_filter_takes_its_column() {
    let filters = Filters { comms: vec!["app".into()], ..Filters::default() };
    let hists = HistsOptions { filters, ..chains("none") };
    insta::assert_snapshot!(report(&rich(), &with(hists)));
}

#[test]
fn no_inline_and_percent_limit() {
    let mut hists = HistsOptions { inline: false, ..HistsOptions::default() };
    hists.set_percent_limit(30.0);
    insta::assert_snapshot!(report(&rich(), &with(hists)));
}

#[test]
fn a_symbol_that_is_the_first_column_does_not_head_its_own_chain() {
    let sort = SortKey::parse_list("sym,dso").unwrap();
    let hists = HistsOptions { sort, ..HistsOptions::default() };
    insta::assert_snapshot!(report(&rich(), &with(hists)));
}

fn missing_library(number: usize) -> Warning {
    let binary = format!("lib{number}.so");
    let path = std::path::PathBuf::from(format!("/lib/{binary}"));
    Warning::NoSymbols { binary: binary.into(), reason: Reason::FileMissing { path: path.into() } }
}

#[test]
fn losses_are_shown_with_every_event() {
    let mut profile = rich();
    profile.losses = losses();
    profile.ledger = Some(ledger());
    profile.events[0].lost_samples = 3;
    profile.warnings = (0..25).map(missing_library).collect();
    let text = report(&profile, &with(chains("none")));
    assert_eq!(text.matches("# Lost: 40 records in 2 chunks").count(), 2);
    insta::assert_snapshot!(text);
}

#[test]
fn a_quiet_report_still_names_losses() {
    let mut profile = rich();
    profile.losses = losses();
    let options = StdioOptions { quiet: true, ..with(chains("none")) };
    let text = report(&profile, &options);
    let comments: Vec<_> = text.lines().filter(|l| l.starts_with('#')).collect();
    assert_eq!(comments.len(), 2);
    assert!(comments.iter().all(|l| l.starts_with("# Lost: 40 records")));
}

#[test]
fn an_empty_profile_says_so_and_names_losses() {
    let mut profile = Profile { losses: losses(), ..Profile::default() };
    profile.recording.path = "perf.data".into();
    insta::assert_snapshot!(report(&profile, &StdioOptions::default()), @r"
    # To display the perf.data header info, please use --header/--header-only options.
    #
    #
    # Total Lost Samples: 3
    #
    # The recording perf.data has no samples.
    # Lost: 40 records in 2 chunks, 3 samples, data loss 2.00% (rings full for 20.0 ms of 1.00 s), 100 B of the recording hold no whole record (it was cut off)
    ");
}

#[test]
fn colours_mark_shares() {
    let hists = HistsOptions { children: false, ..chains("graph,callee") };
    let options = StdioOptions { colour: Colour::Ansi, ..with(hists) };
    let coloured = report(&rich(), &options);
    assert!(coloured.contains("  \u{1b}[31m  59.52%\u{1b}[0m  app"), "{coloured}");
    assert!(coloured.contains("--\u{1b}[31m47.62%\u{1b}[0m--"), "{coloured}");
    let plain = report(&rich(), &StdioOptions { colour: Colour::Never, ..options });
    let stripped = coloured.replace("\u{1b}[31m", "").replace("\u{1b}[32m", "");
    assert_eq!(stripped.replace("\u{1b}[0m", ""), plain);
}

#[test]
fn statistics() {
    let mut profile = rich();
    profile.stats.by_type =
        [("MMAP2", 4), ("SAMPLE", 9), ("LOST", 2)].map(|(n, c)| (n.to_owned(), c)).to_vec();
    profile.stats.unwind_stops = vec![(StopReason::EndOfStack, 8), (StopReason::NoUnwindInfo, 1)];
    profile.losses = losses();
    profile.events[1].lost_samples = 3;
    profile.functions[0].name = "_Z1fXsrE".into();
    let mut out = Vec::new();
    write_stats(&mut out, &profile).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

fn header_facts() -> HeaderFacts {
    let text = |text: &str| OutsideText::from(text);
    let present = [
        Feature::CPU_TOPOLOGY,
        Feature::BRANCH_STACK,
        Feature::AUXTRACE,
        Feature::STAT,
        Feature::CACHE,
        Feature::HYBRID_TOPOLOGY,
        Feature::WHIT_LEDGER,
    ];
    HeaderFacts {
        data: Some((408, 28_096)),
        present: present.to_vec(),
        events: vec![HeaderEvent {
            name: text("cycles"),
            ids: vec![11, 12],
            attributes: vec![("size".into(), "128".into()), ("disabled".into(), "1".into())],
        }],
        pmus: Some(vec![(1, text("software")), (4, text("cpu"))]),
        groups: vec![(text(""), vec![text("cycles"), text("a\nb")])],
        clock_resolution_ns: Some(1),
        directory_version: Some(1),
        bpf_programs: vec![17],
        bpf_types: vec![7, 8],
        compressed: Some(CompressedDesc::zstd(1, 7, 4096)),
        capabilities: vec![
            (text("ibs_op"), vec![]),
            (text("cpu"), vec![(text("branches"), text("32")), (text("max_precise"), text("3"))]),
        ],
        clock: Some(ClockData {
            clockid: 4,
            wall_clock_ns: 1_795_291_532_000_001_000,
            clock_ns: TimestampNs(748_150_131_999),
        }),
    }
}

#[test]
fn header_with_all_and_with_nothing() {
    let mut profile = rich();
    profile.recording = RecordingInfo {
        path: "perf.data".into(),
        size_bytes: 28_504,
        hostname: "host".into(),
        os_release: "6.18.0".into(),
        version: "0.1.0".into(),
        arch: "x86_64".into(),
        nr_cpus: Some((2, 4)),
        cpu_desc: "A CPU".into(),
        cpuid: "GenuineIntel,6,143,8".into(),
        sockets: Vec::new(),
        total_mem_kib: Some(1024),
        cmdline: vec!["whit".into(), "record".into()],
        first_sample: Some(TimestampNs(748_150_131_999)),
        last_sample: Some(TimestampNs(748_508_673_000)),
        captured_on_s: Some(1_795_291_532),
        has_callchains: true,
        header: header_facts(),
    };
    let mut out = Vec::new();
    write_header(&mut out, &profile).unwrap();
    write_header(&mut out, &Profile::default()).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn ledger_block_with_and_without_a_ledger() {
    let mut profile = Profile { ledger: Some(ledger()), losses: losses(), ..Profile::default() };
    profile.recording.path = "perf.data".into();
    let mut out = Vec::new();
    write_ledger(&mut out, &profile).unwrap();
    write_ledger(&mut out, &Profile { ledger: None, losses: LossReport::default(), ..profile })
        .unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

/// The two lines of the ledger about the kernel's side.
fn kernel_side(pmi: PmiLedger, bpf: BpfLedger) -> Vec<String> {
    let profile = Profile { ledger: Some(Ledger { pmi, bpf, ..ledger() }), ..Profile::default() };
    let mut out = Vec::new();
    write_ledger(&mut out, &profile).unwrap();
    let text = String::from_utf8(out).unwrap();
    let is_meant = |line: &&str| line.starts_with("  PMIs ") || line.starts_with("  BPF ");
    text.lines().filter(is_meant).map(str::to_owned).collect()
}

#[test]
fn the_ledger_says_why_something_was_not_measured() {
    for code in 0..10 {
        let pmi = PmiLedger { measurement: PmiMeasurement::from_code(code), ..ledger().pmi };
        let bpf = BpfLedger { measurement: BpfMeasurement::from_code(code), ..ledger().bpf };
        let lines = kernel_side(pmi, bpf);
        for (line, reason) in
            [(&lines[0], pmi.measurement.reason()), (&lines[1], bpf.measurement.reason())]
        {
            let is_none = bpf.measurement == BpfMeasurement::NoProgram && line.contains("BPF");
            match reason.filter(|_| !is_none) {
                Some(reason) => assert!(
                    line.contains(&format!("not measured: {reason}"))
                        || line.contains(&format!("not measured:  {reason}")),
                    "{line}"
                ),
                None => assert!(!line.contains("not measured"), "{line}"),
            }
        }
    }
    let none = |measurement| BpfLedger { measurement, ..BpfLedger::default() };
    let all = PmiLedger { measurement: PmiMeasurement::AllHandlers, ..ledger().pmi };
    let lines = kernel_side(all, none(BpfMeasurement::Untold));
    assert!(lines[0].ends_with("; all NMIs that were handled, since perf's handlers are hidden"));
    let untold = "  BPF programs       not measured:  the recorder was of a version that did not";
    assert_eq!(lines[1], untold);
    let lines = kernel_side(all, none(BpfMeasurement::NoProgram));
    assert_eq!(lines[1], "  BPF programs                   0");
}

#[test]
fn a_separator_is_written_between_columns_and_in_no_value() {
    let hists = HistsOptions { children: false, ..chains("none") };
    let mut options = StdioOptions { separator: Some(','), show_samples: true, ..with(hists) };
    let text = report(&rich(), &options);
    assert!(text.contains("# Overhead,Samples,Command,Shared Object,Symbol\n"), "{text}");
    let rows = || text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    assert!(rows().count() > 2 && rows().all(|row| row.split(',').count() == 5), "{text}");
    options.separator = Some('e');
    let text = report(&rich(), &options);
    let mut rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    assert!(rows.all(|row| row.split('e').count() == 5), "{text}");
}

#[test]
fn relative_shares_are_of_the_filtered_samples() {
    let filters = Filters { comms: vec!["app".into()], ..Filters::default() };
    let hists = HistsOptions { filters, children: false, ..chains("none") };
    let sum = |relative| {
        let options = with(HistsOptions { relative, ..hists.clone() });
        let text = report(&rich(), &StdioOptions { separator: Some(','), ..options });
        let shares = text.lines().filter_map(|line| line.split_once('%')?.0.parse::<f64>().ok());
        shares.sum::<f64>()
    };
    assert!(sum(false) < 199.0, "{}", sum(false));
    // Two events, and shares with two decimals.
    assert!((sum(true) - 200.0).abs() < 0.1, "{}", sum(true));
}

#[test]
fn latency_is_next_to_overhead_and_what_is_unknown_is_said() {
    use crate::hists::WeightColumns;
    use whit_profile::parallelism::{Parallelism, ParallelismInfo};
    let mut builder = Builder::default();
    let event = builder.event("cpu-clock");
    let threads = [Parallelism::Threads(1), Parallelism::Threads(2), Parallelism::Unknown];
    for (parallelism, name) in threads.into_iter().zip(["alone", "together", "together"]) {
        builder.next_facets.parallelism = Some(parallelism);
        builder.sample(event, MAIN, &[user("main", 1), user(name, name.len() as u64)], 250);
    }
    builder.profile.parallelism = Some(ParallelismInfo {
        recorded_ns: 2_000_000,
        ran_ns: 1_000_000,
        unknown_ns: 500_000,
        ..ParallelismInfo::default()
    });
    let mut options = StdioOptions::default();
    options.hists.shares = WeightColumns::LatencyAndOverhead;
    options.hists.sort = vec![SortKey::Symbol];
    options.hists.chains = ChainOptions::parse("none").unwrap();
    let text = report(&builder.profile, &options);
    let lines: Vec<_> = text.lines().skip(4).filter(|line| !line.is_empty()).collect();
    let expected = [
        "# Parallelism: how many of all recorded threads ran (another set: --parallelism-of)",
        "# Latency: each sample counts for 1/parallelism",
        "# Any recorded thread ran for 1.0 ms of 2.0 ms",
        "# Parallelism is unknown for 500.0 us (25.00% of the time): records are missing or contradict each other",
        "#",
        "# Samples: 3  of event 'cpu-clock'",
        "# Event count (approx.): 750",
        "# Latency (approx.): 375",
        "# Unknown parallelism: 1 sample (33.33% of the event), without latency: a share of it may be up to 40.00 points too low or too high",
        "#",
        "#  Latency  Children  Self latency      Self  Symbol      ",
        "# ........  ........  ............  ........  ............",
        "#",
        "   100.00%   100.00%         0.00%     0.00%  [.] main",
        "    66.67%    33.33%        66.67%    33.33%  [.] alone",
        "    33.33%    66.67%        33.33%    66.67%  [.] together",
    ];
    assert_eq!(lines, expected, "{text}");
    options.hists.shares = WeightColumns::OverheadAndLatency;
    options.hists.children = false;
    options.hists.sort = vec![SortKey::Parallelism];
    (options.separator, options.quiet) = (Some(','), false);
    let text = report(&builder.profile, &options);
    let table: Vec<_> = text.lines().filter(|line| line.contains(',')).skip(1).collect();
    let expected = [
        "# Overhead,Latency,Parallelism",
        "33.33%,66.67%,1",
        "33.33%,33.33%,2",
        "33.33%,0.00%,unknown",
    ];
    assert_eq!(table[table.len() - 4..], expected, "{text}");
}

/// A function with a long name of templates.
fn long_named() -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cpu-clock");
    let name = format!("std::_Rb_tree<int, std::pair<{}>>::_M_insert_unique", "x".repeat(10_000));
    builder.sample(event, MAIN, &[user("main", 0x1000), user(&name, 0x1100)], 1000);
    builder.sample(event, MAIN, &[user("main", 0x1000), user("small", 0x1200)], 1);
    builder.profile
}

#[test]
fn columns_of_a_terminal_are_narrowed_and_methods_stay() {
    let options = StdioOptions { width: Some(60), ..with(chains("none")) };
    let text = report(&long_named(), &options);
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let long: Vec<_> = rows.filter(|line| line.chars().count() > 60).collect();
    assert!(long.is_empty(), "{long:?}");
    assert!(text.contains("[.] …_M_insert_unique\n"), "{text}");
    let wide = report(&long_named(), &StdioOptions { width: Some(20_000), ..options });
    assert_eq!(wide, report(&long_named(), &with(chains("none"))));
}

#[test]
fn a_terminal_says_how_many_rows_are_left_out() {
    let mut hists = chains("none");
    hists.percent_limit = 0.5;
    let counted =
        report(&long_named(), &StdioOptions { counts_left_out: true, ..with(hists.clone()) });
    assert!(
        counted.contains("# Left out: 1 row below 0.5%; --percent-limit 0 shows all\n"),
        "{counted}"
    );
    assert!(!report(&long_named(), &with(hists.clone())).contains("Left out"));
    hists.percent_limit = 0.0;
    let all = report(&long_named(), &StdioOptions { counts_left_out: true, ..with(hists) });
    assert!(!all.contains("Left out"));
}
