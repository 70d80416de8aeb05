//! The table of threads and both forms, on sums made by hand.

use super::*;
use crate::hists::Filters;
use crate::switches::tests::recorded;
use crate::switches::{Stacks, SwitchViewOptions};
use serde_json::Value;
use whit_profile::model::{Profile, ThreadId};
use whit_profile::switches::{CpuParts, CpuWall, Switches, ThreadLife};
use whit_types::CpuId;

const SECOND: u64 = 1_000_000_000;
const PARTS: CpuParts = CpuParts { irq_ns: 3_000, softirq_ns: 2_000, stolen_ns: 1_000 };

/// Each thread has one second more than its rows cover, and a wait of 7 ns that is left out.
fn alive() -> (Profile, Switches) {
    let (profile, mut switches) = recorded();
    let life = |thread| {
        let covered_ns = whole(&profile, &switches, thread).sums.total_ns();
        let elapsed_ns = covered_ns + 7 + SECOND;
        ThreadLife { thread: ThreadId(thread), elapsed_ns, left_out_ns: 7, parts: PARTS }
    };
    switches.lives = vec![life(0), life(1)];
    switches.cpus = vec![CpuWall {
        cpu: CpuId(3),
        elapsed_ns: 2 * SECOND,
        threads_ns: SECOND,
        parts: PARTS,
        idle_ns: SECOND - 16_000,
        unknown_ns: 10_000,
        excess_ns: 0,
    }];
    (profile, switches)
}

fn whole(profile: &Profile, switches: &Switches, thread: u32) -> WallTimes {
    let filters = Filters::default();
    let life = ThreadLife { thread: ThreadId(thread), elapsed_ns: 0, left_out_ns: 0, parts: PARTS };
    let switches = Switches { lives: vec![life], ..switches.clone() };
    WallTable::new(Stacks::new(profile, &filters, true), &switches).threads[0].times
}

/// The parts and the elapsed time of a thread in JSON.
fn parts_and_elapsed(sums: &Value) -> (u64, u64) {
    let number = |key: &str| sums[key].as_u64().unwrap_or_else(|| panic!("no {key} in {sums}"));
    let parts = ["cpu_ns", "waiting_ns", "preempted_ns", "run_queue_ns", "lossy_ns"];
    let others = ["uncovered_ns", "left_out_ns"];
    let sum = parts.iter().chain(&others).map(|key| number(key)).sum();
    (sum, number("elapsed_ns"))
}

fn json(options: &SwitchViewOptions) -> Value {
    let (profile, switches) = alive();
    let mut out = Vec::new();
    write_json(&mut out, &profile, &switches, options).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn text(options: &SwitchViewOptions) -> String {
    let (profile, switches) = alive();
    let mut out = Vec::new();
    write_text(&mut out, &profile, &switches, options).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn parts_add_up_to_the_elapsed_time_with_and_without_filters() {
    let futex = Filters { symbols: vec!["futex_wait".into()], ..Filters::default() };
    for (filters, shown, left_out) in [(Filters::default(), 2, 0), (futex, 1, 1)] {
        let options = SwitchViewOptions { filters, ..SwitchViewOptions::default() };
        let json = json(&options);
        let threads = json["threads"].as_array().unwrap();
        assert_eq!((threads.len(), &json["left_out_threads"]), (shown, &left_out.into()));
        for sums in threads.iter().map(|thread| &thread["sums"]).chain([&json["total"]]) {
            let (parts, elapsed) = parts_and_elapsed(sums);
            assert_eq!(parts, elapsed, "{json}");
        }
        assert_eq!(threads[0]["sums"]["uncovered_ns"], SECOND);
        assert_eq!(threads[0]["sums"]["left_out_ns"].as_u64() > Some(7), left_out > 0);
    }
}

#[test]
fn parts_of_cpu_time_are_those_of_whole_threads() {
    let work = Filters { symbols: vec!["work".into()], ..Filters::default() };
    let all = json(&SwitchViewOptions::default());
    let part = json(&SwitchViewOptions { filters: work, ..SwitchViewOptions::default() });
    for (of, count) in [(&all["total"], 2), (&all["threads"][0]["sums"], 1)] {
        let parts = ["irq_ns", "softirq_ns", "stolen_ns"].map(|key| of[key].as_u64());
        assert_eq!(parts, [3_000, 2_000, 1_000].map(|ns| Some(count * ns)));
    }
    assert_eq!(all["cpus"][0]["threads_ns"], SECOND);
    assert_eq!(all["cpus"][0]["softirq_ns"], 2_000);
    // The option leaves CPU time of the thread out.
    assert!(part["total"]["irq_ns"].is_null(), "{part}");
}

#[test]
fn parts_that_are_not_recorded_are_absent_and_said_to_be() {
    let (profile, mut switches) = alive();
    for (interrupts, stolen, line) in [
        (true, false, "softirqs 0.000004 s; the time that the hypervisor stole was not recorded"),
        (false, true, "stolen 0.000002 s; the time of interrupts was not recorded"),
        (false, false, "neither was recorded"),
    ] {
        (switches.sources.interrupts, switches.sources.stolen) = (interrupts, stolen);
        let (mut text, mut json) = (Vec::new(), Vec::new());
        write_text(&mut text, &profile, &switches, &SwitchViewOptions::default()).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(line), "{text}");
        let titles = ["Interrupts", "Softirqs", "Stolen"].map(|title| text.contains(title));
        assert_eq!(titles, [interrupts, interrupts, stolen], "{text}");
        write_json(&mut json, &profile, &switches, &SwitchViewOptions::default()).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        for of in [&json["total"], &json["cpus"][0]] {
            let parts = ["irq_ns", "softirq_ns", "stolen_ns"].map(|key| of[key].is_u64());
            assert_eq!(parts, [interrupts, interrupts, stolen], "{json}");
        }
    }
}

#[test]
fn rows_add_up_to_their_thread() {
    let json = json(&SwitchViewOptions::default());
    for part in ["cpu_ns", "waiting_ns", "preempted_ns", "run_queue_ns", "lossy_ns"] {
        for (index, thread) in json["threads"].as_array().unwrap().iter().enumerate() {
            let rows = json["rows"].as_array().unwrap().iter();
            let rows = rows.filter(|row| row["thread"] == index);
            let of_rows: u64 = rows.map(|row| row[part].as_u64().unwrap()).sum();
            assert_eq!(thread["sums"][part], of_rows, "{part}");
        }
    }
    assert_eq!(json["wakers"][0]["row"], 0);
    assert!(json["wakers"][0]["tid"].is_i64(), "{json}");
}

#[test]
fn more_time_than_a_thread_existed_is_said() {
    let (profile, mut switches) = alive();
    switches.lives[0].elapsed_ns -= SECOND + 5000;
    let mut out = Vec::new();
    write_text(&mut out, &profile, &switches, &SwitchViewOptions::default()).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("# Not fitting: threads have 0.000005 s more"), "{text}");
}

#[test]
fn the_text_has_threads_and_the_tree() {
    insta::assert_snapshot!(text(&SwitchViewOptions::default()));
}
