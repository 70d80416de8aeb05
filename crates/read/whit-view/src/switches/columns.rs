//! Columns of numbers.

use whit_profile::switches::SwitchSums;

/// A column of numbers.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) cell: fn(&SwitchSums) -> String,
}

const CPU_TIME: Column = Column { heading: "CPU Time", cell: |s| seconds(s.cpu_ns) };
pub(super) const MAIN: [Column; 3] = [
    Column { heading: "Inactive Wait Time", cell: |s| seconds(s.wait_ns()) },
    Column { heading: "Inactive Sync Wait Count", cell: |s| s.sync_count.to_string() },
    Column { heading: "Preemption Wait Count", cell: |s| s.preempt_count.to_string() },
];
pub(super) const BY_KIND: [Column; 3] = [
    Column { heading: "Sync Wait Time", cell: |s| seconds(s.sync_wait_ns) },
    Column { heading: "Preemption Wait Time", cell: |s| seconds(s.preempt_wait_ns) },
    Column { heading: "Longest Wait", cell: |s| seconds(s.longest_wait_ns()) },
];
/// A part of the preemptions.
const THROTTLED: [Column; 2] = [
    Column { heading: "Throttled", cell: |s| s.throttled_count.to_string() },
    Column { heading: "Throttled Time", cell: |s| seconds(s.throttled_wait_ns) },
];
const NEW: [Column; 2] = [
    Column { heading: "New Threads", cell: |s| s.new_count.to_string() },
    Column { heading: "New Thread Wait Time", cell: |s| seconds(s.new_wait_ns) },
];
const WOKEN: [Column; 3] = [
    Column { heading: "Woken", cell: |s| s.woken_count.to_string() },
    Column { heading: "Blocked Time", cell: |s| seconds(s.blocked_ns) },
    Column { heading: "Runnable Time", cell: |s| seconds(s.runnable_ns) },
];
const LOSSY: [Column; 3] = [
    Column { heading: "Lossy CPU Time", cell: |s| seconds(s.lossy_cpu_ns) },
    Column { heading: "Lossy Wait Time", cell: |s| seconds(s.lossy_wait_ns) },
    Column { heading: "Lossy Waits", cell: |s| s.lossy_count.to_string() },
];
const THROUGHOUT: [Column; 2] = [
    Column { heading: "Throughout Wait Time", cell: |s| seconds(s.throughout_wait_ns) },
    Column { heading: "Throughout Waits", cell: |s| s.throughout_count.to_string() },
];
const OPEN: [Column; 2] = [
    Column { heading: "Open Wait Time", cell: |s| seconds(s.open_wait_ns) },
    Column { heading: "Open Waits", cell: |s| s.open_count.to_string() },
];

impl Column {
    /// Times take as much room as a million seconds.
    pub(super) fn width(&self) -> usize {
        const TIME_WIDTH: usize = 14;
        const COUNT_WIDTH: usize = 10;
        let least = if self.heading.ends_with("Time") || self.heading.starts_with("Longest") {
            TIME_WIDTH
        } else {
            COUNT_WIDTH
        };
        self.heading.len().max(least)
    }

    /// The columns that have anything in them.
    pub(super) fn shown(total: &SwitchSums) -> Vec<Column> {
        let mut columns = vec![CPU_TIME];
        columns.extend(MAIN);
        if total.throttled_count > 0 {
            columns.extend(THROTTLED);
        }
        if total.new_count > 0 {
            columns.extend(NEW);
        }
        if total.woken_count > 0 {
            columns.extend(WOKEN);
        }
        if total.lossy_count > 0 || total.lossy_cpu_ns > 0 {
            columns.extend(LOSSY);
        }
        if total.open_count > 0 {
            columns.extend(OPEN);
        }
        if total.throughout_count > 0 {
            columns.extend(THROUGHOUT);
        }
        columns
    }
}

/// Seconds with microseconds, cut.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}
