//! Threads whose cgroup has used its quota of CPU time up, against the kernel's counts.

use std::path::Path;

use serde_json::Value;
use whit_testing::cgroups::Limited;

use crate::support::tools::{number, record, text, whit};
use crate::support::{check, probe};

/// The default of `cpu.cfs_period_us` and `cpu.max`.
const PERIOD_NS: u64 = 100_000_000;

/// How often the kernel throttled the cgroup, and for how long in nanoseconds.
fn throttled(counts: &str) -> (u64, u64) {
    let number = |key: &str| {
        let mut lines = counts.lines().filter_map(|line| line.strip_prefix(key));
        lines.next().and_then(|number| number.trim().parse::<u64>().ok())
    };
    let ns = number("throttled_time ");
    let ns = ns.or_else(|| number("throttled_usec ").map(|us| us * 1000)).expect("a time");
    (number("nr_throttled ").expect("a count"), ns)
}

fn difference(from: (u64, u64), to: (u64, u64)) -> (u64, u64) {
    (to.0 - from.0, to.1 - from.1)
}

fn json(args: &[&str], data: &Path) -> Value {
    let json = text(whit().args(args).args(["--no-debuginfod", "-i"]).arg(data));
    serde_json::from_str(&json).expect("JSON")
}

#[test]
fn waits_for_a_quota_are_those_that_the_kernel_counts() {
    check("throttled::waits_for_a_quota_are_those_that_the_kernel_counts", || {
        probe::bpf_stacks()?;
        let mount = probe::cgroups_v2()?;
        let limited = Limited::start(&mount, &format!("whit-quota-{}", std::process::id()), 10)?;
        let folder = tempfile::tempdir().expect("make a directory");
        let data = folder.path().join("perf.data");
        let read = || throttled(&std::fs::read_to_string(limited.counts()).expect("counts"));
        let before = read();
        let mut recorder = whit();
        recorder.args(["record", "-q", "--engine=bpf", "--switch-events", "-F", "99", "-o"]);
        recorder.arg(&data);
        recorder.args(["-p", &limited.id().to_string(), "--", "sh", "-c"]);
        // Counts from within the recorded time.
        let said = record(recorder.args(["cat $0; sleep 1; echo; cat $0"]).arg(limited.counts()))?;
        let outside = difference(before, read());
        let said = String::from_utf8_lossy(&said).into_owned();
        let (first, last) = said.split_once("\n\n").expect("two counts");
        let inside = difference(throttled(first), throttled(last));
        // The thread can run at all times, and has a tenth of them.
        assert!(inside.0 > 0, "{said}");
        let switches = json(&["switches", "--json"], &data);
        let count = number(&switches["total"], "throttled_count");
        let ns = number(&switches["total"], "throttled_wait_ns");
        // The kernel counts a moment before the thread leaves its CPU.
        assert!((inside.0 - 1..=outside.0).contains(&count), "{inside:?} {count} {outside:?}");
        // The first and the last wait are not whole.
        assert!(ns + 2 * PERIOD_NS >= inside.1, "{inside:?} {ns}");
        assert!(ns <= number(&switches["total"], "preempt_wait_ns"), "{switches}");
        let wall = json(&["report", "--wall", "--json"], &data);
        let sums = &wall["threads"][0]["sums"];
        assert_eq!(number(sums, "throttled_ns"), ns, "{sums}");
        let classes =
            text(whit().args(["switches", "--stdio", "-s", "wait_class", "-i"]).arg(&data));
        assert!(classes.lines().any(|line| line.ends_with("  throttled")), "{classes}");
        Ok(())
    });
}
