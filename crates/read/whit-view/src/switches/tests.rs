//! Views of switches made by hand.

use whit_perfdata::wait_object::WaitObject;
use whit_profile::model::{EventId, NodeId, Profile, ThreadId};
use whit_profile::switches::{
    Durations, Inconsistencies, LossWindow, NamedObject, RunQueueDelays, Sources, SwitchRow,
    SwitchSums, Switches, TaskState, Trust, Wait, WaitClass, WaitKind, Waker, WakerRow,
};
use whit_types::{CpuId, Tid, TimestampNs};

use super::*;
use crate::builder::{At, Builder, Who, at};

const MS: u64 = 1_000_000;

fn kernel(name: &str, address: u64) -> At {
    at(name, "[kernel.kallsyms]", address).kernel()
}

/// A program with two threads: one waits for a futex and is preempted, one computes and wakes it.
pub(crate) fn recorded() -> (Profile, Switches) {
    let mut builder = Builder::default();
    let event = builder.event("cpu-clock");
    let waiter = Who { comm: "app", pid: 7, tid: 7, cpu: None };
    let waker = Who { comm: "app", pid: 7, tid: 8, cpu: None };
    let (main, work) = (at("main", "/bin/app", 0x10), at("work", "/bin/app", 0x20));
    let lock = at("lock", "/lib/libc.so", 0x30).inlined();
    let (syscall, schedule) = (kernel("do_syscall_64", 0x40), kernel("schedule", 0x50));
    let irq = kernel("irqentry_exit", 0x60);
    let futex = kernel("futex_wait", 0x70);
    let chains = [
        vec![main.clone(), lock, syscall, futex, schedule.clone()],
        vec![main.clone(), irq, schedule],
        vec![main.clone(), work.clone()],
    ];
    for (who, chain) in [(waiter, &chains[0]), (waiter, &chains[1]), (waker, &chains[2])] {
        builder.sample(event, who, chain, 1);
    }
    let profile = builder.profile;
    let row = |index: usize, sums| {
        let row = profile.rows[index];
        SwitchRow {
            thread: row.thread,
            comm: row.comm,
            node: row.node,
            object: None,
            brings: Default::default(),
            block: 0,
            sums,
        }
    };
    let rows = vec![
        row(
            0,
            SwitchSums {
                cpu_ns: MS / 10,
                sync_count: 5,
                sync_wait_ns: 30 * MS,
                woken_count: 4,
                blocked_ns: 28 * MS,
                runnable_ns: MS,
                lossy_count: 1,
                lossy_wait_ns: 7 * MS,
                longest_sync_ns: 20 * MS,
                ..SwitchSums::default()
            },
        ),
        row(
            1,
            SwitchSums {
                preempt_count: 3,
                preempt_wait_ns: 4 * MS,
                open_count: 1,
                open_wait_ns: 50 * MS,
                longest_preempt_ns: 3 * MS,
                ..SwitchSums::default()
            },
        ),
        row(2, SwitchSums { cpu_ns: 90 * MS, ..SwitchSums::default() }),
        SwitchRow {
            thread: ThreadId(1),
            comm: profile.rows[2].comm,
            node: NodeId::NONE,
            object: None,
            brings: Default::default(),
            block: 0,
            sums: SwitchSums { cpu_ns: MS, lossy_cpu_ns: MS, ..SwitchSums::default() },
        },
    ];
    let by = Waker { thread: ThreadId(1), node: profile.rows[2].node, from_interrupt: false };
    let worst = Wait {
        begun_before: false,
        thread: ThreadId(0),
        comm: profile.rows[0].comm,
        start: TimestampNs(2_000_000_001),
        duration_ns: 20 * MS,
        cpu: Some(CpuId(3)),
        kind: WaitKind::Sync,
        state: Some(TaskState(1)),
        node: profile.rows[0].node,
        object: Some(0),
        brings: Default::default(),
        woken: Some((TimestampNs(2_019_000_001), by)),
        trust: Trust::Whole,
        is_open: false,
    };
    let open = Wait {
        duration_ns: 50 * MS,
        kind: WaitKind::Preempt,
        state: None,
        node: profile.rows[1].node,
        object: None,
        brings: Default::default(),
        woken: None,
        trust: Trust::Lossy,
        is_open: true,
        cpu: None,
        ..worst
    };
    let switches = Switches {
        sources: Sources {
            records: true,
            tracepoint: true,
            stacks: true,
            wakeups: true,
            interrupts: true,
            stolen: true,
            samples: Some(EventId(0)),
        },
        rows,
        objects: vec![NamedObject::Described(WaitObject::Pipe { inode: 9 })],
        wakers: vec![WakerRow { row: 0, waker: by, count: 4, blocked_ns: 28 * MS }],
        worst: vec![open, worst],
        inconsistencies: Inconsistencies { missing_ins: 1, ..Inconsistencies::default() },
        loss_windows: vec![LossWindow { from: TimestampNs(5), to: TimestampNs(6) }],
        span: Some((TimestampNs(1_000_000_000), TimestampNs(3_000_000_000))),
        recorded_ns: 2_000_000_000,
        ..Switches::default()
    };
    (profile, switches)
}

fn text(views: &[View], options: &SwitchViewOptions) -> String {
    let (profile, switches) = recorded();
    let mut out = Vec::new();
    write_text(&mut out, &profile, &switches, views, options).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_tree_from_schedule_outwards() {
    insta::assert_snapshot!(text(&[View::Tree], &SwitchViewOptions::default()));
}

#[test]
fn the_tree_from_the_start_inwards_without_inlined_functions() {
    let options = SwitchViewOptions {
        order: ChainOrder::Caller,
        inline: false,
        quiet: true,
        ..SwitchViewOptions::default()
    };
    insta::assert_snapshot!(text(&[View::Tree], &options));
}

#[test]
fn functions_and_threads() {
    let options = SwitchViewOptions { quiet: true, ..SwitchViewOptions::default() };
    insta::assert_snapshot!(text(&[View::Flat, View::Threads], &options));
}

#[test]
fn single_waits_and_wakers() {
    let options = SwitchViewOptions { quiet: true, ..SwitchViewOptions::default() };
    insta::assert_snapshot!(text(&[View::Worst, View::Wakers], &options));
}

/// A wait before the first run has columns of its own, and names the thread's maker.
#[test]
fn new_threads_are_distinguished() {
    let (profile, mut switches) = recorded();
    let sums = &mut switches.rows[3].sums;
    (sums.new_count, sums.new_wait_ns) = (2, 3 * MS);
    let wait = switches.worst.last_mut().unwrap();
    (wait.kind, wait.cpu, wait.state, wait.node) = (WaitKind::New, None, None, NodeId::NONE);
    wait.woken = wait.woken.map(|(_, maker)| (wait.start, maker));
    let options = SwitchViewOptions::default();
    let mut out = Vec::new();
    write_text(&mut out, &profile, &switches, &[View::Tree, View::Worst], &options).unwrap();
    let text = String::from_utf8(out).unwrap();
    let line = |with: &str| text.lines().find(|line| line.contains(with)).unwrap();
    assert!(line("# New threads").ends_with("2, which waited 0.003000 s for their first run"));
    assert!(line("CPU Time").contains("  New Threads  New Thread Wait Time  "), "{text}");
    let row: Vec<_> = line("  [no call stack]").split_whitespace().collect();
    // CPU time, waits, both counts, and the new threads.
    assert_eq!(row[2..9], ["0.003000", "s", "0", "0", "2", "0.003000", "s"], "{text}");
    assert!(line("[???]  new ").ends_with("app/7"), "{text}");
    assert!(line("made by").ends_with("made by app/8, then runnable for 0.020000 s"), "{text}");
    let mut out = Vec::new();
    write_json(&mut out, &profile, &switches, &options).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (&json["total"]["new_count"], &json["worst"][1]["kind"]),
        (&2.into(), &"new".into())
    );
}

#[test]
fn a_function_alone_is_the_innermost() {
    let (profile, switches) = recorded();
    let options = SwitchViewOptions { children: false, ..SwitchViewOptions::default() };
    let stacks = Stacks::new(&profile, &options.filters, true);
    let table = FlatTable::new(stacks, &switches, &options, &options.sort);
    let names: Vec<_> = table.rows.iter().map(|row| row.key.symbol.clone().unwrap()).collect();
    assert_eq!(names, ["schedule", "work", "[no call stack]"]);
    let sums: u64 = table.rows.iter().map(|row| row.sums.cpu_ns).sum();
    assert_eq!(sums, table.total.cpu_ns);
    assert!(table.rows.iter().all(|row| row.self_cpu_ns == row.sums.cpu_ns));
}

#[test]
fn filters_look_at_whole_stacks() {
    let filters = Filters { symbols: vec!["futex_wait".into()], ..Filters::default() };
    let options = SwitchViewOptions { filters, ..SwitchViewOptions::default() };
    let (profile, switches) = recorded();
    let stacks = Stacks::new(&profile, &options.filters, true);
    let tree = StackTree::new(stacks, &switches, ChainOrder::Callee);
    assert_eq!((tree.total.sync_count, tree.total.preempt_count), (5, 0));
    assert_eq!(waits::worst(stacks, &switches, &options).len(), 1);
    let filters = Filters { comms: vec!["other".into()], ..Filters::default() };
    let tree = StackTree::new(Stacks::new(&profile, &filters, true), &switches, ChainOrder::Caller);
    assert!(tree.total.is_empty() && tree.roots.is_empty());
}

#[test]
fn the_class_of_waits_is_a_key_among_others() {
    let (profile, switches) = recorded();
    let options = SwitchViewOptions::default();
    let stacks = Stacks::new(&profile, &options.filters, true);
    let sort = FlatSort::parse("wait_class,tid").unwrap();
    let table = FlatTable::new(stacks, &switches, &options, &sort);
    let class = |row: &FlatRow| (row.key.wait_class, row.key.tid.as_ref().unwrap().0);
    let rows: Vec<_> =
        table.rows.iter().map(|row| (class(row), row.sums.wait_ns(), row.sums.cpu_ns)).collect();
    let wanted = [
        ((Some(WaitClass::Preempted), 7), 4 * MS, 0),
        ((Some(WaitClass::Lock), 7), 30 * MS, 0),
        ((None, 8), 0, 91 * MS),
        ((None, 7), 0, MS / 10),
    ];
    assert_eq!(rows.len(), wanted.len(), "{rows:?}");
    assert!(wanted.iter().all(|row| rows.contains(row)), "{rows:?}");
    assert_eq!(table.total.wait_ns(), 34 * MS);
}

#[test]
fn the_object_of_waits_is_a_key_that_adds_up() {
    let (profile, mut switches) = recorded();
    let options = SwitchViewOptions::default();
    let whole: u64 = switches.rows.iter().map(|row| row.sums.wait_ns()).sum();
    switches.rows[0].object = Some(0);
    let stacks = Stacks::new(&profile, &options.filters, true);
    let sort = FlatSort::parse("wait_object").unwrap();
    let table = FlatTable::new(stacks, &switches, &options, &sort);
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| (row.key.cell(FlatSortKey::WaitObject), row.sums.wait_ns(), row.sums.cpu_ns))
        .collect();
    let of_row = switches.rows[0].sums.sync_wait_ns;
    let pipe = ("pipe:[9]".to_owned(), of_row, 0);
    assert!(of_row > 0 && rows.contains(&pipe), "{rows:?}");
    assert!(rows.iter().any(|row| row.0 == "on-cpu" && row.1 == 0 && row.2 > 0), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), whole, "{rows:?}");
}

#[test]
fn delays_beyond_the_limit_are_counted_and_in_the_sum() {
    let (profile, mut switches) = recorded();
    let of = |thread: u32, ns: u64| {
        let mut delays = Durations::default();
        [ns, 2 * ns].into_iter().for_each(|ns| delays.add(ns));
        RunQueueDelays {
            thread: ThreadId(thread),
            delays,
            longest_from: TimestampNs(7),
            behind: vec![(ThreadId(1 - thread), ns)],
        }
    };
    switches.run_queue = vec![of(0, MS), of(1, 5 * MS)];
    let text = |limit| {
        let options = SwitchViewOptions { run_queue_limit: limit, ..SwitchViewOptions::default() };
        let mut out = Vec::new();
        write_text(&mut out, &profile, &switches, &[View::RunQueue], &options).unwrap();
        String::from_utf8(out).unwrap()
    };
    let (one_text, two_text) = (text(1), text(2));
    let tables = |text: &str| {
        let (delays, pairs) = text.split_once("# Behind whom").expect("two tables");
        (delays.to_owned(), pairs.to_owned())
    };
    let ((one, first_pair), (two, _)) = (tables(&one_text), tables(&two_text));
    let all =
        |text: &str| text.lines().find(|line| line.ends_with("all 2 threads")).map(str::to_owned);
    assert!(
        all(&one).is_some_and(|line| line.contains(" 4 ") && line.contains("0.018000 s")),
        "{one}"
    );
    assert_eq!(all(&one), all(&two));
    // The thread with the longest delay stays.
    assert!(one.contains("8:app") && !one.contains("7:app"), "{one}");
    assert!(one.contains("[1 more thread: --limit]") && !two.contains("--limit"), "{one}");
    // The threads waited 15 and 3 ms, 5 and 1 ms of it behind each other.
    assert!(first_pair.contains("8:app behind [no recorded thread]"), "{first_pair}");
    assert!(first_pair.contains("[3 more pairs: --limit]"), "{first_pair}");
    let pairs = tables(&text(9)).1;
    for line in [
        "0.010000 s    55.56%  8:app behind [no recorded thread]",
        "0.005000 s    27.78%  8:app behind 7:app",
        "0.002000 s    11.11%  7:app behind [no recorded thread]",
        "0.001000 s     5.56%  7:app behind 8:app",
    ] {
        assert!(pairs.contains(line), "{line}: {pairs}");
    }
}

#[test]
fn keys_of_samples_are_refused() {
    assert!(FlatSort::parse("comm,tid,symbol").is_ok());
    let error = FlatSort::parse("comm,cpu").unwrap_err();
    assert!(error.to_string().contains("`cpu`"), "{error}");
    let unknown = FlatSort::parse("wait_objct").unwrap_err().to_string();
    assert!(unknown.contains("`wait_objct`") && unknown.contains("wait_object"), "{unknown}");
    assert!(error.to_string().contains("wait_class"), "{error}");
}

#[test]
fn json_has_everything() {
    let (profile, switches) = recorded();
    let mut out = Vec::new();
    write_json(&mut out, &profile, &switches, &SwitchViewOptions::default()).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(json["total"]["sync_count"], 5);
    assert_eq!(json["threads"][0]["sums"]["preempt_wait_ns"], 4 * MS);
    let stack = json["rows"][0]["stack"].as_array().unwrap();
    let name =
        |at: &serde_json::Value| json["functions"][at.as_u64().unwrap() as usize]["name"].clone();
    assert_eq!(name(&stack[0]), "schedule");
    assert_eq!(name(stack.last().unwrap()), "main");
    assert_eq!(json["rows"][3]["stack"], serde_json::json!([]));
    assert_eq!(json["wakers"][0]["row"], 0);
    assert_eq!(json["worst"][0]["open"], true);
    assert_eq!(json["worst"][1]["woken"]["time_ns"], 2_019_000_001u64);
    assert_eq!(json["loss_windows_ns"], serde_json::json!([[5, 6]]));
}

#[test]
fn waits_alone_are_shown_at_the_function_in_which_they_leave_user_mode() {
    let (profile, switches) = recorded();
    let filters = Filters::default();
    let tree = StackTree::of_waits(Stacks::new(&profile, &filters, true), &switches);
    let name = |node: &u32| tree.nodes[*node as usize].place.name(&profile).to_string();
    let roots: Vec<_> = tree.roots.iter().map(name).collect();
    assert_eq!(roots, ["lock (inlined)", "main"], "no CPU time, no scheduler");
    assert_eq!(tree.total.wait_ns(), 34 * MS);
}

#[test]
fn threads_and_parts_of_names_choose_stacks() {
    let (profile, switches) = recorded();
    let count = |filters: Filters| Stacks::new(&profile, &filters, true).rows(&switches).count();
    assert_eq!(count(Filters::default()), 4);
    assert_eq!(count(Filters { tids: vec![Tid(8)], ..Filters::default() }), 2);
    assert_eq!(count(Filters { symbol_part: Some("utex".to_owned()), ..Filters::default() }), 1);
}

#[test]
fn a_narrow_terminal_leaves_columns_out_and_says_which() {
    let options = SwitchViewOptions { width: Some(80), ..SwitchViewOptions::default() };
    let text = text(&[View::Tree, View::Flat], &options);
    assert_eq!(text.matches("# Columns left out: Inactive Sync Wait Count, ").count(), 2, "{text}");
    let heads =
        text.lines().filter(|line| line.starts_with("#       CPU Time")).collect::<Vec<_>>();
    assert_eq!(heads[0], "#       CPU Time  Inactive Wait Time  Function / Call Stack");
}
