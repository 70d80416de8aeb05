//! Rows of hand-built profiles: recursion, inlining, contexts, filters.

use whit_profile::model::{CgroupId, CgroupInfo, EventId, Profile};

use super::*;
use crate::builder::{At, Builder, Who, at};

const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: Some(0) };
const WORKER: Who<'static> = Who { comm: "worker", pid: 7, tid: 8, cpu: Some(1) };

fn user(name: &str, address: u64) -> At {
    at(name, "/bin/app", address)
}

/// `comm self/children dso function` by row.
fn lines(profile: &Profile, hists: &Hists) -> Vec<String> {
    let line = |r: &HistRow| {
        let mut words = vec![format!("{}/{}", r.self_period, r.children_period)];
        words.extend(r.context.comm.map(|c| profile.comms[c.index()].to_string()));
        words.extend(r.context.tid.map(|t| t.0.to_string()));
        words.extend(r.context.cpu.map(|c| format!("cpu{}", c.0)));
        words.extend(r.place.dso.map(|d| profile.dsos[d.index()].short_name.to_string()));
        let function = r.place.function.map(|f| profile.functions[f.index()].name.to_string());
        words.extend(function.map(|f| if r.place.inlined { f + " (inlined)" } else { f }));
        words.join(" ")
    };
    hists.rows.iter().map(line).collect()
}

fn rows(profile: &Profile, options: &HistsOptions) -> Vec<String> {
    lines(profile, &hists(profile, EventId(0), options))
}

fn by(sort: &str) -> HistsOptions {
    HistsOptions { sort: SortKey::parse_list(sort).unwrap(), ..HistsOptions::default() }
}

#[test]
fn recursion_counts_once() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let (main, rec, leaf) = (user("main", 1), user("rec", 0x10), user("leaf", 0x20));
    builder.sample(event, MAIN, &[main.clone(), rec.clone(), rec.clone(), leaf.clone()], 10);
    builder.sample(event, MAIN, &[main.clone(), rec.clone(), rec], 5);
    assert_eq!(
        rows(&builder.profile, &by("sym")),
        ["0/15 app main", "5/15 app rec", "10/10 app leaf"]
    );
}

#[test]
fn a_sample_in_inlined_code_is_the_inlined_functions_own() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let inner = user("inner", 0x12).inlined().line("app.c", 3);
    let chain = [user("main", 1), user("outer", 0x12).line("app.c", 9), inner];
    builder.sample(event, MAIN, &chain, 10);
    let innermost = ["10/10 app inner (inlined)", "0/10 app main", "0/10 app outer"];
    assert_eq!(rows(&builder.profile, &by("sym")), innermost);
    let outer = ["10/10 app outer", "0/10 app main", "0/10 app inner (inlined)"];
    let as_perf = HistsOptions { self_time: SelfTime::Outer, ..by("sym") };
    assert_eq!(rows(&builder.profile, &as_perf), outer);
    let without = HistsOptions { inline: false, ..by("sym") };
    assert_eq!(rows(&builder.profile, &without), ["10/10 app outer", "0/10 app main"]);
}

#[test]
fn the_own_line_is_the_innermost_one() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let inner = user("inner", 0x12).inlined().line("src/app.c", 3);
    let chain = [user("main", 1), user("outer", 0x12).line("src/app.c", 9), inner];
    builder.sample(event, MAIN, &chain, 10);
    let hists =
        hists(&builder.profile, EventId(0), &HistsOptions { children: false, ..by("sym,srcline") });
    assert_eq!(hists.rows.len(), 1);
    assert!(matches!(hists.rows[0].place.source, SourceKey::Line(_, 3)));
    assert_eq!(lines(&builder.profile, &hists), ["10/10 app inner (inlined)"]);
    let as_perf = HistsOptions { children: false, self_time: SelfTime::Outer, ..by("sym,srcline") };
    let hists = super::hists(&builder.profile, EventId(0), &as_perf);
    assert!(matches!(hists.rows[0].place.source, SourceKey::Line(_, 3)));
    assert_eq!(lines(&builder.profile, &hists), ["10/10 app outer"]);
}

#[test]
fn contexts_keep_commands_threads_and_cpus_apart() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, MAIN, &[user("main", 1)], 10);
    builder.sample(event, WORKER, &[user("main", 1)], 20);
    builder.sample(event, Who { cpu: Some(0), ..WORKER }, &[user("main", 1)], 3);
    let profile = &builder.profile;
    assert_eq!(rows(profile, &by("comm")), ["23/23 worker", "10/10 app"]);
    assert_eq!(rows(profile, &by("pid")), ["23/23 8", "10/10 7"]);
    assert_eq!(rows(profile, &by("cpu")), ["20/20 cpu1", "13/13 cpu0"]);
    assert_eq!(rows(profile, &by("tgid")).len(), 1);
    assert_eq!(
        rows(profile, &by("comm,cpu")),
        ["20/20 worker cpu1", "10/10 app cpu0", "3/3 worker cpu0"]
    );
}

#[test]
fn binaries_of_one_short_name_share_a_row() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, MAIN, &[at("f", "/a/libx.so", 1)], 1);
    builder.sample(event, MAIN, &[at("f", "/b/libx.so", 1)], 2);
    assert_eq!(rows(&builder.profile, &by("dso")), ["3/3 libx.so"]);
}

#[test]
fn filters_take_rows_and_leave_percentages() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, MAIN, &[user("main", 1), at("memcpy", "/lib/libc.so.6", 2)], 60);
    builder.sample(event, WORKER, &[user("main", 1), user("leaf", 3)], 40);
    let profile = &builder.profile;
    let filtered = |comms: &[&str], dsos: &[&str], symbols: &[&str], sort: &str| {
        let list = |l: &[&str]| l.iter().map(|s| (*s).to_owned()).collect();
        let filters = Filters {
            comms: list(comms),
            dsos: list(dsos),
            symbols: list(symbols),
            ..Filters::default()
        };
        let hists = hists(profile, EventId(0), &HistsOptions { filters, ..by(sort) });
        assert_eq!((hists.total_period, hists.total_samples), (100, 2));
        lines(profile, &hists)
    };
    let dso_rows = filtered(&[], &["libc.so.6"], &[], "comm,dso,sym");
    assert_eq!(dso_rows, ["60/60 app libc.so.6 memcpy"]);
    assert_eq!(filtered(&[], &["/lib/libc.so.6"], &[], "dso"), ["60/60 libc.so.6"]);
    assert_eq!(filtered(&["worker"], &[], &[], "sym").len(), 2);
    assert_eq!(filtered(&[], &[], &["main"], "sym"), ["0/100 app main"]);
    // No key names the function: samples are taken by their own.
    assert_eq!(filtered(&[], &[], &["leaf"], "comm"), ["40/40 worker"]);
    assert_eq!(filtered(&["nobody"], &[], &[], "sym"), [""; 0]);
}

#[test]
fn a_filter_takes_a_name_exactly_and_as_it_is_printed() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, Who { comm: "a\x1bb", ..MAIN }, &[user("main", 1)], 10);
    for name in ["a\x1bb", "a\\x1bb"] {
        let filters = Filters { comms: vec![name.to_owned()], ..Filters::default() };
        let hists = hists(&builder.profile, event, &HistsOptions { filters, ..by("comm") });
        assert_eq!(hists.rows.len(), 1, "{name:?}");
    }
}

#[test]
fn a_recording_without_call_chains_has_no_children() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, MAIN, &[user("main", 1)], 10);
    let hists = hists(&builder.profile, EventId(0), &HistsOptions::default());
    assert!(!hists.children);
    assert!(hists.rows[0].chains.nodes.is_empty());
}

#[test]
fn events_do_not_mix() {
    let mut builder = Builder::default();
    let (first, second) = (builder.event("cycles"), builder.event("faults"));
    builder.sample(first, MAIN, &[user("main", 1)], 10);
    builder.sample(second, MAIN, &[user("other", 2)], 1);
    let second = hists(&builder.profile, second, &by("sym"));
    assert_eq!(lines(&builder.profile, &second), ["1/1 app other"]);
}

#[test]
fn very_deep_chains_need_no_stack() {
    const DEPTH: usize = 100_000;
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let chain: Vec<At> = (0..DEPTH).map(|i| user(["even", "odd"][i % 2], i as u64 % 2)).collect();
    builder.sample(event, MAIN, &chain, 1);
    for order in [ChainOrder::Caller, ChainOrder::Callee] {
        let mut options = by("sym");
        options.chains.order = Some(order);
        let hists = hists(&builder.profile, EventId(0), &options);
        assert_eq!(hists.rows.len(), 2);
        assert!(hists.rows.iter().all(|r| r.children_period == 1));
        assert!(hists.rows.iter().any(|r| r.chains.nodes[0].entries.len() == DEPTH));
    }
}

#[test]
fn cgroups_containers_and_units_make_rows() {
    let id = "ab".repeat(32);
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let paths = [
        format!("/system.slice/docker-{id}.scope"),
        format!("/system.slice/docker-{id}.scope/init.scope"),
        "/system.slice/nginx.service".to_owned(),
    ];
    let named = paths.iter().map(|path| CgroupInfo { path: path.as_str().into(), known: true });
    builder.profile.cgroups.extend(named);
    builder.profile.cgroups.push(CgroupInfo { path: "[cgroup 9]".into(), known: false });
    let cgroups = (0..4).map(|i| Some(CgroupId(i))).chain([None]);
    for (i, cgroup) in cgroups.enumerate() {
        builder.next_facets.cgroup = cgroup;
        builder.sample(event, MAIN, &[user("main", 1)], 1 << i);
    }
    let names = |key: &str| {
        let key = by(key).sort[0];
        let hists = hists(&builder.profile, EventId(0), &by(key.name()));
        let name = |row: &HistRow| {
            let name = row.context.cgroup_name(&builder.profile, key);
            format!("{} {}", row.self_period, name.unwrap_or("-"))
        };
        hists.rows.iter().map(name).collect::<Vec<_>>()
    };
    let by_cgroup = ["16 -", "8 [cgroup 9]", "4 /system.slice/nginx.service"];
    assert_eq!(names("cgroup")[..3], by_cgroup);
    assert_eq!(names("container"), ["28 -".to_owned(), format!("3 {id}")]);
    let scope = format!("1 docker-{id}.scope");
    assert_eq!(names("unit"), ["24 -", "4 nginx.service", "2 init.scope", &scope]);
    assert_eq!(names("pod"), ["31 -"]);
}

#[test]
fn commands_that_differ_in_numbers_are_one_row() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    for (number, comm) in ["kworker/3:12", "kworker/10:0", "7", "kworker/u4"].iter().enumerate() {
        let who = Who { comm, ..MAIN };
        builder.sample(event, who, &[user("main", 1)], 1 << number);
    }
    let rows = |sort: &str| {
        let hists = hists(&builder.profile, event, &by(sort));
        let name = |row: &HistRow| {
            let comm = builder.profile.comms[row.context.comm_no_digit.unwrap().index()].exact();
            format!("{} {}", row.self_period, without_digits(comm))
        };
        hists.rows.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(rows("comm_nodigit"), ["8 kworker/u<N>", "4 <N>", "3 kworker/<N>:<N>"]);
    assert_eq!(rows("comm_nodigit,comm").len(), 4);
}

#[test]
fn a_hierarchy_has_the_sums_in_front_of_their_parts() {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    builder.sample(event, MAIN, &[user("main", 1)], 10);
    builder.sample(event, MAIN, &[at("memcpy", "/lib/libc.so.6", 2)], 15);
    builder.sample(event, WORKER, &[user("main", 1)], 20);
    let profile = &builder.profile;
    let levels = |sort: &[&str]| sort.iter().map(|s| SortKey::parse_list(s).unwrap()).collect();
    let nested = |options: &HistsOptions| {
        let hists = hists(profile, event, options);
        let places = hists.places.as_ref().unwrap().iter();
        let depths: Vec<_> = places.map(|place| (place.depth, place.is_leaf)).collect();
        let rows = hists.rows.iter().map(|row| row.self_period).zip(depths).collect::<Vec<_>>();
        assert!(!hists.children);
        rows
    };
    let by_command = HistsOptions { levels: levels(&["comm", "dso"]), ..by("comm,dso") };
    let whole =
        [(25, (0, false)), (15, (1, true)), (10, (1, true)), (20, (0, false)), (20, (1, true))];
    assert_eq!(nested(&by_command), whole);
    let as_one = HistsOptions { levels: levels(&["comm,dso"]), ..by("comm,dso") };
    assert_eq!(nested(&as_one), [20, 15, 10].map(|period| (period, (0, true))));
    // A filter hides rows; the sums around those that it leaves stay whole, as in perf.
    let mut filtered = by_command;
    filtered.filters.dsos = vec!["libc.so.6".into()];
    assert_eq!(nested(&filtered), whole[..2]);
    filtered.filters = Filters { comms: vec!["worker".into()], ..Filters::default() };
    assert_eq!(nested(&filtered), whole[3..]);
    filtered.relative = true;
    assert_eq!(hists(profile, event, &filtered).total_period, 20);
    assert_eq!(nested(&filtered), whole[3..]);
}
