//! `whit report --wall`: the parts of each thread's time, beside those that the kernel charges.

use std::path::Path;

use serde_json::Value;

use super::super::{CS, Counted, seconds_between, whit_record};
use super::{
    assert_no_records_lost, assert_times_agree, bpf_record, record_charged_waits, tolerance_ns,
};
use crate::support::check;
use crate::support::tools::number;
use crate::support::tools::{record, text, whit};

const PARTS: [&str; 5] = ["cpu_ns", "waiting_ns", "preempted_ns", "run_queue_ns", "lossy_ns"];

pub(super) fn wall(data: &Path, arguments: &[&str]) -> Value {
    let fixed = ["report", "--wall", "--json", "--kallsyms", "/dev/null", "-i"];
    let json = text(whit().args(fixed).arg(data).args(arguments));
    serde_json::from_str(&json).expect("JSON")
}

/// The parts of each thread, and of all, are its elapsed time.
pub(super) fn assert_identity(json: &Value) {
    let threads = json["threads"].as_array().expect("threads").iter();
    for sums in threads.map(|thread| &thread["sums"]).chain([&json["total"]]) {
        let parts = PARTS.iter().chain(&["uncovered_ns", "left_out_ns"]);
        let sum: u64 = parts.map(|key| number(sums, key)).sum();
        assert_eq!((sum, number(sums, "excess_ns")), (number(sums, "elapsed_ns"), 0), "{sums}");
    }
}

/// Between its two moments a thread's time is known to the nanosecond. Gives the distance of CPU time and waiting time
/// from the kernel's, as a share of the tolerance.
fn agrees(data: &Path, counted: &Counted, stolen_ns: u64) -> f64 {
    let tid = counted.tid.to_string();
    let json = wall(data, &["--tid", &tid, "--time", &seconds_between(counted)]);
    assert_identity(&json);
    // The kernel may hide that the thread came: its time around that moment is uncertain, and no record is lost.
    assert_no_records_lost(&json);
    let windows = &json["loss_windows_ns"];
    let has_cause = windows.as_array().is_some_and(|windows| !windows.is_empty());
    assert!(has_cause || number(&json["total"], "lossy_ns") == 0, "{counted:?} {}", json["total"]);
    sums_agree(&json["total"], counted, stolen_ns)
}

/// The same of the sums of a thread between its two moments. The kernel knows the kind of uncertain time, and whit does
/// not, so it is slack.
pub(super) fn sums_agree(sums: &Value, counted: &Counted, stolen_ns: u64) -> f64 {
    assert_eq!(number(sums, "elapsed_ns"), counted.end_ns - counted.begin_ns, "{counted:?}");
    assert_eq!(number(sums, "uncovered_ns"), 0, "{sums}");
    let delay_ns = number(sums, "preempted_ns") + number(sums, "run_queue_ns");
    let cpu_off_ns = number(sums, "cpu_ns").abs_diff(counted.cpu_ns);
    let off_ns = cpu_off_ns.max(delay_ns.abs_diff(counted.run_delay_ns));
    let share =
        off_ns as f64 / (tolerance_ns(counted) + stolen_ns + number(sums, "lossy_ns")) as f64;
    if share > 1.0 {
        println!("off by {off_ns} ns: {counted:?} {sums}");
    }
    share
}

#[test]
fn wall_time_is_that_of_the_kernel() {
    check("wall_time_is_that_of_the_kernel", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        for packing in [&[][..], &["--no-pack"]] {
            assert_times_agree(|| {
                let arguments = [&["--wakeups", "-e", "cpu-clock"], packing].concat();
                let mut recorder = bpf_record(&data, &arguments, dir.path())?;
                let (all, stolen_ns) = record_charged_waits(&mut recorder)?;
                assert_identity(&wall(&data, &[]));
                Ok(all.iter().map(|counted| agrees(&data, counted, stolen_ns)).fold(0.0, f64::max))
            })?;
        }
        // A wake-up on an idle CPU has no tracepoint on every kernel: the parts of the waits are the BPF engine's.
        let events = format!("cpu-clock,{CS}");
        let (all, _) = record_charged_waits(&mut whit_record(
            &data,
            &["-a", "-g", "--switch-events", "-e", &events],
        ))?;
        assert_identity(&wall(&data, &[]));
        for counted in &all {
            let tid = counted.tid.to_string();
            let json = wall(&data, &["--tid", &tid, "--time", &seconds_between(counted)]);
            assert_identity(&json);
            assert_eq!(number(&json["total"], "uncovered_ns"), 0, "{counted:?} {json}");
        }
        Ok(())
    });
}

#[test]
fn options_on_waits_leave_out_and_keep_the_sum() {
    check("options_on_waits_leave_out_and_keep_the_sum", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        let arguments = ["-g", "--switch-events", "-e", "cpu-clock"];
        record_charged_waits(&mut bpf_record(&data, &arguments, dir.path())?)?;
        let all = wall(&data, &[]);
        let waits = |json: &Value| number(&json["total"], "waiting_ns");
        for options in [
            &["--min-wait", "1ms"][..],
            &["--max-wait", "1ms"],
            &["--no-idle=100s"],
            &["--only-path", "play"],
        ] {
            let json = wall(&data, options);
            assert_identity(&json);
            assert!(waits(&json) < waits(&all), "{options:?} {}", json["total"]);
            assert!(number(&json["total"], "left_out_ns") > 0, "{options:?} {}", json["total"]);
        }
        let printed = text(whit().args(["report", "--wall", "-i"]).arg(&data));
        assert!(printed.contains("add --wakeups") && printed.contains(" schedule"), "{printed}");
        Ok(())
    });
}

#[test]
fn wall_time_needs_switches() {
    check("wall_time_needs_switches", || {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path().join("perf.data");
        record(
            whit()
                .args(["record", "--engine=ring", "-e", "cpu-clock,page-faults", "-o"])
                .arg(&data)
                .arg("true"),
        )?;
        for (arguments, expected) in [
            (&["--wall"][..], "--switch-events"),
            (&["--min-wait", "1ms"], "--wall"),
            (&["--wall", "--min-wait", "2ms", "--max-wait", "1ms"], "no wait has such a length"),
            (&["--wall", "-C", "0"], "waits belong to threads"),
        ] {
            let output = whit().args(["report", "-i"]).arg(&data).args(arguments).output();
            let output = output.expect("run whit");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && error.contains(expected), "{arguments:?} {error}");
        }
        Ok(())
    });
}
