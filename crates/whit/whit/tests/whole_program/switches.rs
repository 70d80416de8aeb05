//! `whit switches` against the kernel's own counts, and against `perf sched timehist`.
//!
//! The load is `waits`, whose threads read their own counts together with the clock of the recording:
//! between two such moments whit has to find exactly as many switches.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{Skip, check};

/// Context switches with their call stacks, as event of its own.
const CS: &str = "software/period=1,name=cs,config=0x3/Duk";

mod measured;

/// `/proc/stat` counts in these, and rounds down.
const NS_PER_TICK: u64 = 10_000_000;

/// The kernel's counts for a thread, between two moments.
#[derive(Debug)]
struct Counted {
    tid: u64,
    begin_ns: u64,
    end_ns: u64,
    voluntary: u64,
    involuntary: u64,
    cpu_ns: u64,
    run_delay_ns: u64,
    timeslices: u64,
}

impl Counted {
    fn all(text: &str) -> Vec<Counted> {
        let lines = text.lines().filter(|line| line.starts_with("thread "));
        let all: Vec<_> = lines.map(Counted::of).collect();
        assert_eq!(all.len(), 7, "{text}");
        all
    }

    fn of(line: &str) -> Counted {
        let number = |key: &str| {
            let of_key = |word: &str| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok();
            line.split(' ').find_map(of_key).unwrap_or_else(|| panic!("no {key} in {line}"))
        };
        Counted {
            tid: number("tid"),
            begin_ns: number("begin_ns"),
            end_ns: number("end_ns"),
            voluntary: number("voluntary"),
            involuntary: number("involuntary"),
            cpu_ns: number("cpu_ns"),
            run_delay_ns: number("run_delay_ns"),
            timeslices: number("timeslices"),
        }
    }
}

/// Time that the hypervisor took from this machine since it was started. The kernel charges no thread
/// for it, but in the recording the current thread ran.
fn steal_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("read /proc/stat");
    let of_all = stat.lines().next().expect("a line of all CPUs");
    let ticks: u64 = of_all.split_whitespace().nth(8).expect("steal").parse().expect("a number");
    ticks * NS_PER_TICK
}

/// The time that the hypervisor took meanwhile is known to a tick of each CPU: where a machine loses time at all,
/// "nothing" is anything below that.
fn with_stolen_time<T>(record: impl FnOnce() -> Result<T, Skip>) -> Result<(T, u64), Skip> {
    let before = steal_ns();
    let recorded = record()?;
    let after = steal_ns();
    let stolen_ns = match after {
        0 => 0,
        _ => after - before + 2 * NS_PER_TICK,
    };
    Ok((recorded, stolen_ns))
}

/// Runs `waits` under a recorder.
fn waits_under(recorder: &mut Command) -> Result<Vec<Counted>, Skip> {
    recorder.arg("--").arg(workload("waits")?);
    Ok(Counted::all(&String::from_utf8_lossy(&record(recorder)?)))
}

/// The counts of `waits` under a recorder, and the stolen time.
fn record_waits(recorder: &mut Command) -> Result<(Vec<Counted>, u64), Skip> {
    with_stolen_time(|| waits_under(recorder))
}

fn whit_record(data: &Path, arguments: &[&str]) -> Command {
    let mut command = whit();
    command
        .args(["record", "--engine=ring", "-k", "monotonic", "-F", "1000", "-m", "16M", "-o"])
        .arg(data);
    command.args(arguments);
    command
}

fn switches(data: &Path, arguments: &[&str]) -> Value {
    let json = text(whit().args(["switches", "--json", "-i"]).arg(data).args(arguments));
    serde_json::from_str(&json).expect("JSON")
}

/// The range between a thread's two moments, as `--time` takes it.
fn seconds_between(counted: &Counted) -> String {
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{},{}", seconds(counted.begin_ns), seconds(counted.end_ns))
}

/// One thread, between its own two moments.
fn of_thread(data: &Path, counted: &Counted, more: &[&str]) -> Value {
    let time = seconds_between(counted);
    // No names are asked for, and the kernel's take longest to read.
    let tid = counted.tid.to_string();
    let fixed = ["--tid", &tid, "--time", &time, "--kallsyms", "/dev/null"];
    switches(data, &[&fixed, more].concat())
}

fn sum(json: &Value, key: &str) -> u64 {
    json["total"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {}", json["total"]))
}

#[test]
fn stacks_are_those_of_the_switches() {
    check("stacks_are_those_of_the_switches", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let arguments = ["-N", "-B", "-T", "-R", "--call-graph", "dwarf,1024", "--switch-events"];
        let mut recorder = whit_record(&data, &arguments);
        recorder.args(["-e", &format!("cpu-clock,{CS}")]);
        let (all, _) = record_waits(&mut recorder)?;
        let of = |function: &str| switches(&data, &["--comms", "waits", "-S", function]);
        let counted = |index: usize| all[index].voluntary;
        let [played, slept] = ["play", "sleep_often"].map(of);
        let between = |count, (least, most): (u64, u64)| (least..=most).contains(&count);
        // A thread may block before and behind its counted part, but not in these functions.
        let both = counted(0) + counted(1);
        assert!(
            between(sum(&played, "sync_count"), (both - 2, both)),
            "{both} {}",
            played["total"]
        );
        assert!(between(sum(&slept, "sync_count"), (counted(2) - 1, counted(2))));
        let names: Vec<_> = played["functions"].as_array().expect("functions").iter().collect();
        let has = |name: &str| names.iter().any(|function| function["name"] == name);
        assert!(has("play") && has("schedule") && has("futex_wait"), "{names:?}");
        let computed = of("compute");
        assert_eq!(sum(&computed, "sync_count"), 0);
        assert!(sum(&computed, "cpu_ns") > sum(&of("sleep_often"), "cpu_ns"));
        let views = ["--tree", "-g", "caller", "--flat", "--per-thread", "--worst", "50"];
        let [one, three] = ["1", "3"].map(|threads| {
            let threads = ["--threads", threads];
            text(whit().args(["switches", "-i"]).arg(&data).args(views).args(threads))
        });
        assert!(one.contains("Preemption Wait Count"), "{one}");
        assert_eq!(one, three, "the number of threads that decode makes a difference");
        let threads = text(whit().args(["switches", "-q", "--per-thread", "-i"]).arg(&data));
        assert!(threads.contains(&format!("{}:waits", all[0].tid)), "{threads}");
        let page = dir.path().join("page.html");
        for (subcommand, begins) in [("switches", true), ("report", false)] {
            text(whit().args([subcommand, "-i"]).arg(&data).arg("--html").arg(&page));
            let page = std::fs::read_to_string(&page).expect("the page");
            assert!(page.contains("\"maxSpans\":100000"), "{subcommand}");
            assert_eq!(page.contains("\"startView\":\"switches\""), begins, "{subcommand}");
        }
        Ok(())
    });
}

#[test]
fn recordings_without_switches_are_refused() {
    check("recordings_without_switches_are_refused", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        record(
            whit()
                .args(["record", "--engine=ring", "-e", "cpu-clock", "-o"])
                .arg(&data)
                .args(["--", "true"]),
        )?;
        let output = whit().args(["switches", "-i"]).arg(&data).output().expect("run whit");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("--switch-events"), "{error}");
        Ok(())
    });
}

/// A line of `perf sched timehist`: which thread switched out, when, and how long before that it had
/// waited, been runnable, and run, in microseconds.
#[derive(Debug)]
struct Timehist {
    tid: u64,
    out_us: f64,
    wait_us: f64,
    delay_us: f64,
    run_us: f64,
}

impl Timehist {
    /// When the wait began.
    fn start_us(&self) -> f64 {
        self.out_us - self.run_us - self.wait_us
    }
}

/// `   2493.285031 [0001]  waits[25/21]        0.123      0.001      2.345`.
fn timehist(text: &str) -> Vec<Timehist> {
    let of_line = |line: &str| {
        let (time, rest) = line.trim().split_once(" [")?;
        let (task, numbers) = rest.split_once(']')?.1.trim().split_once(']')?;
        let (_, ids) = task.rsplit_once('[')?;
        let tid = ids.split('/').next()?.parse().ok()?;
        let numbers: Vec<f64> = numbers.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let [wait, delay, run] = numbers[..] else { return None };
        let out_us = time.trim().parse::<f64>().ok()? * 1e6;
        let [wait_us, delay_us, run_us] = [wait, delay, run].map(|ms| ms * 1e3);
        Some(Timehist { tid, out_us, wait_us, delay_us, run_us })
    };
    text.lines().filter_map(of_line).collect()
}

/// A number of nanoseconds as microseconds.
fn microseconds(wait: &Value, key: &str) -> f64 {
    wait[key].as_u64().unwrap_or_else(|| panic!("no {key} in {wait}")) as f64 / 1e3
}

/// Each of perf's numbers is cut to a microsecond.
fn is_same_us(a: f64, b: f64, numbers: f64) -> bool {
    (a - b).abs() <= numbers + 0.01
}

/// Waits with a beginning and an end.
fn whole_waits(json: &Value) -> impl Iterator<Item = &Value> {
    let is_whole = |wait: &&Value| wait["open"] == false && wait["lossy"] == false;
    json["worst"].as_array().expect("waits").iter().filter(is_whole)
}

#[test]
fn waits_are_those_of_perf_sched_timehist() {
    check("waits_are_those_of_perf_sched_timehist", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let tracepoints = "sched:sched_switch/period=1/,sched:sched_waking/period=1/";
        let (all, _) = record_waits(&mut whit_record(&data, &["-a", "-e", tracepoints]))?;
        let theirs = timehist(&text(perf()?.args(["sched", "timehist", "-i"]).arg(&data)));
        let (mut compared, mut missing) = (0, 0);
        for counted in &all {
            let theirs: Vec<_> = theirs.iter().filter(|line| line.tid == counted.tid).collect();
            let tid = counted.tid.to_string();
            let ours =
                switches(&data, &["--tid", &tid, "--worst", "100000", "--kallsyms", "/dev/null"]);
            for wait in whole_waits(&ours) {
                let [start_us, wait_us] =
                    ["start_ns", "duration_ns"].map(|key| microseconds(wait, key));
                // Two waits of one length may begin within the digits that perf cuts: either may be this one.
                let found: Vec<_> = theirs
                    .iter()
                    .filter(|line| is_same_us(line.start_us() - start_us, 0.0, 3.0))
                    .filter(|line| is_same_us(line.wait_us, wait_us, 1.0))
                    .collect();
                if found.is_empty() {
                    missing += 1;
                    continue;
                }
                compared += 1;
                if let Some(woken_ns) = wait["woken"]["time_ns"].as_u64() {
                    let delay_us = start_us + wait_us - woken_ns as f64 / 1e3;
                    let has_delay = |line: &&&Timehist| is_same_us(line.delay_us, delay_us, 1.0);
                    assert!(found.iter().any(has_delay), "{found:?} {wait}");
                }
            }
            let window = counted.begin_ns as f64 / 1e3..counted.end_ns as f64 / 1e3;
            let switches = theirs.iter().filter(|line| window.contains(&line.out_us)).count();
            assert_eq!(switches as u64, counted.voluntary + counted.involuntary, "{counted:?}");
        }
        // Where the switch before on the CPU is missing, perf takes the time of another one.
        assert!(compared > 1000 && missing * 10 < compared, "{compared}, {missing} not");
        Ok(())
    });
}

/// perf counts the delay from `sched_wakeup_new` to the first run of a thread, without a wait before.
#[test]
fn first_runs_are_those_of_perf_sched_timehist() {
    check("first_runs_are_those_of_perf_sched_timehist", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let events = ["switch", "waking", "wakeup_new"];
        let events = events.map(|name| format!("sched:sched_{name}/period=1/")).join(",");
        let mut recorder = whit_record(&data, &["-a", "-e", &events, "--"]);
        record(recorder.arg(workload("spawn")?).args(["--iterations", "40", "--threads", "4"]))?;
        let theirs = timehist(&text(perf()?.args(["sched", "timehist", "-i"]).arg(&data)));
        let ours = switches(&data, &["--worst", "100000", "--kallsyms", "/dev/null"]);
        let mut compared = 0;
        for wait in whole_waits(&ours).filter(|wait| wait["kind"] == "new") {
            assert_eq!(wait["woken"]["time_ns"], wait["start_ns"], "{wait}");
            let thread = wait["thread"].as_u64().expect("a thread") as usize;
            let tid = ours["threads"][thread]["tid"].as_u64().expect("a tid");
            let [start_us, delay_us] =
                ["start_ns", "duration_ns"].map(|key| microseconds(wait, key));
            // perf prints a run at its end.
            let Some(first) = theirs.iter().find(|line| line.tid == tid) else { continue };
            // Where the switch before on the CPU is missing, perf takes the time of another one.
            if is_same_us(first.out_us - first.run_us, start_us + delay_us, 2.0) {
                compared += 1;
                assert!(is_same_us(first.delay_us, delay_us, 1.0), "{first:?} {wait}");
                assert_eq!(first.wait_us, 0.0, "{first:?} {wait}");
            }
        }
        // Three processes for each unit, and threads of the program itself. Not every kernel shows all
        // switches of an idle CPU at a tracepoint.
        let new = sum(&ours, "new_count");
        assert!(compared > 100 && compared * 10 >= new * 9, "{compared} of {new}");
        Ok(())
    });
}
