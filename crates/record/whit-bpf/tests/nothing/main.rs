//! The program that does nothing, in the running kernel: it is called at each switch.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::time::Duration;

use whit_bpf::nothing::Nothing;
use whit_sys::bpf::enable_run_statistics;

use crate::support::{check, probe};

const SLEEPS: u64 = 50;

/// Switches from this thread in which it waited, by the kernel's count. A sleep that ends on its way into the scheduler is
/// none: that happens on an emulated processor.
fn waits() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("a status");
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok());
    count.expect("a count of switches")
}

fn sleep() {
    (0..SLEEPS).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
}

#[test]
fn it_is_called_at_each_switch() {
    check("it_is_called_at_each_switch", || {
        probe::bpf_statistics()?;
        let nothing = Nothing::attach().unwrap_or_else(|error| panic!("{error}"));
        let kept = enable_run_statistics().expect("keep statistics");
        let (waits_before, before) = (waits(), nothing.statistics().unwrap());
        sleep();
        let (after, waits) = (nothing.statistics().unwrap(), waits() - waits_before);
        let runs = after.runs - before.runs;
        // Each is a switch from this thread and one to it.
        assert!(waits > SLEEPS / 2 && runs >= 2 * waits, "{runs} runs, {waits} waits");
        assert!(after.run_time_ns > before.run_time_ns, "{after:?}");
        drop(kept);
        Ok(())
    });
}
