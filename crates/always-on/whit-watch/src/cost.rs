//! The cost of the service: CPU time and memory of it and of its recorder, and the time of BPF programs.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use whit_sys::usage::{CpuUsage, cpu_time_ns_of, resident_bytes_of};

/// Readings that are kept: the figures cover the time since the oldest one.
const READINGS_MAX: usize = 8;
/// The recorder has the kernel time BPF programs for 50 ms of each half second.
const TIMED_SHARE: f64 = 0.1;

/// CPU time in percent of one CPU, and resident memory.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cost {
    /// Seconds that the percentages cover.
    pub over_s: f64,
    /// CPU time of whit-watch.
    pub watch_cpu_percent: f64,
    /// CPU time of all threads of the recorder.
    pub recorder_cpu_percent: f64,
    /// Time of BPF programs, in the interrupts that sample; `None` where the kernel does not time them.
    pub bpf_cpu_percent: Option<f64>,
    /// Memory of whit-watch.
    pub watch_memory_bytes: u64,
    /// Resident memory of the other process.
    pub recorder_memory_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    own_ns: u64,
    recorder: Option<u32>,
    recorder_ns: u64,
    bpf: Runs,
}

/// Runs of BPF programs that the kernel timed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Runs {
    ns: u64,
    count: u64,
}

/// Readings of the last windows.
#[derive(Debug, Default)]
pub(crate) struct CostMeter {
    readings: VecDeque<(Instant, Reading)>,
}

impl CostMeter {
    /// Takes a reading that later figures begin at.
    pub(crate) fn mark(&mut self, recorder: Option<u32>) {
        self.add(Instant::now(), Reading::now(recorder));
    }

    fn add(&mut self, now: Instant, reading: Reading) {
        // Figures of a recorder begin with it.
        self.readings.retain(|(_, before)| before.recorder == reading.recorder);
        if self.readings.len() >= READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back((now, reading));
    }

    /// The cost since the oldest reading.
    pub(crate) fn cost(&self, recorder: Option<u32>) -> Cost {
        let mut cost = self.since_oldest(Instant::now(), Reading::now(recorder));
        cost.watch_memory_bytes = resident_bytes_of(std::process::id());
        cost.recorder_memory_bytes = recorder.map_or(0, resident_bytes_of);
        cost
    }

    fn since_oldest(&self, now: Instant, reading: Reading) -> Cost {
        let is_same = |(_, before): &&(Instant, Reading)| before.recorder == reading.recorder;
        let Some((at, before)) = self.readings.iter().find(is_same) else { return Cost::default() };
        let elapsed = now.saturating_duration_since(*at);
        if elapsed < Duration::from_millis(1) {
            return Cost::default();
        }
        let percent =
            |from: u64, to: u64| 100.0 * to.saturating_sub(from) as f64 / elapsed.as_nanos() as f64;
        let is_timed = reading.bpf.count > before.bpf.count;
        Cost {
            over_s: elapsed.as_secs_f64(),
            watch_cpu_percent: percent(before.own_ns, reading.own_ns),
            recorder_cpu_percent: percent(before.recorder_ns, reading.recorder_ns),
            bpf_cpu_percent: is_timed
                .then(|| percent(before.bpf.ns, reading.bpf.ns) / timed_share()),
            ..Cost::default()
        }
    }
}

impl Reading {
    fn now(recorder: Option<u32>) -> Reading {
        Reading {
            own_ns: CpuUsage::of_process().unwrap_or_default().total_ns(),
            recorder,
            recorder_ns: recorder.map_or(0, cpu_time_ns_of),
            bpf: recorder
                .map_or(Runs::default(), |pid| runs(Path::new(&format!("/proc/{pid}/fdinfo")))),
        }
    }
}

/// All of the time where somebody has the kernel time programs for everybody.
fn timed_share() -> f64 {
    let setting = fs::read_to_string("/proc/sys/kernel/bpf_stats_enabled");
    if setting.is_ok_and(|setting| setting.trim() == "1") { 1.0 } else { TIMED_SHARE }
}

/// Runs of the programs that a process has open, each program once.
fn runs(fdinfo: &Path) -> Runs {
    let Ok(files) = fs::read_dir(fdinfo) else { return Runs::default() };
    let mut seen = std::collections::BTreeSet::new();
    let mut all = Runs::default();
    for text in files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok()) {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
        };
        let (Some(id), Some(ns), Some(count)) =
            (field("prog_id"), field("run_time_ns"), field("run_cnt"))
        else {
            continue;
        };
        if seen.insert(id) {
            all = Runs { ns: all.ns + ns, count: all.count + count };
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(recorder: u32, ms: u64, bpf: (u64, u64)) -> Reading {
        Reading {
            own_ns: ms * 1_000_000,
            recorder: Some(recorder),
            recorder_ns: 2 * ms * 1_000_000,
            bpf: Runs { ns: bpf.0, count: bpf.1 },
        }
    }

    #[test]
    fn figures_cover_the_last_readings_of_one_recorder() {
        let (mut meter, begin) = (CostMeter::default(), Instant::now());
        let at = |second: u64| begin + Duration::from_secs(second);
        for second in 0..20 {
            meter.add(at(second), reading(1, 10 * second, (0, 0)));
        }
        let cost = meter.since_oldest(at(20), reading(1, 200, (0, 0)));
        assert_eq!((cost.over_s, cost.bpf_cpu_percent), (8.0, None));
        assert!((cost.watch_cpu_percent - 1.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.recorder_cpu_percent - 2.0).abs() < 1e-9, "{cost:?}");
        // Another recorder counts from its own beginning.
        assert_eq!(meter.since_oldest(at(21), reading(2, 0, (0, 0))), Cost::default());
        meter.add(at(21), reading(2, 210, (0, 0)));
        let cost = meter.since_oldest(at(31), reading(2, 310, (10_000_000, 5)));
        assert_eq!(cost.over_s, 10.0);
        let timed = cost.bpf_cpu_percent.map(|percent| percent * timed_share());
        assert!(timed.is_some_and(|percent| (percent - 0.1).abs() < 1e-9), "{cost:?}");
    }

    #[test]
    fn a_program_with_two_descriptors_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let program = "pos:\t0\nprog_id:\t7\nrun_time_ns:\t100\nrun_cnt:\t2\n";
        for (name, text) in [("3", program), ("4", program), ("5", "pos:\t0\nflags:\t02\n")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(runs(folder.path()), Runs { ns: 100, count: 2 });
    }
}
