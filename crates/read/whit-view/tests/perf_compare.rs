//! Compares reports with those of the installed `perf` on the same recording.
//!
//! The recording is turned into a profile by way of `perf script`, so that symbols, call chains
//! and counts are perf's own and only the views are under test.

#![allow(unreachable_pub, reason = "the helpers are shared by path")]

#[path = "support/builder.rs"]
mod builder;
#[path = "support/perf.rs"]
mod perf;

use perf::{Recording, profile_of};
use whit_profile::model::{NodeId, Profile};
use whit_view::hists::{ChainMode, ChainOptions, Filters, HistsOptions, SelfTime, SortKey};
use whit_view::stdio::{StdioOptions, write_report};

fn report(profile: &Profile, options: &StdioOptions) -> Vec<String> {
    let mut out = Vec::new();
    write_report(&mut out, profile, options).unwrap();
    let mut table = perf::table(&String::from_utf8(out).unwrap());
    // perf does not say its rule.
    table.retain(|line| !line.starts_with("# Self time: "));
    table
}

fn options(children: bool, chains: &str, sort: &str) -> StdioOptions {
    let hists = HistsOptions {
        children,
        chains: ChainOptions::parse(chains).unwrap(),
        sort: SortKey::parse_list(sort).unwrap(),
        self_time: SelfTime::Outer,
        ..HistsOptions::default()
    };
    StdioOptions { hists, ..StdioOptions::default() }
}

/// The lines that one of two reports alone has.
fn only_here(mine: &[String], theirs: &[String]) -> String {
    let without = |these: &[String], others: &[String]| {
        these.iter().filter(|line| !others.contains(line)).cloned().collect::<Vec<_>>()
    };
    format!("mine alone {:#?}, perf's alone {:#?}", without(mine, theirs), without(theirs, mine))
}

/// Asserts that both reports have the same lines, but for the order of equally heavy branches of a
/// call graph: perf's hangs on heap addresses where they lead to different binaries.
fn assert_same(name: &str, mine: &[String], theirs: &[String]) {
    let (mine_all, theirs_all) = (mine, theirs);
    let (mine, theirs) = (perf::blocks(mine), perf::blocks(theirs));
    let mut reordered = 0;
    for (mine, theirs) in mine.iter().zip(&theirs) {
        assert_eq!(mine[0], theirs[0], "{name}; {}", only_here(mine_all, theirs_all));
        if mine != theirs {
            reordered += 1;
            assert_eq!(perf::branches(mine), perf::branches(theirs), "{name}: {}", mine[0]);
        }
    }
    assert_eq!(mine.len(), theirs.len(), "{name}: number of rows and other lines");
    assert!(mine.len() > 5, "{name}: an almost empty report proves nothing");
    assert!(reordered * 4 <= mine.len(), "{name}: {reordered} graphs of {} differ", mine.len());
}

#[test]
fn one_thread_is_printed_as_perf_prints_it_to_the_byte() {
    let Some(recording) = Recording::make("one_thread", "one") else { return };
    let profile = profile_of(&recording);
    // Written out as `symbol`, the key makes perf 6 add an empty column for instructions per cycle.
    for (children, chains, sort) in [
        (false, "none", "comm,dso,sym"),
        (true, "none", "comm,dso,sym"),
        (false, "none", "sym"),
        (true, "none", "dso"),
        (false, "none", "pid,sym"),
        (true, "graph,0.5,caller", "comm,dso,sym"),
        (false, "graph,0.5,callee", "comm,dso,sym"),
        (true, "graph,0.5,callee", "comm,dso,sym"),
        (false, "graph,0.5,caller", "comm,dso,sym"),
        (true, "fractal,5,caller", "comm,dso,sym"),
        (true, "graph,2,caller", "sym"),
        (false, "folded,1,callee", "comm,dso,sym"),
        (false, "flat,1,callee", "comm,dso,sym"),
    ] {
        let theirs = recording.report(&[
            if children { "--children" } else { "--no-children" },
            "-g",
            chains,
            "--sort",
            sort,
        ]);
        let mine = report(&profile, &options(children, chains, sort));
        let name = format!("children {children}, -g {chains}, --sort {sort}");
        assert_same(&name, &mine, &perf::table(&theirs));
    }
}

#[test]
fn several_threads_and_events_have_perfs_rows_and_percentages() {
    let Some(recording) = Recording::make("threads", "threads") else { return };
    let profile = profile_of(&recording);
    for children in [false, true] {
        let flag = if children { "--children" } else { "--no-children" };
        let theirs = recording.report(&[flag, "-g", "none"]);
        let mine = report(&profile, &options(children, "none", "comm,dso,sym"));
        // Among equally heavy rows of several threads perf's order hangs on which sample came
        // first, so runs of equal weight are compared as sets.
        let (mine, theirs) = (perf::sort_ties(&mine), perf::sort_ties(&perf::table(&theirs)));
        assert_same(flag, &mine, &theirs);
    }
}

#[test]
fn percent_limit_keeps_perfs_rows() {
    let Some(recording) = Recording::make("limit", "one") else { return };
    let profile = profile_of(&recording);
    let mut options = options(true, "graph,caller", "comm,dso,sym");
    options.hists.set_percent_limit(4.0);
    assert_eq!(options.hists.chains.mode, ChainMode::Graph);
    let theirs = recording.report(&["--children", "-g", "graph,caller", "--percent-limit", "4"]);
    assert_same("limit", &report(&profile, &options), &perf::table(&theirs));
}

#[test]
fn inlined_frames_have_perfs_rows_and_chains() {
    // With frame pointers this perf shows no inlined frames; with dumped stacks it does. Only what
    // the workload itself does, since where symbol table and debug information name a function
    // differently, as in the dynamic linker and in libc, perf loses the physical frame. A sample
    // of the program's start or end is rare, but there is one at times.
    let record = ["--call-graph", "dwarf", "-e", "cpu-clock:u"];
    let mut attempts = 0..20;
    let (recording, profile) = loop {
        assert!(attempts.next().is_some(), "every recording has samples outside of main");
        let Some(recording) = Recording::with("inlined", "pure", &record) else { return };
        let profile = profile_of(&recording);
        if profile.rows.iter().all(|row| is_of_main(&profile, row.node)) {
            break (recording, profile);
        }
    };
    let inlined = profile.frames.iter().filter(|f| f.inlined).count();
    assert!(inlined > 0, "the recording has no inlined frame");
    for (children, chains) in [
        (false, "none"),
        (false, "graph,1,callee"),
        (true, "graph,1,caller"),
        (true, "graph,1,callee"),
    ] {
        let flag = if children { "--children" } else { "--no-children" };
        let theirs = recording.report(&[flag, "-g", chains]);
        let mine = report(&profile, &options(children, chains, "comm,dso,sym"));
        assert_same(&format!("inlined {flag} {chains}"), &mine, &perf::table(&theirs));
    }
}

/// Whether a call stack leads through `main` to code of the same binary.
fn is_of_main(profile: &Profile, leaf: NodeId) -> bool {
    let function = |node: NodeId| {
        let frame = profile.nodes[node.index()].frame;
        &profile.functions[profile.frames[frame.index()].function.index()]
    };
    let mut node = leaf;
    while node != NodeId::NONE {
        if function(node).name == "main" {
            return function(leaf).dso == function(node).dso;
        }
        node = profile.nodes[node.index()].parent;
    }
    false
}

#[test]
fn filters_and_extra_columns_are_perfs() {
    let Some(recording) = Recording::make("filters", "threads") else { return };
    let profile = profile_of(&recording);
    let cases: [(&[&str], Filters); 4] = [
        (&["--comms", "worker-a"], filters(&["worker-a"], &[], &[])),
        (&["--dsos", "workload"], filters(&[], &["workload"], &[])),
        (&["--dsos", "workload,libc.so.6"], filters(&[], &["workload", "libc.so.6"], &[])),
        (&["--symbols", "leaf_add,leaf_mul"], filters(&[], &[], &["leaf_add", "leaf_mul"])),
    ];
    for (arguments, filters) in cases {
        let extra = ["--no-children", "-g", "none", "-n", "--show-total-period"];
        let theirs = recording.report(&[&extra, arguments].concat());
        let mut options = options(false, "none", "comm,dso,sym");
        options.hists.filters = filters;
        (options.show_samples, options.show_period) = (true, true);
        let mine = perf::sort_ties(&report(&profile, &options));
        let theirs = perf::sort_ties(&perf::table(&theirs));
        assert_same(&format!("{arguments:?}"), &mine, &theirs);
    }
}

fn filters(comms: &[&str], dsos: &[&str], symbols: &[&str]) -> Filters {
    let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    Filters { comms: list(comms), dsos: list(dsos), symbols: list(symbols), ..Filters::default() }
}
