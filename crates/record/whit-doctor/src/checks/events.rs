//! Which generic events really count: each is opened, given work, and read.

use whit_events::{HardwareEvent, SoftwareEvent, TYPE_HARDWARE, TYPE_SOFTWARE};
use whit_sys::Errno;

use crate::checks::{Side, counting, usual_side};
use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges};
use crate::probe::Count;
use crate::refusal::{Needs, allow, explain};

pub(super) fn check(machine: &mut Machine, privileges: &Privileges) -> Vec<Finding> {
    let hardware = HardwareEvent::ALL.iter().map(|event| Candidate {
        name: event.name(),
        pmu_type: TYPE_HARDWARE,
        config: event.config(),
        expected: Expected::Counts,
    });
    let software = SoftwareEvent::ALL.iter().map(|event| Candidate {
        name: event.name(),
        pmu_type: TYPE_SOFTWARE,
        config: event.config(),
        expected: expected(*event),
    });
    hardware.chain(software).map(|candidate| candidate.check(machine, privileges)).collect()
}

/// The count to expect of an event after the work.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A count above zero.
    Counts,
    /// Something, all of it while the kernel runs.
    CountsInKernel,
    /// Perhaps nothing: the work does not cause it, or nothing can.
    Perhaps,
}

fn expected(event: SoftwareEvent) -> Expected {
    match event {
        SoftwareEvent::CpuClock
        | SoftwareEvent::TaskClock
        | SoftwareEvent::PageFaults
        | SoftwareEvent::MinorFaults => Expected::Counts,
        SoftwareEvent::ContextSwitches => Expected::CountsInKernel,
        SoftwareEvent::CpuMigrations
        | SoftwareEvent::MajorFaults
        | SoftwareEvent::AlignmentFaults
        | SoftwareEvent::EmulationFaults
        | SoftwareEvent::Dummy
        | SoftwareEvent::BpfOutput
        | SoftwareEvent::CgroupSwitches => Expected::Perhaps,
    }
}

struct Candidate {
    name: &'static str,
    pmu_type: u32,
    config: u64,
    expected: Expected,
}

impl Candidate {
    fn check(&self, machine: &mut Machine, privileges: &Privileges) -> Finding {
        let mut side = Side::Both;
        let mut outcome = self.count(machine, side);
        if matches!(outcome, Err(Errno::ACCESS | Errno::PERM))
            && usual_side(privileges) == Side::UserOnly
        {
            side = Side::UserOnly;
            outcome = self.count(machine, side);
        }
        match outcome {
            Ok(count) => self.judge(count, side, machine, privileges),
            Err(error) => {
                let refusal = explain(error, Needs::OwnUser, privileges);
                self.finding(refusal.status, refusal.detail).with_remedy(refusal.remedy)
            }
        }
    }

    fn count(&self, machine: &mut Machine, side: Side) -> Result<Count, Errno> {
        machine.probe.count(&counting(self.pmu_type, self.config, side))
    }

    fn finding(&self, status: Status, detail: impl Into<String>) -> Finding {
        Finding::new(Area::Events, self.name, status, detail)
    }

    fn judge(
        &self,
        count: Count,
        side: Side,
        machine: &Machine,
        privileges: &Privileges,
    ) -> Finding {
        let Count { value, enabled_ns, running_ns } = count;
        if enabled_ns > 0 && running_ns == 0 {
            let watchdog = machine.setting("nmi_watchdog").is_some_and(|on| on != 0);
            let remedy = watchdog.then(|| "sudo sysctl kernel.nmi_watchdog=0".to_owned());
            let detail = "opens, but is never put on the PMU: its counters are taken";
            return self.finding(Status::Degraded, detail).with_remedy(remedy);
        }
        let user_only = side == Side::UserOnly;
        if value == 0 && user_only && self.expected == Expected::CountsInKernel {
            let detail =
                "opens for user space only, where it counts nothing: it happens in the kernel";
            return self
                .finding(Status::Degraded, detail)
                .with_remedy(allow(Needs::Kernel, privileges));
        }
        if value == 0 && self.expected == Expected::Perhaps {
            return self.finding(Status::Ok, "opens; nothing to count in the test");
        }
        if value == 0 {
            let detail = "opens, but does not count: nothing came of work that causes it";
            return self.finding(Status::Degraded, detail);
        }
        let share = running_ns as f64 / enabled_ns.max(1) as f64;
        let shared = if share < 0.99 {
            format!(", {:.0}% of the time", share * 100.0)
        } else {
            String::new()
        };
        if user_only {
            let detail = format!("counts in user space only ({value} in the test{shared})");
            return self
                .finding(Status::Degraded, detail)
                .with_remedy(allow(Needs::Kernel, privileges));
        }
        self.finding(Status::Ok, format!("counts ({value} in the test{shared})"))
    }
}
