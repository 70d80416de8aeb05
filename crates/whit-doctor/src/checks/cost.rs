//! What measuring costs here.

use whit_events::{HardwareEvent, SoftwareEvent, TYPE_HARDWARE, TYPE_SOFTWARE};

use crate::checks::{Side, counting};
use crate::finding::Cost;
use crate::machine::Machine;

const READS: usize = 200;
const OPENS: usize = 15;

/// Times readings and openings of one software and one hardware event; what does not open costs
/// nothing and is left out.
pub(super) fn measure(machine: &mut Machine) -> Vec<Cost> {
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
    costs
}

fn cost(what: String, mut times: Vec<u64>) -> Option<Cost> {
    times.sort_unstable();
    let (min_ns, max_ns) = (*times.first()?, *times.last()?);
    Some(Cost { what, median_ns: times[times.len() / 2], min_ns, max_ns, rounds: times.len() })
}
