//! The cost of a recording at the moment.
//!
//! Some costs are measured as they are: the recorder's CPU time, interrupts of a PMU. BPF programs are timed for a tenth
//! of the time; in between, the time of one run counts for each. Costs that nobody measures are estimated by constants
//! (`docs/budget.md`).

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use whit_budget::{Reading, Settings, Waits};
use whit_engine_api::open_event::OpenEvent;
use whit_engine_api::{Engine, ProgramTime, ProgramTimes};
use whit_perfdata::attr::AttrFlags;
use whit_sys::usage::CpuUsage;

use crate::session::budget::capacity::Capacity;
use crate::session::event_control::EventControl;
use crate::session::ledger::Meters;
use crate::session::metering::MeterSnapshot;
use crate::session::stretches::{can_change, is_clock, nominal_ns};

/// The cost of a timer's interrupt, without the programs that it runs.
const INTERRUPT_NS: f64 = 1500.0;
/// The cost of a sample that the kernel writes itself, with its call chain.
const KERNEL_SAMPLE_NS: f64 = 2500.0;
/// The cost of a context switch that the kernel records itself.
const KERNEL_SWITCH_NS: f64 = 700.0;
/// The cost of exchanging the events that threads inherit, at a context switch. It hardly depends on their number.
const INHERITED_SWITCH_NS: f64 = 300.0;
/// The cost of a program's call, beside the run that the kernel times.
const CALL_NS: f64 = 60.0;
/// The run of a program before it was timed: for a sample, and for a context switch.
const ASSUMED_RUN_NS: [f64; 2] = [3000.0, 900.0];
/// A sample, and a recorded context switch, take no more of a reader's time.
const READ_NS_MAX: [f64; 2] = [2000.0, 500.0];
/// The recorder works in bursts: their mean over this time counts.
const SMOOTHED: Duration = Duration::from_millis(1500);
/// Time between two looks at the times of programs.
const TIMES_INTERVAL: Duration = Duration::from_millis(240);
/// Where context switches are counted.
const STAT_BYTES_MAX: usize = 1 << 20;

/// The work of the readers so far, which they state themselves.
#[derive(Debug, Default)]
pub(in crate::session) struct ReaderMeter {
    cpu_ns: AtomicU64,
    samples: AtomicU64,
}

impl ReaderMeter {
    /// To be called by readers.
    pub(in crate::session) fn add(&self, cpu_ns: u64, samples: u64) {
        // Sums alone are read, and no other memory by them.
        self.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        self.samples.fetch_add(samples, Ordering::Relaxed);
    }
}

/// A sum that grows in bursts.
#[derive(Debug, Default)]
struct Smoothed {
    points: VecDeque<(Instant, f64)>,
}

impl Smoothed {
    /// The growth in each nanosecond over the last while.
    fn rate(&mut self, now: Instant, sum: f64) -> f64 {
        while self.points.len() > 1 && self.points.get(1).is_some_and(|p| now - p.0 >= SMOOTHED) {
            self.points.pop_front();
        }
        self.points.push_back((now, sum));
        let Some((first, at_first)) = self.points.front() else { return 0.0 };
        // A burst at the begin is one of the whole time, too.
        let elapsed = now.saturating_duration_since(*first).max(SMOOTHED);
        (sum - at_first) / elapsed.as_nanos() as f64
    }
}

/// The time of one run, by the runs that the kernel has timed since the reading before.
#[derive(Clone, Copy, Debug)]
struct RunCost {
    before: ProgramTime,
    ns: f64,
}

impl RunCost {
    fn assumed(ns: f64) -> RunCost {
        RunCost { before: ProgramTime::default(), ns }
    }

    fn see(&mut self, now: ProgramTime) -> f64 {
        let runs = now.runs.saturating_sub(self.before.runs);
        let time = now.time_ns.saturating_sub(self.before.time_ns);
        // A program that is loaded anew begins at zero.
        if runs > 0 && now.runs >= self.before.runs {
            self.ns = time as f64 / runs as f64;
        }
        self.before = now;
        self.ns + CALL_NS
    }
}

/// Where costs are read.
pub(in crate::session) struct Costs {
    readers: Arc<ReaderMeter>,
    /// `/proc/stat`, where context switches matter.
    stat: Option<File>,
    has_programs: bool,
    asked: Waits,
    /// Threads have the events, and give them to those that they start.
    inherits: bool,
    capacity: Capacity,
    last: Option<Instant>,
    machine: Option<MachineCounts>,
    metered: MeterSnapshot,
    sample_run: RunCost,
    switch_run: RunCost,
    wait_run: RunCost,
    other_programs: (u64, u64),
    times: ProgramTimes,
    asked_at: Option<Instant>,
    process_rate: Smoothed,
    reader_rate: Smoothed,
    sample_rate: Smoothed,
    busy_rate: Smoothed,
    present: Reading,
}

impl Costs {
    /// For these events. `proc`: where the kernel counts context switches.
    pub(in crate::session) fn new(
        control: &EventControl,
        readers: Arc<ReaderMeter>,
        asked: Waits,
        capacity: Capacity,
        proc: &Path,
    ) -> Costs {
        let (events, engine) = control.events_and_engine();
        let [sample_ns, switch_ns] = ASSUMED_RUN_NS;
        let inherits = events.iter().any(is_inherited);
        let has_switches = inherits || asked != Waits::None;
        Costs {
            readers,
            stat: has_switches.then(|| File::open(proc.join("stat")).ok()).flatten(),
            inherits,
            has_programs: engine.program_times().is_some(),
            asked,
            capacity,
            last: None,
            machine: None,
            metered: MeterSnapshot::default(),
            sample_run: RunCost::assumed(sample_ns),
            switch_run: RunCost::assumed(switch_ns),
            wait_run: RunCost::assumed(switch_ns / 4.0),
            other_programs: (0, 0),
            times: ProgramTimes::default(),
            asked_at: None,
            process_rate: Smoothed::default(),
            reader_rate: Smoothed::default(),
            sample_rate: Smoothed::default(),
            busy_rate: Smoothed::default(),
            present: Reading::default(),
        }
    }

    /// Where readers state their work.
    pub(super) fn readers(&self) -> Arc<ReaderMeter> {
        self.readers.clone()
    }

    /// As the user asked for waits.
    pub(super) fn asked(&self) -> Waits {
        self.asked
    }

    /// Costs count from here on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.last = Some(now);
        self.machine = self.count_machine();
        let rates = [&mut self.process_rate, &mut self.reader_rate, &mut self.sample_rate];
        rates.into_iter().chain([&mut self.busy_rate]).for_each(|rate| rate.points.clear());
        if let Some(machine) = self.machine {
            self.busy_rate.rate(now, machine.busy_ns);
        }
        let used = CpuUsage::of_process().unwrap_or_default().total_ns();
        self.process_rate.rate(now, used as f64);
        self.reader_rate.rate(now, self.readers.cpu_ns.load(Ordering::Relaxed) as f64);
        self.sample_rate.rate(now, self.readers.samples.load(Ordering::Relaxed) as f64);
    }

    /// The capacity of the last reading.
    pub(super) fn capacity_millicpus(&self) -> u32 {
        let elapsed = self.present.elapsed.as_nanos() as f64;
        if elapsed > 0.0 { (self.present.capacity_ns / elapsed * 1e3) as u32 } else { 0 }
    }

    /// The share of it that the recording cost.
    pub(super) fn share(&self) -> f64 {
        self.present.cost_ns() / self.present.capacity_ns.max(1.0)
    }

    /// The cost since the reading before.
    pub(super) fn read(
        &mut self,
        now: Instant,
        settings: Settings,
        control: &EventControl,
        meters: &Meters,
    ) -> Option<Reading> {
        let elapsed = now.saturating_duration_since(self.last.replace(now)?);
        let elapsed_ns = elapsed.as_nanos() as f64;
        let (events, engine) = control.events_and_engine();
        let drained = self.readers.samples.load(Ordering::Relaxed) as f64;
        let drained_rate = self.sample_rate.rate(now, drained);
        let rate = samples_rate(events, settings.stretch).unwrap_or(drained_rate);
        let samples = if settings.is_paused { 0.0 } else { rate * elapsed_ns };
        let times = self.times(now, engine);
        let programs_ns = self.sample_run.see(times.samples);
        let interrupts_ns = self.interrupts(meters, now);
        let each_ns = if self.has_programs { INTERRUPT_NS + programs_ns } else { KERNEL_SAMPLE_NS };
        let all_switches = self.switches_since();
        let used_cpus = used_cpus(drained_rate, events, settings);
        let inherited_ns = match self.inherits {
            true => inherited_ns(all_switches, used_cpus, self.busy_cpus(now)),
            false => 0.0,
        };
        let switches = if self.asked == Waits::None { 0.0 } else { all_switches };
        let waits_ns = self.waits_ns(settings, &times) * switches;
        let used = CpuUsage::of_process().unwrap_or_default().total_ns();
        let process = self.process_rate.rate(now, used as f64);
        let read = self.readers.cpu_ns.load(Ordering::Relaxed) as f64;
        let readers = self.reader_rate.rate(now, read).min(process);
        let recorded =
            if settings.waits == Waits::Exact && !settings.is_paused { switches } else { 0.0 };
        let readers_ns = readers * elapsed_ns;
        let [read_samples_ns, read_switches_ns] = shares_of_readers(readers_ns, samples, recorded);
        let read_ns = read_samples_ns + read_switches_ns;
        self.present = Reading {
            elapsed,
            capacity_ns: self.capacity.at(now, used_cpus.unwrap_or(0.0)) * elapsed_ns,
            samples_ns: interrupts_ns.unwrap_or(samples * each_ns) + read_samples_ns,
            waits_ns: waits_ns + read_switches_ns,
            other_ns: process * elapsed_ns - read_ns
                + self.others(&times) * elapsed_ns
                + inherited_ns,
            switches,
        };
        Some(self.present)
    }

    /// The times of programs. They grow in one window of each half second only, and asking costs more than anything else
    /// here.
    fn times(&mut self, now: Instant, engine: &dyn Engine) -> ProgramTimes {
        let is_due =
            self.asked_at.is_none_or(|at| now.saturating_duration_since(at) >= TIMES_INTERVAL);
        if self.has_programs && is_due {
            self.asked_at = Some(now);
            self.times = engine.program_times().unwrap_or_default();
        }
        self.times
    }

    /// The cost of one context switch.
    fn waits_ns(&mut self, settings: Settings, times: &ProgramTimes) -> f64 {
        let (exact, sampled) =
            (self.switch_run.see(times.switches), self.wait_run.see(times.waits));
        match settings.waits {
            _ if settings.is_paused => 0.0,
            Waits::Exact if self.has_programs => exact,
            Waits::Exact => KERNEL_SWITCH_NS,
            // Two programs run.
            Waits::Sampled => 2.0 * sampled,
            Waits::None => 0.0,
        }
    }

    /// Programs that no setting changes but a pause: their time in each nanosecond.
    fn others(&mut self, times: &ProgramTimes) -> f64 {
        let (timed, time) =
            std::mem::replace(&mut self.other_programs, (times.timed_ns, times.other_ns));
        let timed_ns = times.timed_ns.saturating_sub(timed);
        if timed_ns == 0 {
            return 0.0;
        }
        times.other_ns.saturating_sub(time) as f64 / timed_ns as f64
    }

    /// Time of a PMU's interrupts, where there is one that is measured. Programs run within.
    fn interrupts(&mut self, meters: &Meters, now: Instant) -> Option<f64> {
        let (pmi, _) = meters.metering.since(&self.metered, now);
        if pmi.measurement.reason().is_some() {
            return None;
        }
        self.metered = meters.metering.mark();
        Some(pmi.time_ns as f64)
    }

    fn switches_since(&mut self) -> f64 {
        let now = self.count_machine();
        let before = std::mem::replace(&mut self.machine, now);
        now.zip(before)
            .map_or(0.0, |(now, before)| now.switches.saturating_sub(before.switches) as f64)
    }

    /// CPUs of the machine that were busy in the last while.
    fn busy_cpus(&mut self, now: Instant) -> f64 {
        let busy_ns = self.machine.map_or(0.0, |machine| machine.busy_ns);
        self.busy_rate.rate(now, busy_ns)
    }

    fn count_machine(&self) -> Option<MachineCounts> {
        let file = self.stat.as_ref()?;
        let mut bytes = vec![0; 8 << 10];
        let mut end = 0;
        loop {
            let read = file.read_at(&mut bytes[end..], end as u64).ok()?;
            end += read;
            if let Some(counts) = MachineCounts::of(&bytes[..end]) {
                return Some(counts);
            }
            if read == 0 || end >= STAT_BYTES_MAX {
                return None;
            }
            bytes.resize(bytes.len() * 2, 0);
        }
    }
}

/// Sums of the machine in `/proc/stat`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct MachineCounts {
    /// Context switches.
    switches: u64,
    /// Time of all CPUs that something took.
    busy_ns: f64,
}

impl MachineCounts {
    /// `None` until the line of context switches is whole.
    fn of(stat: &[u8]) -> Option<MachineCounts> {
        let switches = count_in(stat)?;
        let first = stat.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let first = std::str::from_utf8(first).unwrap_or_default();
        let times = first.split_ascii_whitespace().skip(1).map(|time| time.parse().unwrap_or(0u64));
        // user, nice, system, idle, iowait, irq, softirq; the others are in these, or are no time of this machine.
        let busy = times.take(7).enumerate().filter(|(at, _)| ![3, 4].contains(at));
        let ticks: u64 = busy.map(|(_, time)| time).sum();
        let tick_ns = 1e9 / rustix::param::clock_ticks_per_second().max(1) as f64;
        Some(MachineCounts { switches, busy_ns: ticks as f64 * tick_ns })
    }
}

/// Whether threads have the event, and those that they start inherit it.
fn is_inherited(event: &OpenEvent) -> bool {
    let of_threads = event.instances.iter().any(|one| one.tid.is_some());
    of_threads && event.event.attr.has(AttrFlags::INHERIT)
}

/// The cost of exchanging inherited events. Recorded threads have the part of the machine's context switches that they
/// have of its busy time; all, where no clock tells the time that they use.
fn inherited_ns(switches: f64, used_cpus: Option<f64>, busy_cpus: f64) -> f64 {
    let part = match used_cpus {
        Some(used) if busy_cpus > 0.0 => (used / busy_cpus).min(1.0),
        _ => 1.0,
    };
    switches * part * INHERITED_SWITCH_NS
}

/// CPUs that recorded threads use, as far as samples of a clock tell; `None` without a clock.
fn used_cpus(drained_rate: f64, events: &[OpenEvent], settings: Settings) -> Option<f64> {
    let is_sampled = |event: &&OpenEvent| event.event.attr.sample_period_or_freq > 0;
    let clock = events.iter().filter(is_sampled).find(|event| is_clock(event))?;
    Some(drained_rate * nominal_ns(clock) as f64 * f64::from(settings.stretch))
}

/// The number behind `ctxt`, once its line is whole.
fn count_in(stat: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\nctxt ";
    let at = stat.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let end = at + stat[at..].iter().position(|byte| *byte == b'\n')?;
    std::str::from_utf8(&stat[at..end]).ok()?.trim().parse().ok()
}

/// The parts of the readers' time that go with samples and with recorded switches. The rest is for mappings, names and
/// wake-ups, which no setting changes.
fn shares_of_readers(readers_ns: f64, samples: f64, switches: f64) -> [f64; 2] {
    let [sample_ns, switch_ns] = READ_NS_MAX;
    let most = [samples * sample_ns, switches * switch_ns];
    let whole = most[0] + most[1];
    let part = if whole > readers_ns { readers_ns / whole } else { 1.0 };
    most.map(|ns| ns * part)
}

/// Samples in each nanosecond of all timers; `None` where other events are sampled, or threads are.
fn samples_rate(events: &[OpenEvent], stretch: u32) -> Option<f64> {
    let mut rate = 0.0;
    for event in events.iter().filter(|event| event.event.attr.sample_period_or_freq > 0) {
        if event.event.is_side_band || event.event.is_bpf_output {
            continue;
        }
        if !is_clock(event) || event.instances.iter().any(|one| one.tid.is_some()) {
            return None;
        }
        let stretch = if can_change(event) { f64::from(stretch) } else { 1.0 };
        let period = (nominal_ns(event) as f64 * stretch).max(1.0);
        rate += event.instances.len() as f64 / period;
    }
    Some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_switches_are_read_once_their_line_is_whole() {
        let stat = b"cpu  1 2 3\ncpu0 1 2 3\nintr 5 0 0\nctxt 123456\nbtime 7\n";
        assert_eq!(count_in(stat), Some(123_456));
        assert_eq!(count_in(&stat[..stat.len() - 10]), None);
        assert_eq!(count_in(b"cpu 1\n"), None);
    }

    #[test]
    fn busy_time_of_the_machine_is_read() {
        let stat = b"cpu  100 10 40 5000 600 3 7 9 11 13\ncpu0 1 2 3\nctxt 5\nbtime 7\n";
        let tick_ns = 1e9 / rustix::param::clock_ticks_per_second() as f64;
        let counts = MachineCounts { switches: 5, busy_ns: 160.0 * tick_ns };
        assert_eq!(MachineCounts::of(stat), Some(counts));
        assert_eq!(MachineCounts::of(&stat[..50]), None);
        let strange = MachineCounts::of(b"\xff\nctxt 5\n");
        assert_eq!(strange, Some(MachineCounts { switches: 5, busy_ns: 0.0 }));
    }

    #[test]
    fn recorded_threads_pay_for_their_part_of_the_context_switches() {
        let whole = 1000.0 * INHERITED_SWITCH_NS;
        let near =
            |cost: f64, wanted: f64| assert!((cost - wanted).abs() < 1e-6, "{cost} {wanted}");
        near(inherited_ns(1000.0, Some(1.5), 1.5), whole);
        near(inherited_ns(1000.0, Some(0.5), 2.0), whole / 4.0);
        // They sleep while others work.
        near(inherited_ns(1000.0, Some(0.0), 2.0), 0.0);
        // Samples and ticks do not agree exactly.
        near(inherited_ns(1000.0, Some(1.1), 1.0), whole);
        // No clock is sampled, or the machine has just begun to count.
        near(inherited_ns(1000.0, None, 2.0), whole);
        near(inherited_ns(1000.0, Some(0.5), 0.0), whole);
    }

    #[test]
    fn bursts_count_as_their_mean() {
        let (mut rate, begin) = (Smoothed::default(), Instant::now());
        let at = |ms| begin + Duration::from_millis(ms);
        assert!(rate.rate(at(0), 0.0) == 0.0);
        assert!((rate.rate(at(10), 6e6) - 0.004).abs() < 1e-9);
        assert!((rate.rate(at(1500), 6e6) - 0.004).abs() < 1e-9);
        assert!((rate.rate(at(1509), 9e6) - 9.0 / 1509.0).abs() < 1e-9);
        // The burst is over and forgotten.
        assert!(rate.rate(at(4000), 9e6).abs() < 1e-9);
    }

    #[test]
    fn readers_work_for_other_things_than_samples_and_switches() {
        assert_eq!(shares_of_readers(1e6, 100.0, 0.0), [200_000.0, 0.0]);
        assert_eq!(shares_of_readers(100_000.0, 100.0, 0.0), [100_000.0, 0.0]);
        assert_eq!(shares_of_readers(350_000.0, 100.0, 1000.0), [100_000.0, 250_000.0]);
        assert_eq!(shares_of_readers(5.0, 0.0, 0.0), [0.0, 0.0]);
    }

    #[test]
    fn runs_cost_what_they_were_timed_for() {
        let mut cost = RunCost::assumed(900.0);
        assert!((cost.see(ProgramTime::default()) - 960.0).abs() < 1e-9);
        let timed = ProgramTime { runs: 10, time_ns: 4000 };
        assert!((cost.see(timed) - 460.0).abs() < 1e-9);
        assert!((cost.see(timed) - 460.0).abs() < 1e-9, "between two windows");
        let anew = ProgramTime { runs: 1, time_ns: 9000 };
        assert!((cost.see(anew) - 460.0).abs() < 1e-9);
    }
}
