//! `whit report --latency` and parallelism: the switches as the installed perf prints them are the yardstick.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use whit_testing::measure::assert_median_at_most;
use whit_testing::probe::fails_with;

use crate::support::tools::{perf, record, text, whit, workload};
use crate::support::{Skip, check, probe};

/// The serial part takes nine of these, each thread of the parallel part one.
const PART_MS: &str = "60";

/// In percentage points. Samples come every half millisecond of CPU time: of the 540 ms and more that are recorded,
/// each change of the parallelism misplaces one of them at most, and the loaded machine of a test makes some ten.
const TOLERANCE_PERCENT: f64 = 2.0;

/// Each switch moves a sample in or out of the time beside it, and a loaded machine makes many: the median of
/// repetitions is judged.
mod measured {
    use super::*;

    #[test]
    fn latency_is_the_time_of_the_switches() {
        check("latency is the time of the switches", || {
            probe::online_cpus(2)?;
            assert_median_at_most(OFF, 1.0, || compare_with_switches("ring"))
        });
    }

    /// A busy machine delays and drops samples of a timer; 5 % are 50 samples of a second.
    #[test]
    fn recordings_of_perf_have_latency_too() {
        check("recordings of perf have latency too", || {
            for per_thread in [false, true] {
                let what = format!("latency by perf, per thread: {per_thread}");
                assert_median_at_most(&what, 0.05, || difference_in_perfs_recording(per_thread))?;
            }
            Ok(())
        });
    }

    #[test]
    fn latency_of_the_bpf_engine_is_the_time_of_the_switches() {
        check("latency of the bpf engine is the time of the switches", || {
            probe::online_cpus(2)?;
            probe::bpf_stacks()?;
            assert_median_at_most(OFF, 1.0, || compare_with_switches("bpf"))
        });
    }

    /// Kernels that hide a switch-in of one thread leave it unknown for microseconds, and no other thread.
    #[test]
    fn shares_are_those_that_the_program_knows() {
        check("shares are those that the program knows", || {
            probe::online_cpus(2)?;
            assert_median_at_most("bias by the ring engine", MOST_BIAS, || bias("ring"))?;
            probe::bpf_stacks()?;
            assert_median_at_most("bias by the bpf engine", MOST_BIAS, || bias("bpf"))
        });
    }

    #[test]
    fn samples_of_whole_machines_have_the_parallelism_of_the_switches() {
        check("samples of whole machines have the parallelism of the switches", || {
            probe::whole_cpus()?;
            probe::online_cpus(2)?;
            assert_median_at_most(OFF, 1.0, compare_whole_machine)
        });
    }
}

/// In percentage points.
const MOST_BIAS: f64 = 0.5;

/// The distance of the serial part's shares from those that the program took by its own clocks, in percentage points.
/// Records of a process do not name their CPU.
fn bias(engine: &str) -> Result<f64, Skip> {
    let (alone, folder) = (workload("alone")?, tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("perf.data");
    let mut recorder = whit();
    recorder.args([
        "record",
        "--engine=ring",
        "-e",
        "cpu-clock",
        "-F",
        "2000",
        "--fixed-periods",
        "--switch-events",
    ]);
    recorder.arg(format!("--engine={engine}")).arg("-o").arg(&path);
    // Each iteration has a sample more or less at its ends: half a percent of 400 iterations, a third of 1,000.
    let output = record(recorder.arg("--").arg(&alone).args(["--iterations", "1000"]))?;
    let printed = String::from_utf8_lossy(&output).into_owned();
    let known = |name: &str| {
        let mut words = printed.split_whitespace();
        let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix("_ns="));
        let word = word.unwrap_or_else(|| panic!("no {name} in {printed}"));
        word.parse::<f64>().expect("a time")
    };
    let report = json(&path, &["--latency", "-s", "tid"]);
    // The first thread has three quarters of the latency.
    let first = &report["events"][0]["rows"][0]["self"];
    let share_of_first = |share: &str| first[share].as_f64().expect("a share");
    let expected = [known("ran"), known("cpu")].map(|all| 100.0 * known("serial") / all);
    let measured = ["latency_percent", "percent"].map(share_of_first);
    let unknown = &report["events"][0]["unknown_parallelism_samples"];
    let bias = [0, 1].map(|column| (measured[column] - expected[column]).abs());
    eprintln!("{engine}: {measured:?}, by the program {expected:?}, samples without: {unknown}");
    Ok(bias[0].max(bias[1]))
}

const OFF: &str = "figures are off, as a share of the tolerance";

/// The largest distance of a figure from that of perf's switches, as a share of its tolerance.
fn compare_with_switches(engine: &str) -> Result<f64, Skip> {
    let (phases, folder) = (workload("phases")?, tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("perf.data");
    let recorder = [
        "record",
        "-e",
        "cpu-clock",
        "-F",
        "2000",
        "-g",
        "--sample-cpu",
        "--switch-events",
        "--no-pack",
    ];
    let mut whit_record = whit();
    // Periods that are drawn scatter the sum of so few samples by some percent.
    whit_record.args(recorder).arg("--fixed-periods");
    whit_record.arg(format!("--engine={engine}")).arg("-o").arg(&path);
    let output = record(whit_record.arg("--").arg(&phases).args(["--iterations", PART_MS]))?;
    assert!(String::from_utf8_lossy(&output).contains("workload=phases"));
    let by_perf = switches_of_perf(&path, false)?;

    let report = json(&path, &["--latency", "-s", "tid"]);
    let parallelism = &report["parallelism"];
    assert_eq!(parallelism["of"], "all");
    let ran_ns = parallelism["ran_ns"].as_f64().expect("a time");
    let mut off = (ran_ns / by_perf.ran_ns - 1.0).abs() / 0.01;
    // Clocks of CPUs differ by less than a microsecond, where a thread moves from one to the other. Where the kernel
    // hides a switch-in from the BPF programs, the time back to the last switch of the CPU is unknown, rightly.
    let unknown_ns = parallelism["unknown_ns"].as_f64().expect("a time");
    off = off.max(unknown_ns / 100_000.0);
    let event = &report["events"][0];
    let latency = event["latency"].as_f64().expect("a latency");
    // Events of CPUs are sampled at fixed moments: each of some hundred switches moves one of 1,200 samples in or out.
    // Undivided periods are 18 % too much.
    off = off.max((latency / ran_ns - 1.0).abs() / 0.05);
    for row in event["rows"].as_array().expect("rows") {
        let tid = row["tid"].as_i64().expect("a thread");
        let weights = by_perf.by_thread.get(&tid).copied().unwrap_or_default();
        let shares = (&row["self"]["latency_percent"], &row["self"]["percent"]);
        let expected = (weights.latency / by_perf.ran_ns, weights.cpu / by_perf.cpu_ns);
        for (share, expected) in [(shares.0, expected.0), (shares.1, expected.1)] {
            let share = share.as_f64().expect("a share");
            off = off.max((share - 100.0 * expected).abs() / TOLERANCE_PERCENT);
        }
    }
    Ok(off.max(nine_to_one(&path)))
}

/// Each thread of the parallel part takes one part of CPU time, on an idle and on a busy machine. On two CPUs, the
/// parallel part takes one part of the time if the threads run side by side, and two if one runs after the other.
fn nine_to_one(path: &Path) -> f64 {
    let report = json(path, &["--latency", "-s", "symbol"]);
    let rows = report["events"][0]["rows"].as_array().expect("rows");
    let of = |name: &str, share: &str| {
        let row = rows.iter().find(|row| row["symbol"]["name"] == name);
        row.unwrap_or_else(|| panic!("no {name}"))["children"][share].as_f64().expect("a share")
    };
    let outside = |share: f64, low: f64, high: f64| {
        (low - share).max(share - high).max(0.0) / TOLERANCE_PERCENT
    };
    let latency = of("serial_part", "latency_percent");
    let nine_of_eleven = 100.0 * 9.0 / 11.0;
    let overhead = of("serial_part", "percent");
    let mut off = outside(latency, nine_of_eleven, 90.0);
    off = off.max(outside(overhead, nine_of_eleven, nine_of_eleven));
    // The first row is that with most latency, and has the greater part of it.
    assert!(
        rows[0]["children"]["latency_percent"].as_f64()
            >= rows[1]["children"]["latency_percent"].as_f64()
    );
    // Alone on its CPUs, the parallel part takes one part of the time.
    let at_two: f64 = parts_at(path, "2");
    if of("parallel_part", "percent") < at_two + 0.5 {
        off = off.max(outside(latency, 90.0, 90.0));
    }
    off
}

/// Percent of the samples at a parallelism.
fn parts_at(path: &Path, level: &str) -> f64 {
    let report = json(path, &["--parallelism", level, "-s", "parallelism", "--no-children"]);
    let rows = report["events"][0]["rows"].as_array().expect("rows");
    rows.iter().map(|row| row["self"]["percent"].as_f64().expect("a share")).sum()
}

fn json(path: &Path, arguments: &[&str]) -> Value {
    let report = text(whit().args(["report", "--json"]).args(arguments).arg("-i").arg(path));
    serde_json::from_str(&report).expect("JSON")
}

#[derive(Clone, Copy, Debug, Default)]
struct Weights {
    cpu: f64,
    latency: f64,
}

/// Times in nanoseconds.
#[derive(Debug, Default)]
struct PerfTimes {
    ran_ns: f64,
    cpu_ns: f64,
    by_thread: BTreeMap<i64, Weights>,
    /// Number of samples by parallelism.
    samples: BTreeMap<u64, u64>,
}

/// Adds up who ran when, by the switches that perf prints.
fn switches_of_perf(path: &Path, of_whole_cpus: bool) -> Result<PerfTimes, Skip> {
    let mut script = perf()?;
    script
        .args([
            "script",
            "--ns",
            "--show-switch-events",
            "--show-task-events",
            "-F",
            "tid,cpu,time",
            "-i",
        ])
        .arg(path);
    let printed = text(&mut script);
    let (mut by_perf, mut running, mut now) = (PerfTimes::default(), BTreeMap::new(), 0.0);
    for line in printed.lines() {
        let Some((tid, rest)) = line.trim().split_once(" [") else { continue };
        let Some((cpu, rest)) = rest.split_once("] ") else { continue };
        let (Some((time, what)), Ok(tid)) =
            (rest.trim().split_once(':'), tid.trim().parse::<i64>())
        else {
            continue;
        };
        let time: f64 = time.parse::<f64>().expect("a time") * 1e9;
        let distinct: BTreeSet<i64> = running.values().copied().collect();
        if !distinct.is_empty() {
            by_perf.ran_ns += time - now;
        }
        for ran in &distinct {
            let weights = by_perf.by_thread.entry(*ran).or_default();
            weights.cpu += time - now;
            weights.latency += (time - now) / distinct.len() as f64;
            by_perf.cpu_ns += time - now;
        }
        now = time;
        if !what.contains("PERF_RECORD_") {
            *by_perf.samples.entry(distinct.len() as u64).or_default() += u64::from(tid != 0);
        }
        match what {
            _ if what.contains("PERF_RECORD_SWITCH") && what.contains("OUT") => {
                running.remove(cpu);
            }
            // Events of threads have no switch-out behind it.
            _ if what.contains("PERF_RECORD_EXIT") && !of_whole_cpus => {
                running.remove(cpu);
            }
            _ if tid == 0 => {
                running.remove(cpu);
            }
            _ => {
                running.insert(cpu.to_owned(), tid);
            }
        }
    }
    Ok(by_perf)
}

/// The most samples that a level has too many, as a share of the tolerance of one in 200.
fn compare_whole_machine() -> Result<f64, Skip> {
    let (phases, folder) = (workload("phases")?, tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("perf.data");
    let mut recorder = whit();
    recorder.args(["record", "-a", "-m", "16M", "--engine=ring", "-e", "cpu-clock", "-F", "1000"]);
    recorder.args(["--switch-events", "--no-pack", "-o"]).arg(&path);
    // Half a second: on a busy machine, others switch some hundred thousand times a second.
    let script = "timeout 0.5 \"$0\" --iterations 1000 || :";
    record(recorder.args(["--", "sh", "-c", script]).arg(&phases))?;
    let by_perf = switches_of_perf(&path, true)?;
    let counts = |set: &str, comm: Option<&str>| {
        let set = format!("--parallelism-of={set}");
        let report = json(&path, &["-s", "comm,parallelism", "--no-children", &set]);
        let rows = report["events"][0]["rows"].as_array().expect("rows").clone();
        let mut samples: BTreeMap<Option<u64>, u64> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| comm.is_none_or(|comm| row["comm"] == comm)) {
            *samples.entry(row["parallelism"].as_u64()).or_default() +=
                row["self"]["samples"].as_u64().expect("a count");
        }
        samples
    };
    // Nobody else knows of losses, which make samples unknown. The order of records of one moment is not defined.
    let mut surplus = 0u64;
    let (mut of_machine, all_samples) =
        (counts("all", None), by_perf.samples.values().sum::<u64>());
    // Samples of idle CPUs are at level 0, and the yardstick has none of them.
    of_machine.remove(&Some(0));
    for (level, samples) in
        of_machine.iter().filter_map(|(level, samples)| Some(((*level)?, *samples)))
    {
        let expected = by_perf.samples.get(&level).copied().unwrap_or(0);
        surplus = surplus.max(samples.saturating_sub(expected));
    }
    let unknown = of_machine.get(&None).copied().unwrap_or(0);
    let known = of_machine.values().sum::<u64>() - unknown;
    surplus = surplus.max(all_samples.saturating_sub(known + unknown));
    let phases = Some("phases");
    let (all, process, cgroup) =
        (counts("all", phases), counts("process", phases), counts("cgroup", phases));
    let sum = |samples: &BTreeMap<Option<u64>, u64>| samples.values().sum::<u64>();
    assert_eq!((sum(&all), sum(&all)), (sum(&process), sum(&cgroup)));
    // Most of its time, only one thread of the process runs, however busy the machine is.
    assert!(process[&Some(1)] > sum(&process) / 2, "{process:?}");
    assert!(process[&Some(1)] >= all.get(&Some(1)).copied().unwrap_or(0), "{all:?}");
    Ok(surplus as f64 / (all_samples as f64 / 200.0))
}

/// The difference of the sampled latency of a recording by perf from the time of its switches, in parts of the latter.
fn difference_in_perfs_recording(per_thread: bool) -> Result<f64, Skip> {
    let (phases, folder) = (workload("phases")?, tempfile::tempdir().expect("a folder"));
    let path = folder.path().join("perf.data");
    let mut recorder = perf()?;
    recorder.args(["record", "-q", "-e", "cpu-clock", "-F", "1000", "-T", "--switch-events"]);
    if per_thread {
        recorder.arg("--per-thread");
    }
    record(recorder.arg("-o").arg(&path).arg("--").arg(&phases).args(["--iterations", "20"]))?;
    let report = json(&path, &["--latency", "-s", "comm", "--no-children"]);
    let latency = report["events"][0]["latency"].as_f64().expect("a latency");
    let ran_ns = report["parallelism"]["ran_ns"].as_f64().expect("a time");
    assert!(ran_ns > 0.0 && latency > 0.0, "{latency} {ran_ns}");
    Ok((latency / ran_ns - 1.0).abs())
}

#[test]
fn without_switches_the_way_out_is_named() {
    check("without switches the way out is named", || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf.data");
        record(
            whit()
                .args(["record", "--engine=ring", "-e", "cpu-clock", "-o"])
                .arg(&path)
                .args(["--", "true"]),
        )?;
        for options in
            [&["--latency"][..], &["-s", "parallelism"], &["--parallelism=1-4"], &["-s", "latency"]]
        {
            let error = fails_with(whit().arg("report").args(options).arg("-i").arg(&path));
            let error = error.expect("an error");
            assert!(error.contains("record again with --switch-events"), "{error}");
        }
        let mut with_page = whit();
        with_page.args(["report", "--latency", "--html", "x.html", "-i"]).arg(&path);
        assert!(
            fails_with(&mut with_page)
                .expect("an error")
                .contains("--latency has no effect with --html")
        );
        assert!(!folder.path().join("x.html").exists());
        Ok(())
    });
}
