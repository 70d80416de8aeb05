//! An event to record, as the event language resolved it and as the user's options left it.

use whit_perfdata::attr::pmu_type::{HARDWARE, SOFTWARE, TRACEPOINT};
use whit_types::CpuId;

use crate::branch::BranchFilter;
use crate::settings::CallGraph;

/// How often an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Once every so many events.
    Period(u64),
    /// So many times a second; the kernel adjusts the period.
    FrequencyHz(u64),
}

/// How exact the sampled address must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `precise_ip`, 0 to 3.
    Level(u8),
    /// As exact as the PMU can: from 3 down to the first level that it takes.
    Max,
}

/// Modes that the event does not count: the `exclude_*` bits of `perf_event_attr`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Exclude {
    pub user: bool,
    pub kernel: bool,
    pub hypervisor: bool,
    pub guest: bool,
    pub host: bool,
    pub idle: bool,
}

/// One event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Name of the event in reports.
    pub name: String,
    /// `type` of `perf_event_attr`.
    pub pmu_type: u32,
    /// Event of that PMU.
    pub config: u64,
    /// First extension, or a breakpoint's address.
    pub config1: u64,
    /// Second extension, or a breakpoint's length.
    pub config2: u64,
    /// Third extension.
    pub config3: u64,
    /// A breakpoint's kind of access.
    pub bp_type: u32,
    /// Modes that the event does not count.
    pub exclude: Exclude,
    /// How exact the address must be.
    pub precision: Precision,
    /// The event's own rate; `None` takes the recording's.
    pub rate: Option<Rate>,
    /// The period where neither the event nor the user says otherwise.
    pub default_period: Option<u64>,
    /// The event's own call chains; `None` takes the recording's.
    pub call_graph: Option<CallGraph>,
    /// The event's own size of stack dumps, where they are taken.
    pub stack_dump_bytes: Option<u32>,
    /// Frames of a call chain; `None` takes the recording's choice.
    pub max_stack: Option<u16>,
    /// The event's own branch records; `None` takes the recording's.
    pub branches: Option<BranchFilter>,
    /// Whether its oldest samples are overwritten; `None` takes the recording's choice.
    pub overwrite: Option<bool>,
    /// Whether children inherit this event; `None` takes the recording's choice.
    pub inherit: Option<bool>,
    /// The user chose the name: it stays even if the event counts less.
    pub is_name_given: bool,
    /// Must always be on the PMU.
    pub is_pinned: bool,
    /// Needs the PMU for itself.
    pub is_exclusive: bool,
    /// Samples of the leader carry the counts of the whole group.
    pub reads_group: bool,
    /// The group may be broken up where it does not fit.
    pub is_weak: bool,
    /// Index of the group's leader among the events (its own for the leader); `None` outside
    /// groups.
    pub leader: Option<usize>,
    /// The CPUs that this PMU counts on, where they are fewer than all.
    pub cpus: Option<Vec<CpuId>>,
    /// `system:event` of a tracepoint; `None` for one that goes by another name.
    pub tracepoint: Option<String>,
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

impl Exclude {
    /// The equivalent modifiers: `u`, `k`, `h` for the counted modes; empty if all modes are
    /// excluded.
    pub fn modifiers(&self) -> String {
        let modes = [(self.user, 'u'), (self.kernel, 'k'), (self.hypervisor, 'h')];
        if modes.iter().all(|(out, _)| !out) {
            return String::new();
        }
        modes.iter().filter(|(out, _)| !out).map(|(_, letter)| letter).collect()
    }
}

impl EventSpec {
    /// An event of the kernel's generic kinds, without modifiers (guests left out, as perf does).
    pub fn new(name: &str, pmu_type: u32, config: u64) -> EventSpec {
        EventSpec {
            name: name.to_owned(),
            pmu_type,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            bp_type: 0,
            exclude: Exclude { guest: true, ..Exclude::default() },
            precision: Precision::Level(0),
            rate: None,
            default_period: None,
            call_graph: None,
            stack_dump_bytes: None,
            max_stack: None,
            branches: None,
            overwrite: None,
            inherit: None,
            is_name_given: false,
            is_pinned: false,
            is_exclusive: false,
            reads_group: false,
            is_weak: false,
            leader: None,
            cpus: None,
            tracepoint: None,
            filter: None,
            cgroup: None,
            excludes_recorder: false,
            exclude_idle: false,
            is_of_cpus: false,
        }
    }

    /// The event that only carries sideband records: it never samples, so it may leave the
    /// kernel out and needs no right to it.
    pub fn side_band() -> EventSpec {
        let exclude = Exclude { kernel: true, hypervisor: true, ..Exclude::default() };
        EventSpec {
            exclude,
            rate: Some(Rate::Period(1)),
            ..EventSpec::new("dummy:HG", SOFTWARE, software::DUMMY)
        }
    }

    /// Whether idle CPUs are left out: by the event's own modifier, or as events of software leave them out.
    pub fn excludes_idle(&self) -> bool {
        self.exclude.idle || (self.exclude_idle && self.pmu_type == SOFTWARE)
    }

    /// Whether this is the generic `cycles` event.
    pub fn is_cycles(&self) -> bool {
        self.pmu_type == HARDWARE && self.config == 0
    }

    /// Whether this is the `dummy` event.
    pub fn is_dummy(&self) -> bool {
        self.pmu_type == SOFTWARE && self.config == software::DUMMY
    }

    /// Whether this is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        self.pmu_type == TRACEPOINT
    }

    /// Whether another event leads the group that this one, at `index`, belongs to.
    pub fn is_member(&self, index: usize) -> bool {
        self.leader.is_some_and(|leader| leader != index)
    }
}
