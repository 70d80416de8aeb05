//! The cost of showing a live recording: CPU time and memory of this program and of the recorder.

use std::collections::VecDeque;
use std::time::{Duration, Instant};
use whit_sys::usage::{CpuUsage, cpu_time_ns_of, resident_bytes_of};

/// The CPU time is that of the last pictures, so that a single one does not make it jump.
const PICTURES: usize = 6;

/// Readings of CPU time.
#[derive(Debug, Default)]
pub(super) struct CostMeter {
    readings: VecDeque<(Instant, u64)>,
}

/// CPU time and memory of both programs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Cost {
    pub(super) percent_of_cpu: f64,
    pub(super) memory_bytes: u64,
}

impl CostMeter {
    /// Reads both programs' counters.
    pub(super) fn read(&mut self, recorder: u32) -> Cost {
        let own_ns = CpuUsage::of_process().unwrap_or_default().total_ns();
        let cpu_ns = own_ns.saturating_add(cpu_time_ns_of(recorder));
        let memory_bytes =
            resident_bytes_of(std::process::id()).saturating_add(resident_bytes_of(recorder));
        Cost { percent_of_cpu: self.add(Instant::now(), cpu_ns), memory_bytes }
    }

    fn add(&mut self, now: Instant, cpu_ns: u64) -> f64 {
        self.readings.push_back((now, cpu_ns));
        if self.readings.len() > PICTURES {
            self.readings.pop_front();
        }
        let Some((at, before_ns)) = self.readings.front() else { return 0.0 };
        let elapsed = now.saturating_duration_since(*at);
        if elapsed < Duration::from_millis(1) {
            return 0.0;
        }
        100.0 * cpu_ns.saturating_sub(*before_ns) as f64 / elapsed.as_nanos() as f64
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = self.memory_bytes.div_ceil(1 << 20);
        write!(f, "{:.1}% CPU {mib} MiB", self.percent_of_cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_the_last_pictures() {
        let mut meter = CostMeter::default();
        let begin = Instant::now();
        let mut at = |second: u64, cpu_ms: u64| {
            meter.add(begin + Duration::from_secs(second), cpu_ms * 1_000_000)
        };
        assert_eq!([at(0, 500), at(2, 520), at(4, 540)], [0.0, 1.0, 1.0]);
        // The first picture is expensive: it leaves the sum after some others.
        assert_eq!([at(6, 540), at(8, 540), at(10, 540)].map(|it| (it * 10.0) as u32), [6, 5, 4]);
        assert_eq!([at(12, 540), at(14, 540)].map(|it| (it * 10.0) as u32), [2, 0]);
    }

    #[test]
    fn the_cost_is_shown_in_percent_and_whole_mebibytes() {
        let cost = Cost { percent_of_cpu: 0.44, memory_bytes: (40 << 20) - 1 };
        assert_eq!(cost.to_string(), "0.4% CPU 40 MiB");
    }
}
