//! An event to record: the resolved event, with the additions of the recorder's options.

use whit_events::{Exclude, ResolvedEvent, Sampling};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::attr::pmu_type::{HARDWARE, SOFTWARE, TRACEPOINT};
use whit_perfdata::request::Edge;
use whit_types::ServerSocket;

use crate::branch::BranchFilter;

/// One event to record.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSpec {
    /// The event. Its own `leader` does not count here.
    pub event: ResolvedEvent,
    /// Its own branch records; `None` takes the recording's.
    pub branches: Option<BranchFilter>,
    /// Index of the group's leader among the events (its own for the leader); `None` outside
    /// groups.
    pub leader: Option<usize>,
    /// Its samples have no call chains, even if those of other events have some.
    pub is_without_chains: bool,
    /// A tracepoint's filter expression.
    pub filter: Option<String>,
    /// Only this cgroup's tasks.
    pub cgroup: Option<String>,
    /// Leave the recorder's own threads out, of a tracepoint.
    pub excludes_recorder: bool,
    /// An event of software takes no samples of idle CPUs. Hardware is not asked for that: the PMUs of arm64 refuse it with
    /// `EPERM`, and a CPU that is idle has no cycles.
    pub exclude_idle: bool,
    /// It is opened on whole CPUs although only some threads there are recorded: programs leave out the others.
    pub is_of_cpus: bool,
    /// The kernel changes code of the recorded processes for it (a uprobe).
    pub is_user_probe: bool,
    /// Programs write its samples, of data that threads receive or send.
    pub socket: Option<SocketSpec>,
}

/// The data of a server that is a sample of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// The connections.
    pub socket: ServerSocket,
    /// Received data begins a request, and sent data ends it.
    pub edge: Edge,
}

/// `PERF_TYPE_SOFTWARE`'s events that the recorder itself uses.
pub mod software {
    use whit_types::SoftwareEvent;

    /// `PERF_COUNT_SW_CPU_CLOCK`.
    pub const CPU_CLOCK: u64 = SoftwareEvent::CpuClock.config();
    /// `PERF_COUNT_SW_TASK_CLOCK`.
    pub const TASK_CLOCK: u64 = SoftwareEvent::TaskClock.config();
    /// `PERF_COUNT_SW_CONTEXT_SWITCHES`.
    pub const CONTEXT_SWITCHES: u64 = SoftwareEvent::ContextSwitches.config();
    /// `PERF_COUNT_SW_BPF_OUTPUT`.
    pub const BPF_OUTPUT: u64 = SoftwareEvent::BpfOutput.config();
    /// `PERF_COUNT_SW_DUMMY`.
    pub const DUMMY: u64 = SoftwareEvent::Dummy.config();
}

impl From<ResolvedEvent> for EventSpec {
    /// The event in no group, recorded everywhere, as the options of all events say.
    fn from(event: ResolvedEvent) -> EventSpec {
        EventSpec {
            event,
            branches: None,
            is_without_chains: false,
            leader: None,
            filter: None,
            cgroup: None,
            excludes_recorder: false,
            exclude_idle: false,
            is_of_cpus: false,
            is_user_probe: false,
            socket: None,
        }
    }
}

impl EventSpec {
    /// An event of the kernel's generic kinds, without modifiers (guests left out, as perf does).
    pub fn new(name: &str, pmu_type: u32, config: u64) -> EventSpec {
        ResolvedEvent::new(name, pmu_type, config).into()
    }

    /// The event of data that threads receive or send through a server's sockets.
    pub fn of_socket(name: &str, socket: ServerSocket, edge: Edge) -> EventSpec {
        let mut event = ResolvedEvent::new(name, SOFTWARE, software::BPF_OUTPUT);
        event.name_given = true;
        event.terms.sampling = Some(Sampling::Period(1));
        // Programs write by no event that threads inherit.
        event.terms.inherit = Some(false);
        EventSpec {
            socket: Some(SocketSpec { socket, edge }),
            is_of_cpus: true,
            is_without_chains: true,
            ..event.into()
        }
    }

    /// The event that only carries sideband records: it never samples, so it may leave the
    /// kernel out and needs no right to it.
    pub fn side_band() -> EventSpec {
        let mut event = ResolvedEvent::new("dummy:HG", SOFTWARE, software::DUMMY);
        event.exclude = Exclude { kernel: true, hypervisor: true, ..Exclude::default() };
        event.terms.sampling = Some(Sampling::Period(1));
        event.into()
    }

    /// Name of the event in reports.
    pub fn name(&self) -> &str {
        &self.event.name
    }

    /// Code that the event does not count. Idle CPUs are left out by its own modifier, and by [`Self::exclude_idle`].
    pub fn exclusions(&self) -> AttrFlags {
        let exclude = &self.event.exclude;
        let is_software = self.event.pmu_type == SOFTWARE;
        AttrFlags::default()
            .with(AttrFlags::EXCLUDE_USER, exclude.user)
            .with(AttrFlags::EXCLUDE_KERNEL, exclude.kernel)
            .with(AttrFlags::EXCLUDE_HV, exclude.hypervisor)
            .with(AttrFlags::EXCLUDE_GUEST, exclude.guest)
            .with(AttrFlags::EXCLUDE_HOST, exclude.host)
            .with(AttrFlags::EXCLUDE_IDLE, exclude.idle || (self.exclude_idle && is_software))
    }

    /// Whether this is the generic `cycles` event.
    pub fn is_cycles(&self) -> bool {
        self.event.pmu_type == HARDWARE && self.event.config[0] == 0
    }

    /// Whether this is the `dummy` event.
    pub fn is_dummy(&self) -> bool {
        self.event.pmu_type == SOFTWARE && self.event.config[0] == software::DUMMY
    }

    /// Whether its samples may have call chains.
    pub fn takes_chains(&self) -> bool {
        !self.is_dummy() && !self.is_without_chains
    }

    /// Whether its samples have data that no other field has.
    pub fn has_raw_data(&self) -> bool {
        self.is_tracepoint() || self.socket.is_some()
    }

    /// Whether this is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        self.event.pmu_type == TRACEPOINT
    }

    /// Whether another event leads the group that this one, at `index`, belongs to.
    pub fn is_member(&self, index: usize) -> bool {
        self.leader.is_some_and(|leader| leader != index)
    }
}
