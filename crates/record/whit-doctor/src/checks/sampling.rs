//! Whether events sample, how precisely, and with which branch records.

use whit_events::{HardwareEvent, PmuTable, SoftwareEvent, TYPE_HARDWARE, TYPE_SOFTWARE};
use whit_perfdata::attr::{Attr, AttrFlags, SampleType};

use crate::checks::{counting, usual_side};
use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges, read_trimmed};
use crate::probe::Target;
use crate::refusal::{Needs, explain, explain_branches};

/// High enough to sample within the few milliseconds of the test.
const FREQUENCY_HZ: u64 = 4000;
/// `PERF_SAMPLE_BRANCH_USER` and `PERF_SAMPLE_BRANCH_ANY`.
const BRANCH_ANY_USER: u64 = 1 | 1 << 3;
/// `PERF_SAMPLE_BRANCH_USER` and `PERF_SAMPLE_BRANCH_CALL_STACK`.
const BRANCH_CALL_STACK_USER: u64 = 1 | 1 << 11;
const MAX_PRECISE: u8 = 3;

pub(super) fn check(
    machine: &mut Machine,
    privileges: &Privileges,
    table: &PmuTable,
) -> Vec<Finding> {
    let cycles = sampling(TYPE_HARDWARE, HardwareEvent::CpuCycles.config(), privileges);
    let clock = sampling(TYPE_SOFTWARE, SoftwareEvent::CpuClock.config(), privileges);
    let mut findings = vec![default_event(machine, privileges, &cycles, &clock)];
    if machine.probe.open(&cycles, Target::ThisThread).is_ok() {
        findings.push(precision(machine, &cycles));
    }
    let entries = branch_entries(machine, table);
    let any = Branches { what: "branch records (-b)", filter: BRANCH_ANY_USER };
    let stack = Branches { what: "--call-graph lbr", filter: BRANCH_CALL_STACK_USER };
    findings.extend(
        [any, stack].map(|kind| kind.check(machine, privileges, &cycles, entries.as_deref())),
    );
    findings
}

fn sampling(pmu_type: u32, config: u64, privileges: &Privileges) -> Attr {
    let mut attr = counting(pmu_type, config, usual_side(privileges));
    attr.flags |= AttrFlags::FREQ;
    attr.sample_period_or_freq = FREQUENCY_HZ;
    attr.sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    attr
}

/// The event that `whit record` samples by default: cycles, or else the clock.
fn default_event(
    machine: &mut Machine,
    privileges: &Privileges,
    cycles: &Attr,
    clock: &Attr,
) -> Finding {
    let finding =
        |status, detail: String| Finding::new(Area::Sampling, "default event", status, detail);
    let why = match machine.probe.sample(cycles) {
        Ok(samples) if samples > 0 => {
            return finding(Status::Ok, format!("cycles samples ({samples} samples in the test)"));
        }
        Ok(_) => "cycles opens but never samples".to_owned(),
        Err(error) => {
            format!("cycles does not sample: {}", explain(error, Needs::OwnUser, privileges).detail)
        }
    };
    match machine.probe.sample(clock) {
        Ok(samples) if samples > 0 => finding(
            Status::Degraded,
            format!("cpu-clock, a timer: {why} ({samples} samples in the test)"),
        ),
        Ok(_) => finding(
            Status::Degraded,
            format!("{why}; cpu-clock opens, but took no sample in the test"),
        ),
        Err(error) => {
            let refusal = explain(error, Needs::OwnUser, privileges);
            finding(refusal.status, format!("{why}; nor does cpu-clock: {}", refusal.detail))
                .with_remedy(refusal.remedy)
        }
    }
}

fn precision(machine: &mut Machine, cycles: &Attr) -> Finding {
    let what = "precise sampling (cycles:ppp)";
    let opens = |level: &u8| {
        let mut attr = cycles.clone();
        attr.set_precise_ip(*level);
        machine.probe.open(&attr, Target::ThisThread).is_ok()
    };
    match (1..=MAX_PRECISE).rev().find(opens) {
        Some(level) => {
            Finding::new(Area::Sampling, what, Status::Ok, format!("up to precise_ip {level}"))
        }
        None => Finding::new(Area::Sampling, what, Status::Absent, "sampled addresses have skid"),
    }
}

fn branch_entries(machine: &Machine, table: &PmuTable) -> Option<String> {
    let pmu = table.core_pmus().next()?;
    let path = machine.sys("bus/event_source/devices").join(&pmu.name).join("caps/branches");
    read_trimmed(&path).ok().filter(|entries| entries != "0")
}

struct Branches {
    what: &'static str,
    filter: u64,
}

impl Branches {
    fn check(
        &self,
        machine: &mut Machine,
        privileges: &Privileges,
        cycles: &Attr,
        entries: Option<&str>,
    ) -> Finding {
        let mut attr = cycles.clone();
        attr.sample_type |= SampleType::BRANCH_STACK;
        attr.branch_sample_type = self.filter;
        match machine.probe.open(&attr, Target::ThisThread) {
            Ok(()) => {
                let detail = entries.map_or("recorded".to_owned(), |n| format!("{n} entries each"));
                Finding::new(Area::Sampling, self.what, Status::Ok, detail)
            }
            Err(error) => {
                let refusal = explain_branches(error, privileges);
                Finding::new(Area::Sampling, self.what, refusal.status, refusal.detail)
                    .with_remedy(refusal.remedy)
            }
        }
    }
}
