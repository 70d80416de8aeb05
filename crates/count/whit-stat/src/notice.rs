//! Messages to the user while counting: each request that was refused, and the reason.

use std::fmt;

use whit_host::level::Level;
use whit_types::{CpuId, Tid};

use crate::unserved::Unserved;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Notice {
    /// Only user mode may be counted.
    UserModeOnly { events: Vec<String>, paranoid: i64 },
    /// These may not be counted, others may.
    NotPermitted { events: Vec<String>, advice: String },
    /// The PMU cannot leave guests out.
    GuestsIncluded { event: String },
    /// A weak group does not fit onto the PMU.
    GroupBroken { leader: String },
    /// More descriptors were needed.
    OpenFilesRaised { from: Option<u64>, to: Option<u64> },
    /// A thread ended before its events were open.
    ThreadGone { tid: Tid },
    /// A CPU went offline before its events were open.
    CpuGone { cpu: CpuId },
    /// Cgroups are counted by the kernel's events, because BPF is refused.
    BpfRefused { reason: String },
    /// These are counted by the kernel's events, for a reason of their own.
    CountedByKernel { events: Vec<String>, why: Unserved },
    /// BPF was asked for where there is nothing for it to count.
    NothingForBpf,
    /// A CPU went offline while it was counted.
    CpuWentOffline { cpu: CpuId },
    /// A CPU went offline and came back, and nobody looked meanwhile.
    CpuCountsMissing { cpu: CpuId },
    /// A CPU is online again, and counted.
    CpuCameBack { cpu: CpuId },
    /// A group can no longer be read as a whole.
    GroupUnreadable { event: String },
    /// The command ran on without events.
    EventsTakenOff,
    /// Intervals have so many times the length that was asked for, from here on.
    IntervalsStretched { times: u32 },
    /// Events were switched on or off.
    Switched(bool),
    /// A command wants to switch a single event.
    NotSwitchedAlone { event: String },
    /// The events, because a command asked for them.
    EventList { events: Vec<String> },
    /// A command that is none.
    UnknownCommand { line: String },
}

impl Notice {
    /// How loud it is.
    pub fn level(&self) -> Level {
        match self {
            Notice::UserModeOnly { .. }
            | Notice::NotPermitted { .. }
            | Notice::GroupBroken { .. }
            | Notice::BpfRefused { .. }
            | Notice::CountedByKernel { .. }
            | Notice::NothingForBpf
            | Notice::CpuCountsMissing { .. }
            | Notice::GroupUnreadable { .. }
            | Notice::EventsTakenOff
            | Notice::IntervalsStretched { .. }
            | Notice::NotSwitchedAlone { .. }
            | Notice::UnknownCommand { .. } => Level::Warning,
            Notice::Switched(_) | Notice::EventList { .. } => Level::Answer,
            Notice::GuestsIncluded { .. }
            | Notice::OpenFilesRaised { .. }
            | Notice::ThreadGone { .. }
            | Notice::CpuWentOffline { .. }
            | Notice::CpuCameBack { .. }
            | Notice::CpuGone { .. } => Level::Verbose,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::UserModeOnly { events, paranoid } => write!(
                f,
                "kernel mode left out of {}: kernel.perf_event_paranoid is {paranoid} (allow it: \
                 sysctl kernel.perf_event_paranoid=1, or grant cap_perfmon)",
                events.join(", ")
            ),
            Notice::NotPermitted { events, advice } => {
                write!(f, "not counted: {}: {advice}", events.join(", "))
            }
            Notice::GuestsIncluded { event } => {
                write!(f, "'{event}': this PMU cannot leave guests out")
            }
            Notice::GroupBroken { leader } => {
                write!(f, "the group of '{leader}' does not fit onto the PMU and was broken up")
            }
            Notice::OpenFilesRaised { from, to } => {
                let limit = |value: &Option<u64>| {
                    value.map_or_else(|| "unlimited".to_owned(), |value| value.to_string())
                };
                write!(f, "limit of open files raised from {} to {}", limit(from), limit(to))
            }
            Notice::ThreadGone { tid } => write!(f, "thread {} ended before it was counted", tid.0),
            Notice::CpuGone { cpu } => write!(f, "CPU {} went offline and is not counted", cpu.0),
            Notice::BpfRefused { reason } => write!(
                f,
                "{reason}: cgroups are counted by the kernel's cgroup events, which costs more at \
                 each change of cgroup (--bpf-counters=off says that this is meant)"
            ),
            Notice::CountedByKernel { events, why } => write!(
                f,
                "not counted by BPF but by the kernel's cgroup events: {}: {why}",
                events.join(", ")
            ),
            Notice::NothingForBpf => write!(
                f,
                "--bpf-counters is about cgroups (-G, --for-each-cgroup, --all-cgroups), and there \
                 are none for it: the kernel's events count"
            ),
            Notice::CpuWentOffline { cpu } => {
                write!(f, "CPU {} went offline; what it counted stays", cpu.0)
            }
            Notice::CpuCountsMissing { cpu } => write!(
                f,
                "CPU {} was offline between two readings: what it counted after it came back \
                 is missing (with -I, it is missed until the next interval only)",
                cpu.0
            ),
            Notice::CpuCameBack { cpu } => write!(f, "CPU {} is online and counted again", cpu.0),
            Notice::GroupUnreadable { event } => write!(
                f,
                "the kernel no longer reads '{event}' together with its group: what it counts \
                 from here on is missing"
            ),
            Notice::EventsTakenOff => write!(
                f,
                "the kernel took the events off the command, which gained rights when it was \
                 executed (set-user-id, set-group-id, file capabilities): what it did from then on \
                 is not counted; -a counts it, with the right to"
            ),
            Notice::IntervalsStretched { times: 1 } => {
                write!(f, "intervals have the length again that was asked for")
            }
            Notice::IntervalsStretched { times } => write!(
                f,
                "intervals have {times} times the length that was asked for, to cost no more than --max-overhead allows"
            ),
            Notice::Switched(true) => write!(f, "Events enabled"),
            Notice::Switched(false) => write!(f, "Events disabled"),
            Notice::NotSwitchedAlone { event } => write!(
                f,
                "'{event}' is not switched by itself: enable and disable switch all events"
            ),
            Notice::EventList { events } => write!(f, "{}", events.join("\n")),
            Notice::UnknownCommand { line } => write!(
                f,
                "'{line}' is no command: there are enable, disable, evlist, stop and ping"
            ),
        }
    }
}

/// Takes notices as they come.
pub trait Listener {
    /// One notice.
    fn notice(&mut self, notice: Notice);
}

impl<F: FnMut(Notice)> Listener for F {
    fn notice(&mut self, notice: Notice) {
        self(notice);
    }
}
