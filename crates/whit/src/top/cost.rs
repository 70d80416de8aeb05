//! The cost of showing a live recording: CPU time and memory of this program and of the recorder.

use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};
use whit_sys::system::page_size;
use whit_sys::usage::CpuUsage;

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
        let cpu_ns = own_ns.saturating_add(cpu_time_ns(recorder));
        let memory_bytes =
            resident_bytes("self").saturating_add(resident_bytes(&recorder.to_string()));
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

/// CPU time of all threads of a process. `/proc/PID/stat` has it in steps of 10 ms, which are half a percent.
fn cpu_time_ns(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let of_thread = |path: std::path::PathBuf| {
        fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    };
    threads.flatten().filter_map(|thread| of_thread(thread.path())).sum()
}

fn resident_bytes(process: &str) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{process}/statm")).ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(page_size() as u64)
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
    fn cpu_time_and_memory_are_those_of_a_process() {
        let own = std::process::id();
        let before = cpu_time_ns(own);
        let begin = CpuUsage::of_thread().unwrap().total_ns();
        while CpuUsage::of_thread().unwrap().total_ns() < begin + 20_000_000 {}
        assert!(cpu_time_ns(own) >= before + 10_000_000);
        assert!(resident_bytes("self") > 1 << 20);
        let cost = Cost { percent_of_cpu: 0.44, memory_bytes: (40 << 20) - 1 };
        assert_eq!(cost.to_string(), "0.4% CPU 40 MiB");
    }
}
