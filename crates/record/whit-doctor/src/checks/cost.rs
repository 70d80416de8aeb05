//! The cost of measurements on this machine.

use whit_events::{HardwareEvent, SoftwareEvent, TYPE_HARDWARE, TYPE_SOFTWARE};
use whit_perfdata::attr::SampleType;

use crate::checks::{Side, counting, usual_side};
use crate::finding::Cost;
use crate::machine::{Machine, Privileges};

const READS: usize = 200;
const OPENS: usize = 15;
const INTERRUPT_ROUNDS: usize = 9;
/// Time between interrupts: ten times as often as recordings usually sample.
const TIMER_INTERVAL_NS: u64 = 100_000;
/// Roughly, of any machine.
const CYCLES_PER_NS: u64 = 3;

/// Times readings and openings of one software and one hardware event, and their interrupts. An event that does not
/// open is left out.
pub(super) fn measure(machine: &mut Machine, privileges: &Privileges) -> Vec<Cost> {
    let events = [
        ("task-clock", TYPE_SOFTWARE, SoftwareEvent::TaskClock.config()),
        ("cycles", TYPE_HARDWARE, HardwareEvent::CpuCycles.config()),
    ];
    let mut costs = Vec::new();
    for (name, pmu_type, config) in events {
        // User space only is what every user may count.
        let attr = counting(pmu_type, config, Side::UserOnly);
        let reads = machine.probe.time_reads(&attr, READS);
        let opens = machine.probe.time_opens(&attr, OPENS);
        costs.extend(reads.ok().and_then(|times| cost(format!("read {name}"), times)));
        costs.extend(opens.ok().and_then(|times| cost(format!("open and close {name}"), times)));
    }
    costs.extend(interrupts(machine, privileges));
    costs
}

/// The interrupts of a timer and, where there are hardware counters, of their overflow (PMI).
fn interrupts(machine: &mut Machine, privileges: &Privileges) -> Vec<Cost> {
    // Below the kernel's limit, and far from the rate at which the kernel would lower it.
    let most_hz = machine.setting("perf_event_max_sample_rate").filter(|rate| *rate > 0);
    let interval_ns = most_hz.map_or(0, |rate| 2 * 1_000_000_000 / rate.unsigned_abs());
    let interval_ns = interval_ns.max(TIMER_INTERVAL_NS);
    let events = [
        (
            "timer interrupt (cpu-clock)",
            TYPE_SOFTWARE,
            SoftwareEvent::CpuClock.config(),
            interval_ns,
        ),
        (
            "counter interrupt, PMI (cycles)",
            TYPE_HARDWARE,
            HardwareEvent::CpuCycles.config(),
            interval_ns * CYCLES_PER_NS,
        ),
    ];
    let mut costs = Vec::new();
    for (name, pmu_type, config, period) in events {
        let mut attr = counting(pmu_type, config, usual_side(privileges));
        attr.sample_period_or_freq = period;
        attr.sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
        let times = machine.probe.time_interrupts(&attr, INTERRUPT_ROUNDS);
        costs.extend(times.ok().and_then(|times| cost(name.to_owned(), times)));
    }
    costs
}

fn cost(what: String, times: Vec<u64>) -> Option<Cost> {
    let (min_ns, max_ns) = (*times.iter().min()?, *times.iter().max()?);
    let mut values: Vec<f64> = times.iter().map(|ns| *ns as f64).collect();
    let median_ns = whit_types::median(&mut values)?.round() as u64;
    Some(Cost { what, median_ns, min_ns, max_ns, rounds: times.len() })
}
