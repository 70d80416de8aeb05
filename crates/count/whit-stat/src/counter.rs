//! One counter: an event, in a cgroup or everywhere.

use std::fmt;
use std::sync::Arc;

use whit_events::{ResolvedEvent, ResolvedGroup, SoftwareEvent, TYPE_SOFTWARE, TYPE_TRACEPOINT};
use whit_host::advice::meaning;
use whit_sys::Errno;
use whit_types::OutsideText;

/// An event to count.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The event. Its own `leader` does not count here.
    pub event: ResolvedEvent,
    /// Index of the group's leader among the counters (its own for the leader); `None` outside
    /// groups.
    pub leader: Option<usize>,
    /// Only tasks of this cgroup and of those below it; as the user wrote it.
    pub cgroup: Option<OutsideText<Arc<str>>>,
    /// A tracepoint's filter expression.
    pub filter: Option<String>,
    /// Why there are no counts; `None` where the event is open.
    pub absence: Option<Absence>,
}

impl Counter {
    /// An event of no group, counted everywhere.
    pub fn new(event: ResolvedEvent) -> Counter {
        Counter { event, leader: None, cgroup: None, filter: None, absence: None }
    }

    /// Whether it is `cpu-clock` or `task-clock`.
    pub fn is_clock(&self) -> bool {
        self.is_software(&[SoftwareEvent::CpuClock, SoftwareEvent::TaskClock])
    }

    /// Whether it is `context-switches` or `cgroup-switches`.
    pub fn is_of_switches(&self) -> bool {
        self.is_software(&[SoftwareEvent::ContextSwitches, SoftwareEvent::CgroupSwitches])
    }

    /// Whether the kernel's software counts it: it never waits for a counter.
    pub fn is_counted_by_kernel(&self) -> bool {
        let is_software = [TYPE_SOFTWARE, TYPE_TRACEPOINT].contains(&self.event.pmu_type);
        is_software && self.event.tool.is_none()
    }

    fn is_software(&self, events: &[SoftwareEvent]) -> bool {
        self.event.pmu_type == TYPE_SOFTWARE
            && self.event.tool.is_none()
            && events.iter().any(|event| event.config() == self.event.config[0])
    }
}

/// A counter for each event of these groups, in order.
pub fn from_groups(groups: Vec<ResolvedGroup>) -> Vec<Counter> {
    let of_group = |group: ResolvedGroup| {
        let is_grouped = group.explicit && group.events.len() > 1;
        group.events.into_iter().map(move |event| {
            let leader = is_grouped.then_some(event.leader);
            Counter { leader, ..Counter::new(event) }
        })
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// Why a counter has no counts at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// The kernel has no such event on this machine.
    NotSupported(Errno),
    /// The PMU cannot count it together with the events before it in its group.
    DoesNotFitGroup(Errno),
    /// It counts for whole CPUs, and threads were asked for.
    NeedsCpus,
    /// Its PMU counts on none of the CPUs that were asked for.
    OnOtherCpus,
    /// All counters of its kind are taken.
    NoCounterLeft(Errno),
    /// The kernel does not allow it to this user.
    NotPermitted(Errno),
    /// Measured by the tool, which has no command to measure it of.
    NoCommand,
}

impl Absence {
    /// Whether it is the machine that lacks something; else it could be counted another way.
    pub fn is_unsupported(self) -> bool {
        matches!(self, Absence::NotSupported(_) | Absence::DoesNotFitGroup(_) | Absence::NeedsCpus)
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NotSupported(errno @ Errno::INVAL) => write!(
                f,
                "{}: its PMU does not take this event, or not with these modifiers",
                meaning(*errno)
            ),
            Absence::NotSupported(errno) => write!(
                f,
                "{}: this machine has no such event (virtual machines often show no hardware \
                 counters; see whit doctor)",
                meaning(*errno)
            ),
            Absence::DoesNotFitGroup(errno) => write!(
                f,
                "{}: does not fit onto the PMU together with the events before it in its group \
                 (count it outside of the group, or make the group weak: {{..}}:W)",
                meaning(*errno)
            ),
            Absence::NeedsCpus => {
                write!(f, "counts for whole CPUs, never for a task: add -a or -C")
            }
            Absence::OnOtherCpus => write!(f, "its PMU counts on none of the CPUs asked for"),
            Absence::NoCounterLeft(errno) => {
                write!(f, "{}: another profiler may hold it", meaning(*errno))
            }
            Absence::NotPermitted(errno) => write!(f, "{}", meaning(*errno)),
            Absence::NoCommand => write!(f, "there is no command to measure it of"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use whit_events::{PmuTable, TracefsIds, parse, resolve};

    /// Counters of an event list, resolved without a machine.
    pub(crate) fn counters(text: &str) -> Vec<Counter> {
        let list = parse(text).unwrap();
        let mut tracepoints = TracefsIds::new("/nonexistent");
        let groups = resolve(&list, &PmuTable::default(), &mut tracepoints).unwrap();
        from_groups(groups)
    }

    #[test]
    fn clocks_are_distinguished_from_tool_events() {
        let is_clock: Vec<_> = counters("task-clock:u,cpu-clock,cycles,duration_time,cs")
            .iter()
            .map(Counter::is_clock)
            .collect();
        assert_eq!(is_clock, [true, true, false, false, false]);
        let switches: Vec<_> = counters("cs,cgroup-switches:u,migrations,cycles")
            .iter()
            .map(Counter::is_of_switches)
            .collect();
        assert_eq!(switches, [true, true, false, false]);
    }

    #[test]
    fn leaders_are_counted_through_all_groups() {
        let leaders: Vec<_> =
            counters("cs,{faults,cycles},{cs},cs").iter().map(|c| c.leader).collect();
        assert_eq!(leaders, [None, Some(1), Some(1), None, None]);
    }
}
