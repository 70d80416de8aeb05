//! The events of a recording, and the fields and sideband records that the kernel writes for them.
//!
//! A part of the recorder's plan: the recorder makes attributes of it, and the engines read and adapt it.

use whit_events::{CallGraph as OwnCallGraph, Sampling};
use whit_host::cgroup::MountedHierarchy;
use whit_host::target::Target;
use whit_sys::clock::ClockId;

use crate::branch::BranchFilter;
use crate::event::EventSpec;
use crate::settings::{CallGraph, DEFAULT_STACK_DUMP_BYTES, ExtraFields};

/// The tracepoint of wake-ups.
pub const WAKING: &str = "sched:sched_waking";

/// The events, whom they count, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPlan {
    /// The events, in order.
    pub specs: Vec<EventSpec>,
    /// The recorded command, threads or CPUs.
    pub target: Target,
    /// How often events are sampled that have no rate of their own.
    pub rate: RatePlan,
    /// Call chains.
    pub chains: ChainPlan,
    /// Further fields of samples.
    pub fields: FieldPlan,
    /// Counts in place of samples, or beside them.
    pub counts: CountPlan,
    /// Records of the sideband: mappings, names, forks and exits.
    pub tracking: TrackingPlan,
    /// The cgroups that the engine reads, beside those of the kernel.
    pub read_cgroups: Option<ReadCgroups>,
    /// When events count.
    pub begin: BeginPlan,
    /// Children inherit the events.
    pub inherit: bool,
    /// One ring per thread; the thread may run on any CPU.
    pub per_thread: bool,
    /// The kernel overwrites the oldest samples.
    pub overwrite: bool,
    /// Clock of the time stamps; `None` is the kernel's own.
    pub clock: Option<ClockId>,
    /// Leave out events that this machine does not have.
    pub skip_unsupported: bool,
}

/// Cgroups that an engine reads for threads that are in the root of the hierarchy of perf events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadCgroups {
    /// Their hierarchy.
    pub mounted: MountedHierarchy,
    /// Samples have their numbers with this bit.
    pub mark: u64,
}

/// How often events are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RatePlan {
    /// The user's rate; `None` is 4000 Hz, and one for tracepoints.
    pub by_user: Option<Sampling>,
    /// Refuse instead of lowering a frequency that is above the kernel's limit.
    pub is_strict: bool,
    /// The periods of clocks stay as they are.
    pub keeps_periods: bool,
}

/// Call chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainPlan {
    /// How they are recorded.
    pub call_graph: CallGraph,
    /// The kernel takes the user's part when the thread returns to user mode, where it can: with
    /// frame pointers, since Linux 6.19.
    pub is_deferred: bool,
    /// Leave the user's part out.
    pub kernel_only: bool,
    /// Leave the kernel's part out.
    pub user_only: bool,
    /// Frames; `None` leaves it to the kernel.
    pub max_frames: Option<u16>,
}

/// Fields of samples beyond those that everything needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldPlan {
    /// Branch records.
    pub branches: Option<BranchFilter>,
    /// Registers of user mode, as a mask; 0 for those that the call graph needs.
    pub user_registers: u64,
    /// Registers at the interrupt, as a mask.
    pub interrupt_registers: u64,
    /// Addresses of data and data mappings.
    pub data_addresses: bool,
    /// Samples say their period.
    pub periods: bool,
    /// Samples say their CPU.
    pub cpus: bool,
    /// Raw bytes.
    pub raw: bool,
    /// Fields that only an option asks for.
    pub extra: ExtraFields,
}

/// Counts in place of samples, or beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountPlan {
    /// No samples, only counts and sideband.
    pub alone: bool,
    /// Counts of each thread, when it ends.
    pub by_thread: bool,
    /// How long events of groups that are read (`:S`) were enabled and running.
    pub running_time: bool,
}

/// Records beside samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackingPlan {
    /// Context switches.
    pub switches: bool,
    /// Switches that the BPF engine emits are written packed ([`whit_perfdata::packed`]).
    pub packs_switches: bool,
    /// Room for waits as samples ([`whit_perfdata::off_cpu`]), which are made of the switches when recording ends.
    pub off_cpu: bool,
    /// Off-CPU time of a thread for each sample of a wait by the BPF engine, in nanoseconds; 0 samples none.
    pub off_cpu_period_ns: u64,
    /// The same where a budget leaves no room for every context switch; 0 where there is no budget.
    pub fallback_off_cpu_period_ns: u64,
    /// Wake-ups.
    pub wakeups: bool,
    /// Cgroups that are made, and the cgroup of every sample.
    pub cgroups: bool,
    /// Namespaces of processes.
    pub namespaces: bool,
    /// BPF programs and other kernel symbols that come and go.
    pub bpf_events: bool,
    /// The kernel writes build ids into mapping records (`attr.build_id`). Off unless asked for:
    /// up to Linux 6.18 at least, the kernel then marks the same records of *other* recorders that
    /// run at the time as if they held a build id, which stock perf does not survive.
    pub kernel_build_ids: bool,
}

/// When events count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginPlan {
    /// At once; with a command, at its exec.
    pub at_once: bool,
    /// Other programs may switch events on and off.
    pub is_controlled: bool,
}

impl EventPlan {
    /// Every hit of these events in a command, with every default.
    pub fn for_command(specs: Vec<EventSpec>) -> EventPlan {
        EventPlan {
            specs,
            target: Target::Command,
            rate: RatePlan::default(),
            chains: ChainPlan::default(),
            fields: FieldPlan::default(),
            counts: CountPlan::default(),
            tracking: TrackingPlan { bpf_events: true, ..TrackingPlan::default() },
            read_cgroups: None,
            begin: BeginPlan { at_once: true, is_controlled: false },
            inherit: true,
            per_thread: false,
            overwrite: false,
            clock: None,
            skip_unsupported: false,
        }
    }

    /// How an event gets its call chains.
    pub fn call_graph_of(&self, spec: &EventSpec) -> CallGraph {
        if spec.is_without_chains {
            return CallGraph::None;
        }
        let terms = &spec.event.terms;
        let of_recording = self.chains.call_graph;
        let call_graph = terms.call_graph.map_or(of_recording, |own| match own {
            OwnCallGraph::None => CallGraph::None,
            OwnCallGraph::FramePointer => CallGraph::FramePointer,
            OwnCallGraph::Lbr => CallGraph::Lbr,
            OwnCallGraph::Dwarf => CallGraph::Dwarf { stack_dump_bytes: DEFAULT_STACK_DUMP_BYTES },
        });
        match (call_graph, terms.stack_size_bytes) {
            (CallGraph::Dwarf { .. }, Some(stack_dump_bytes)) => {
                CallGraph::Dwarf { stack_dump_bytes }
            }
            (call_graph, _) => call_graph,
        }
    }
}
