//! The result of resolving: all fields of `perf_event_attr` that depend on the event.

use whit_types::{Avma, CpuId, SoftwareEvent, ToolEvent};

use crate::ast::{Event, EventKind};
use crate::format::CONFIG_WORDS;
use crate::modifiers::Exclude;
use crate::pmu::{Pmu, TYPE_SOFTWARE, TYPE_TRACEPOINT};
use crate::term::CallGraph;

/// Clocks count nanoseconds.
const MS_PER_NS: f64 = 1e-6;

/// Events that the kernel is to schedule together; a lone event is a group of one.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedGroup {
    /// The group's name, where it was given one.
    pub name: Option<String>,
    /// Whether it was written as a group.
    pub explicit: bool,
    /// Whether the written group spanned PMUs and this is one part of it.
    pub split: bool,
    /// The events, leader first.
    pub events: Vec<ResolvedEvent>,
}

impl ResolvedGroup {
    pub(super) fn lone(event: ResolvedEvent) -> ResolvedGroup {
        ResolvedGroup { name: None, explicit: false, split: false, events: vec![event] }
    }
}

/// One event, ready to be opened.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedEvent {
    /// As perf shows it; see the crate's documentation.
    pub name: String,
    /// Whether the name came from a `name=` term, and so must not be touched.
    pub name_given: bool,
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// `perf_event_attr.type`
    pub pmu_type: u32,
    /// `perf_event_attr.config`, `.config1`, `.config2`, `.config3`
    pub config: [u64; CONFIG_WORDS],
    /// Set for breakpoints, which then use no `config` word.
    pub breakpoint: Option<BreakpointAttr>,
    /// `perf_event_attr.exclude_*`
    pub exclude: Exclude,
    /// `perf_event_attr.precise_ip`
    pub precise_ip: PreciseIp,
    /// `perf_event_attr.pinned`
    pub pinned: bool,
    /// `perf_event_attr.exclusive`
    pub exclusive: bool,
    /// Whether the group may be broken up if it cannot be opened.
    pub weak_group: bool,
    /// Whether counters may be shared with others through BPF. The counts are the same.
    pub bpf: bool,
    /// Whether samples of the leader carry the counts of the group (`PERF_SAMPLE_READ`).
    pub sample_read: bool,
    /// The sampling period that the kind of event implies where neither the event nor the
    /// command line says otherwise: 1 for tracepoints and breakpoints.
    pub default_period: Option<u64>,
    /// Requests of the event's own terms, over the command line's options.
    pub terms: EventTerms,
    /// CPUs on which it has to be opened; `None` where any will do.
    pub cpus: Option<Vec<CpuId>>,
    /// Whether it counts for CPUs only, never for a task.
    pub uncore: bool,
    /// Factor of a count for display.
    pub scale: f64,
    /// Unit of the scaled count; may be empty.
    pub unit: String,
    /// Whether it counts once for a whole package.
    pub per_package: bool,
    /// Whether a reading stands for itself, so that readings are not subtracted.
    pub snapshot: bool,
    /// Whether it is one of those that a PMU's name without its instance, a pattern or a bare
    /// name stands for: their counts are added up under the one name unless the user wants them
    /// apart.
    pub auto_merge: bool,
    /// Which of the list's written events it comes from, counted through groups. Those that one
    /// written event stands for share it.
    pub written: usize,
    /// Highest `precise_ip` of the PMU, where it says so.
    pub max_precise: Option<u8>,
    /// Set for values that the tool measures itself; the kernel's event is then a dummy.
    pub tool: Option<ToolEvent>,
    /// Index of the group's leader among all resolved events, counted through the groups.
    pub leader: usize,
}

/// `bp_*` of `perf_event_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BreakpointAttr {
    /// `bp_addr`
    pub address: Avma,
    /// `bp_len`
    pub len: u64,
    /// `bp_type`: `HW_BREAKPOINT_R`, `_W`, `_X`
    pub bp_type: u32,
}

/// How exact sampled addresses must be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PreciseIp {
    /// `perf_event_attr.precise_ip`, 0 to 3.
    Level(u8),
    /// The highest level with which the event opens.
    Max,
}

/// When a sample is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sampling {
    /// Every so many events.
    Period(u64),
    /// So many times a second.
    FrequencyHz(u64),
}

/// Requests of an event's own terms. `None` leaves the command line's option in force.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventTerms {
    /// `period=` or `freq=`, whichever came last.
    pub sampling: Option<Sampling>,
    /// `call-graph=`: overrides the session's call chains for this event.
    pub call_graph: Option<CallGraph>,
    /// `stack-size=`, rounded up to a size that the kernel takes.
    pub stack_size_bytes: Option<u32>,
    /// `max-stack=`, in frames.
    pub max_stack: Option<u16>,
    /// `time`, `no-time`
    pub time: Option<bool>,
    /// `inherit`, `no-inherit`
    pub inherit: Option<bool>,
    /// `overwrite`, `no-overwrite`
    pub overwrite: Option<bool>,
    /// `percore`
    pub per_core: bool,
    /// `nr=`
    pub max_events: Option<u64>,
    /// `branch_type=`: a filter of branch records, as written.
    pub branch_type: Option<String>,
    /// `aux-output`: the event writes its data into the AUX area.
    pub aux_output: bool,
    /// `aux-action=`: `pause`, `resume` or `start-paused`, as written.
    pub aux_action: Option<String>,
    /// `aux-sample-size=`: bytes of AUX data in each sample.
    pub aux_sample_size_bytes: Option<u32>,
    /// `metric-id=`: the metric that asked for this event.
    pub metric_id: Option<String>,
    /// `@setting`, in order.
    pub driver_config: Vec<String>,
}

impl ResolvedEvent {
    /// An event that no text names: of a kind that every machine has, without terms or modifiers.
    pub fn new(name: &str, pmu_type: u32, config: u64) -> ResolvedEvent {
        ResolvedEvent {
            name: name.to_owned(),
            name_given: false,
            pmu: String::new(),
            pmu_type,
            config: [config, 0, 0, 0],
            breakpoint: None,
            exclude: Exclude::WITHOUT_MODIFIERS,
            precise_ip: PreciseIp::Level(0),
            pinned: false,
            exclusive: false,
            weak_group: false,
            bpf: false,
            sample_read: false,
            default_period: None,
            terms: EventTerms::default(),
            cpus: None,
            uncore: false,
            scale: 1.0,
            unit: String::new(),
            per_package: false,
            snapshot: false,
            auto_merge: false,
            written: 0,
            max_precise: None,
            tool: None,
            leader: 0,
        }
    }

    /// Before its kind and its modifiers are known.
    pub(super) fn written(event: &Event, pmu_type: u32) -> ResolvedEvent {
        let exclude = Exclude::default();
        ResolvedEvent { exclude, ..ResolvedEvent::new(&shown_name(event), pmu_type, 0) }
    }

    /// `config`, `config1`, `config2`, `config3` and `bp_type` of `perf_event_attr`.
    pub fn attr_words(&self) -> ([u64; CONFIG_WORDS], u32) {
        let [config, config1, config2, config3] = self.config;
        match self.breakpoint {
            Some(BreakpointAttr { address, len, bp_type }) => {
                ([config, address.0, len, config3], bp_type)
            }
            None => ([config, config1, config2, config3], 0),
        }
    }

    /// `system:event` of a tracepoint; `None` for one that has another name.
    pub fn tracepoint(&self) -> Option<&str> {
        let is_named_so = self.pmu_type == TYPE_TRACEPOINT && !self.name_given;
        // [`Self::restrict_to_user`] may have written a modifier behind it.
        let end = self.name.match_indices(':').nth(1).map_or(self.name.len(), |(at, _)| at);
        is_named_so.then(|| &self.name[..end])
    }

    pub(super) fn use_pmu(&mut self, pmu: &Pmu) {
        self.pmu = pmu.name.clone();
        self.cpus = pmu.cpus.clone();
        self.uncore = pmu.uncore;
        self.max_precise = pmu.max_precise;
    }

    /// A clock is shown in milliseconds, as perf shows it (`evsel__new_idx` of 6.1), where it was
    /// named as a clock; through `software/…/` it stays in nanoseconds.
    pub(super) fn scale_clock(&mut self) {
        const CLOCKS: [u64; 2] =
            [SoftwareEvent::CpuClock.config(), SoftwareEvent::TaskClock.config()];
        if self.pmu_type == TYPE_SOFTWARE && self.tool.is_none() && CLOCKS.contains(&self.config[0])
        {
            self.scale = MS_PER_NS;
            self.unit = "msec".to_owned();
        }
    }

    /// Whether the kernel refuses the event to an unprivileged user for counting its own side,
    /// where [`Self::restrict_to_user`] helps.
    pub fn counts_kernel(&self) -> bool {
        !self.exclude.kernel
    }

    /// Counts user space only and says so in the name, as perf does when an unprivileged user is
    /// refused the kernel (`evsel__fallback`): `cycles` becomes `cycles:u`, `cpu/event=1/`
    /// becomes `cpu/event=1/u`. A name given with `name=` stays as it is.
    pub fn restrict_to_user(&mut self) {
        self.exclude.kernel = true;
        self.exclude.hypervisor = true;
        if self.name_given {
            return;
        }
        let separated = self.pmu_type != TYPE_TRACEPOINT && self.name.contains(['/', ':']);
        self.name.push_str(if separated { "u" } else { ":u" });
    }
}

/// The name unless a `name=` term says otherwise.
fn shown_name(event: &Event) -> String {
    let written = if event.typed.is_empty() { event.to_string() } else { event.typed.clone() };
    match event.kind {
        EventKind::Cache(_) => match written.split_once(['/', ':']) {
            Some((word, _)) => word.to_owned(),
            None => written,
        },
        _ => written,
    }
}

/// An event on the way to being resolved.
pub(super) struct Draft {
    pub(super) event: ResolvedEvent,
    /// Whether `G` or `H` was given: later modifiers then leave guest and host alone.
    pub(super) guest_host_chosen: bool,
}

impl Draft {
    pub(super) fn new(event: &Event, pmu_type: u32) -> Draft {
        Draft { event: ResolvedEvent::written(event, pmu_type), guest_host_chosen: false }
    }
}
