//! The program that does nothing, in the running kernel: it is called at each switch.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::time::Duration;

use whit_bpf::nothing::Nothing;
use whit_sys::bpf::enable_run_statistics;

use crate::support::{check, probe};

/// Each is a switch from this thread and one to it.
const SLEEPS: u64 = 50;

fn sleep() {
    (0..SLEEPS).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
}

#[test]
fn it_is_called_at_each_switch() {
    check("it_is_called_at_each_switch", || {
        probe::bpf_statistics()?;
        let nothing = Nothing::attach().unwrap_or_else(|error| panic!("{error}"));
        let kept = enable_run_statistics().expect("keep statistics");
        let before = nothing.statistics().unwrap();
        sleep();
        let after = nothing.statistics().unwrap();
        let runs = after.runs - before.runs;
        assert!(runs >= 2 * SLEEPS, "{runs}");
        assert!(after.run_time_ns > before.run_time_ns, "{after:?}");
        drop(kept);
        Ok(())
    });
}
