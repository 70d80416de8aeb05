//! The figures of one process, by `/proc`.

use std::fs;

use serde::Serialize;

use crate::process::{field, status_field};
use whit_sys::usage::{cpu_time_ns_of, resident_bytes_of};

/// Figures so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reading {
    pub(super) cpu_ns: u64,
    /// Times that a thread waited and was woken.
    pub(super) wake_ups: u64,
    pub(super) resident_bytes: u64,
    pub(super) peak_bytes: u64,
}

/// The cost of a process over some time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub(crate) struct ProcessCost {
    pub(crate) cpu_percent: f64,
    /// Times that a thread of it waited and was woken.
    pub(crate) wake_ups_an_hour: f64,
    /// Resident memory at the end.
    pub(crate) resident_bytes: u64,
    /// The most resident memory since its beginning.
    pub(crate) peak_bytes: u64,
}

impl Reading {
    /// Zero where the process is gone.
    pub(super) fn of(process: u32) -> Reading {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let texts = threads.filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
        Reading {
            cpu_ns: cpu_time_ns_of(process),
            wake_ups: texts.filter_map(|text| field(&text, "voluntary_ctxt_switches")).sum(),
            resident_bytes: resident_bytes_of(process),
            peak_bytes: status_field(process, "VmHWM"),
        }
    }

    /// The cost from an earlier reading to this one.
    pub(super) fn since(&self, before: &Reading, seconds: f64) -> ProcessCost {
        let per_second = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        ProcessCost {
            cpu_percent: 100.0 * per_second(before.cpu_ns, self.cpu_ns) / 1e9,
            wake_ups_an_hour: 3600.0 * per_second(before.wake_ups, self.wake_ups),
            resident_bytes: self.resident_bytes,
            peak_bytes: self.peak_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use whit_testing::wait::{Load, wait_until};

    /// The shell waits for its children, then keeps a CPU busy. It has one thread, so that nothing is taken from its sums.
    #[test]
    fn waits_time_and_memory_are_those_of_the_process() {
        let work = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done; while :; do :; done";
        let shell = Load::start(Command::new("sh").args(["-c", work]));
        wait_until("the shell has waited", || Reading::of(shell.id()).wake_ups >= 10);
        let before = Reading::of(shell.id());
        wait_until("the shell has worked", || {
            Reading::of(shell.id()).cpu_ns >= before.cpu_ns + 50_000_000
        });
        let now = Reading::of(shell.id());
        assert!(now.resident_bytes > 0 && now.peak_bytes >= now.resident_bytes, "{now:?}");
        let cost = now.since(&Reading::default(), 1.0);
        assert!(cost.cpu_percent >= 5.0 && cost.wake_ups_an_hour >= 36_000.0, "{cost:?}");
        assert_eq!(Reading::of(u32::MAX), Reading::default());
    }
}
