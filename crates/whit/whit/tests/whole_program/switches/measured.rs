//! Times of switches beside those that the kernel charges: how far they are apart is the machine's affair as
//! well. Counts agree in every repetition; of the times the median of all is judged.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use whit_testing::measure::assert_median_at_most;

use super::{CS, Counted, of_thread, sum, switches, waits_under, whit_record, with_stolen_time};
use crate::support::tools::{perf, record, text, whit};
use crate::support::{Skip, check};

/// The kernel charges a thread by the clock that it reads on its way into the scheduler; a switch record
/// comes at the end of that way, after the samples of the switch with their walked stacks. This is
/// for one such way, of microseconds, in a virtual machine that may be interrupted on it.
const SWITCH_NS: u64 = 50_000;
/// Where the hypervisor takes more time than this from one recording, its times say nothing.
const STOLEN_MAX_NS: u64 = 200_000_000;

mod stopped;
mod wall;

/// How far times may be apart.
pub(super) fn tolerance_ns(counted: &Counted) -> u64 {
    (counted.voluntary + counted.involuntary + 1) * SWITCH_NS
}

/// Repeats a recording; each gives the error of its times as a share of the allowed one.
pub(super) fn assert_times_agree(measure: impl FnMut() -> Result<f64, Skip>) -> Result<(), Skip> {
    assert_median_at_most("times are off, as a share of the tolerance", 1.0, measure)
}

/// [`record_waits`], where not too much time was stolen.
pub(super) fn record_charged_waits(recorder: &mut Command) -> Result<(Vec<Counted>, u64), Skip> {
    charged(|| waits_under(recorder))
}

/// Gives the result of `record`, and the time that the hypervisor took meanwhile. Too much time is a skip.
fn charged<T>(record: impl FnOnce() -> Result<T, Skip>) -> Result<(T, u64), Skip> {
    let (all, stolen_ns) = with_stolen_time(record)?;
    match stolen_ns {
        0..=STOLEN_MAX_NS => Ok((all, stolen_ns)),
        _ => Err(Skip(format!("the hypervisor took {stolen_ns} ns from one recording"))),
    }
}

/// Counts are the kernel's to the last one, and intervals fill the time between the two moments to the
/// nanosecond. Gives the JSON, and the error of the CPU time as a share of the allowed one.
fn agree(data: &Path, counted: &Counted, steal_ns: u64) -> (Value, f64) {
    let json = of_thread(data, counted, &[]);
    let total = &json["total"];
    assert_no_records_lost(&json);
    assert_eq!(sum(&json, "sync_count"), counted.voluntary, "{counted:?} {total}");
    assert_eq!(sum(&json, "preempt_count"), counted.involuntary, "{counted:?} {total}");
    assert_eq!(sum(&json, "open_count"), 0, "{counted:?} {total}");
    let parts = ["cpu_ns", "sync_wait_ns", "preempt_wait_ns", "lossy_cpu_ns", "lossy_wait_ns"];
    let filled = parts.map(|key| sum(&json, key));
    let span_ns = [counted.begin_ns, counted.end_ns];
    assert_eq!(json["span_ns"], serde_json::json!(span_ns), "{counted:?}");
    // The thread ran at both ends: no switch shows these parts of its runs.
    assert_eq!(filled.iter().sum::<u64>(), span_ns[1] - span_ns[0], "{counted:?} {total}");
    // A run that begins in a window is uncertain by less than the time of its switch, which the tolerance has.
    let has_window = json["loss_windows_ns"].as_array().is_some_and(|windows| !windows.is_empty());
    let lossy_ns = sum(&json, "lossy_cpu_ns") + sum(&json, "lossy_wait_ns");
    assert!(has_window || lossy_ns == 0, "{counted:?} {total}");
    let cpu_ns = sum(&json, "cpu_ns") + sum(&json, "lossy_cpu_ns");
    let off_ns = cpu_ns.abs_diff(counted.cpu_ns);
    // Only upwards is stolen time an excuse.
    let stolen_ns = if cpu_ns > counted.cpu_ns { steal_ns } else { 0 };
    let share = off_ns as f64 / (tolerance_ns(counted) + stolen_ns) as f64;
    if share > 1.0 {
        println!("CPU time off by {off_ns} ns: {counted:?} {total}");
    }
    (json, share)
}

/// Where the kernel hid that a thread came, a window reaches from there to the program that noticed it, on its way
/// through the scheduler. A ring that lost records has none before its reader came, which takes longer.
fn assert_no_records_lost(json: &Value) {
    for window in json["loss_windows_ns"].as_array().expect("windows") {
        let [from, to] = [0, 1].map(|end| window[end].as_u64());
        let length = to.zip(from).map(|(to, from)| to - from);
        assert!(length.is_some_and(|ns| ns < SWITCH_NS), "records were lost: {window}");
    }
}

/// The same of all threads; the largest share.
fn all_agree(data: &Path, all: &[Counted], steal_ns: u64) -> f64 {
    all.iter().map(|counted| agree(data, counted, steal_ns).1).fold(0.0, f64::max)
}

#[test]
fn counts_and_times_are_those_of_the_kernel() {
    check("counts_and_times_are_those_of_the_kernel", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let recorders: [&[&str]; 2] = [
            &["-a", "-g", "--switch-events", "-e", "cpu-clock", "-e", CS],
            &["-g", "--switch-events", "-e", "cpu-clock"],
        ];
        for arguments in recorders {
            assert_times_agree(|| {
                let (all, steal_ns) = record_charged_waits(&mut whit_record(&data, arguments))?;
                Ok(all_agree(&data, &all, steal_ns))
            })?;
        }
        Ok(())
    });
}

/// A recorder by the BPF engine, with its cache in a folder, which a first recording fills.
pub(super) fn bpf_record(data: &Path, arguments: &[&str], cache: &Path) -> Result<Command, Skip> {
    let recorder = || {
        let mut recorder = whit_record(data, &["--engine=bpf"]);
        recorder.args(arguments).env("XDG_CACHE_HOME", cache);
        recorder
    };
    record(recorder().arg("true"))?;
    Ok(recorder())
}

/// Each switch has the thread's state: threads that wait for others or for time can be interrupted,
/// those that are taken off or yield run.
fn assert_states(data: &Path, all: &[Counted]) {
    for counted in all {
        let json = of_thread(data, counted, &["--worst", "100000"]);
        let waits = json["worst"].as_array().expect("waits");
        let of = |kind: &'static str| {
            let states = waits.iter().filter(move |wait| wait["kind"] == kind);
            states.map(|wait| wait["state"].as_str().unwrap_or("?").to_owned()).collect::<Vec<_>>()
        };
        let (sync, preempted) = (of("sync"), of("preemption"));
        assert_eq!(sync.len() as u64, counted.voluntary, "{counted:?} {sync:?}");
        // A thread may wait for its memory, too, which nothing interrupts, but hardly ever.
        let sleeps = |state: &String| state == "S" || state == "D";
        let interruptible = sync.iter().filter(|state| *state == "S").count();
        assert!(interruptible + 5 + sync.len() / 100 >= sync.len(), "{counted:?} {sync:?}");
        assert!(sync.iter().all(sleeps), "{counted:?} {sync:?}");
        let runs = |state: &String| state == "R" || state == "R+";
        assert!(preempted.iter().all(runs), "{counted:?} {preempted:?}");
    }
}

/// The program at the switch types it as the kernel's own records do, and each has its stack.
#[test]
fn the_bpf_engine_records_every_switch() {
    check("the_bpf_engine_records_every_switch", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let arguments = ["-g", "--switch-events", "-e", "cpu-clock"];
        assert_times_agree(|| {
            let (all, steal_ns) =
                record_charged_waits(&mut bpf_record(&data, &arguments, dir.path())?)?;
            assert_states(&data, &all);
            Ok(all_agree(&data, &all, steal_ns))
        })?;
        let tree = text(whit().args(["switches", "-i"]).arg(&data));
        assert!(tree.contains(" schedule"), "{tree}");
        // CPU time between two switches without a sample has no stack; no switch is without.
        for line in tree.lines().filter(|line| line.ends_with("[no call stack]")) {
            let words: Vec<_> = line.split_whitespace().collect();
            assert_eq!((words[4], words[5]), ("0", "0"), "{tree}");
        }
        Ok(())
    });
}

#[test]
fn perfs_recordings_are_read_too() {
    check("perfs_recordings_are_read_too", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        for events in [&["-e", "cpu-clock", "-e", CS][..], &["-e", "cpu-clock"]] {
            assert_times_agree(|| {
                let mut recorder = perf()?;
                recorder.args(["record", "-q", "-k", "CLOCK_MONOTONIC", "-F", "1000", "-m", "4M"]);
                recorder.args(["-g", "--switch-events", "-o"]).arg(&data).args(events);
                let (all, steal_ns) = record_charged_waits(&mut recorder)?;
                Ok(all_agree(&data, &all, steal_ns))
            })?;
        }
        Ok(())
    });
}

/// `sched` tracepoints and switch records have the same switches; with the wake-ups, the runnable
/// time is the time that the kernel counts as waiting for a CPU.
#[test]
fn wake_ups_split_waits() {
    check("wake_ups_split_waits", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let [switch, waking, wakeup] =
            ["switch", "waking", "wakeup"].map(|name| format!("sched:sched_{name}/period=1/"));
        let events = format!("cpu-clock,{CS},{switch},{waking},{wakeup}");
        let arguments = ["-a", "-g", "--switch-events", "-e", &events];
        assert_times_agree(|| {
            let (all, steal_ns) = record_charged_waits(&mut whit_record(&data, &arguments))?;
            Ok(delays_agree(&data, &all, steal_ns))
        })
    });
}

/// The kernel's waiting time of each thread is its runnable time. Gives the error of the times as a share
/// of the allowed one.
fn delays_agree(data: &Path, all: &[Counted], steal_ns: u64) -> f64 {
    let (mut fully_woken, mut largest) = (0, 0.0_f64);
    for counted in all {
        let (json, share) = agree(data, counted, steal_ns);
        let runnable_ns = sum(&json, "preempt_wait_ns") + sum(&json, "runnable_ns");
        let tolerance_ns = tolerance_ns(counted) + steal_ns;
        // A wait that a window ends has neither kind nor delay here; the kernel knows both.
        let [lossy_ns, lossy] = ["lossy_wait_ns", "lossy_count"].map(|key| sum(&json, key));
        let expected_ns = counted.run_delay_ns;
        // Not every kernel shows the wake-ups of an idle CPU at a tracepoint.
        let all_woken = sum(&json, "woken_count") + lossy >= sum(&json, "sync_count");
        fully_woken += u32::from(all_woken);
        // Each time that the thread came onto a CPU has a delay.
        let delays = json["run_queue"].as_array().expect("delays").iter();
        let delays: u64 =
            delays.map(|of_thread| of_thread["count"].as_u64().expect("a count")).sum();
        match all_woken {
            true => assert_eq!(delays + lossy, counted.timeslices, "{counted:?} {}", json["total"]),
            false => assert!(delays < counted.timeslices, "{counted:?} {}", json["total"]),
        }
        let above_ns = runnable_ns.saturating_sub(expected_ns);
        let below_ns = expected_ns.saturating_sub(runnable_ns + lossy_ns);
        let off_ns = if all_woken { above_ns + below_ns } else { above_ns };
        if off_ns > tolerance_ns {
            println!("delay off by {off_ns} ns: {counted:?} {}", json["total"]);
        }
        largest = largest.max(share).max(off_ns as f64 / tolerance_ns as f64);
    }
    // Those that compute or yield are only preempted.
    assert!(fully_woken >= 4, "{fully_woken}");
    largest
}

/// A program records the wake-ups of recorded threads, by any waker.
#[test]
fn the_bpf_engine_records_wakers() {
    check("the_bpf_engine_records_wakers", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        for everybody in [&[][..], &["-a"]] {
            let arguments = [&["--wakeups", "-e", "cpu-clock"], everybody].concat();
            let mut all = Vec::new();
            assert_times_agree(|| {
                let steal_ns;
                (all, steal_ns) =
                    record_charged_waits(&mut bpf_record(&data, &arguments, dir.path())?)?;
                Ok(delays_agree(&data, &all, steal_ns))
            })?;
            // Those that play wake each other, from the function that does.
            let played = switches(&data, &["--tid", &all[0].tid.to_string(), "-S", "play"]);
            let number = |value: &Value| value.as_u64().expect("a number");
            let mut by_play = 0;
            for waker in played["wakers"].as_array().expect("wakers") {
                let tid = &played["threads"][number(&waker["thread"]) as usize]["tid"];
                let stack = waker["stack"].as_array().expect("a stack").iter();
                let names: Vec<_> =
                    stack.map(|at| &played["functions"][number(at) as usize]["name"]).collect();
                if number(tid) == all[1].tid && names.iter().any(|name| *name == "play") {
                    assert_eq!(names[0], "try_to_wake_up", "the program's own frames: {names:?}");
                    by_play += number(&waker["count"]);
                }
            }
            let woken = sum(&played, "woken_count");
            // How often they have to wait is the scheduler's: seldom where it runs both at once.
            assert!(woken > 20 && by_play * 100 >= woken * 95, "{by_play} of {woken}");
            // Timers wake the sleepers: interrupts of the thread that runs there, mostly of none.
            let slept =
                text(whit().args(["switches", "--wakers", "-S", "sleep_often", "-i"]).arg(&data));
            assert!(slept.contains("by an interrupt of "), "{slept}");
            let printed = text(perf()?.args(["script", "-F", "event,trace,ip", "-i"]).arg(&data));
            assert!(printed.contains("sched:sched_waking: comm=waits pid="), "{printed:.2000}");
        }
        Ok(())
    });
}

/// The ring engine needs no program for it.
#[test]
fn the_ring_engine_records_wake_ups_by_their_tracepoint() {
    check("the_ring_engine_records_wake_ups_by_their_tracepoint", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let arguments = ["-a", "-g", "--wakeups", "-e", &format!("cpu-clock,{CS}")];
        assert_times_agree(|| {
            let (all, steal_ns) = record_charged_waits(&mut whit_record(&data, &arguments))?;
            Ok(delays_agree(&data, &all, steal_ns))
        })
    });
}
