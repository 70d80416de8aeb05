//! Events turned into attributes, with perf's choices.
//!
//! The rules are those of `evsel__config` and `evlist__config` in `tools/perf/util`. whit differs
//! in three points, for exact losses and complete process models:
//! - Every event carries the time, and all agree on the CPU field. So one look finds the time of any
//!   record in a ring.
//! - A sideband event runs while existing processes are synthesized.
//! - Rings wake the reader when a quarter is full, not half.
//!
//! Where samples are overwritten, or events are switched off meanwhile, the sideband has an event
//! of its own that is neither overwritten nor switched off.

use whit_engine_api::branch::BranchFilter;
use whit_engine_api::event_plan::{EventPlan, RatePlan};
use whit_engine_api::open_event::{ConfiguredEvent, watermark};
use whit_engine_api::{Engine, PrivateEvent};
use whit_events::{PreciseIp, Sampling};
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, SampleType};
use whit_types::Arch;

use crate::error::CaptureError;
use crate::event::EventSpec;
use crate::features::KernelFeatures;
use crate::notice::{Listener, Notice};
use crate::options::{CallGraph, Choices, DEFAULT_FREQUENCY_HZ};
use crate::registers;

/// The highest `precise_ip`.
pub const MAX_PRECISION: u8 = 3;

/// The rate that events without one of their own get, checked against the kernel's limit.
/// `None` where the user gave none.
pub fn checked_rate(
    plan: RatePlan,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<(Sampling, bool), CaptureError> {
    let by_user = plan.by_user.is_some();
    let asked_hz = match plan.by_user.unwrap_or(Sampling::FrequencyHz(DEFAULT_FREQUENCY_HZ)) {
        Sampling::Period(0) => return Err(CaptureError::ZeroRate("period")),
        Sampling::FrequencyHz(0) => return Err(CaptureError::ZeroRate("frequency")),
        period @ Sampling::Period(_) => return Ok((period, by_user)),
        Sampling::FrequencyHz(hz) => hz,
    };
    let limit = max_frequency_hz(roots).unwrap_or(u64::MAX);
    if asked_hz <= limit {
        return Ok((Sampling::FrequencyHz(asked_hz), by_user));
    }
    if by_user && plan.is_strict {
        return Err(CaptureError::FrequencyTooHigh { asked_hz, limit_hz: limit });
    }
    listener.notice(Notice::FrequencyLowered { asked_hz, limit_hz: limit });
    Ok((Sampling::FrequencyHz(limit), by_user))
}

/// The highest frequency that the kernel takes now (`perf_event_max_sample_rate`).
pub fn max_frequency_hz(roots: &Roots) -> Option<u64> {
    roots.kernel_setting("perf_event_max_sample_rate").and_then(|hz| u64::try_from(hz).ok())
}

/// Whether a sideband event of its own is needed: whenever recording does not begin with an
/// exec, mappings and names must be recorded before the samples start.
fn needs_side_band(plan: &EventPlan, specs: &[EventSpec]) -> bool {
    plan.target != Target::Command
        || !plan.begin.at_once
        || plan.begin.is_controlled
        || specs.iter().any(|spec| spec.is_of_cpus)
        || specs.iter().any(|spec| spec.event.terms.overwrite.unwrap_or(plan.overwrite))
}

/// Events as they are planned for an engine.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The plan, as the engine adapted it.
    pub plan: &'a EventPlan,
    /// The engine that changes the attributes.
    pub engine: &'a dyn Engine,
}

/// Turns the events into attributes. A sideband event is appended where one is needed. Behind it is the event that the
/// engine writes by, and the one that it reads by itself is given apart.
pub fn configure(
    Planned { plan, engine }: Planned<'_>,
    events: &[EventSpec],
    inherit: bool,
    rate: (Sampling, bool),
    kernel: &KernelFeatures,
    arch: Option<Arch>,
    listener: &mut dyn Listener,
) -> Result<(Vec<ConfiguredEvent>, Option<PrivateEvent>), CaptureError> {
    if events.is_empty() {
        return Err(CaptureError::NoEvents);
    }
    let mut specs = events.to_vec();
    let side_band = needs_side_band(plan, &specs).then_some(specs.len());
    specs.extend(side_band.map(|_| EventSpec::side_band()));
    let is_inherited = |spec: &EventSpec| inherit && spec.event.terms.inherit.unwrap_or(true);
    let probe = specs.iter().position(|spec| spec.is_user_probe && is_inherited(spec));
    let apart = probe.map(|probe| side_band.unwrap_or(probe));
    let context = Context { plan, inherit, rate, arch, side_band, apart };
    let mut events: Vec<_> = (0..specs.len())
        .map(|index| ConfiguredEvent {
            is_side_band: side_band == Some(index),
            ..ConfiguredEvent::new(specs[index].clone(), context.attr(&specs, index))
        })
        .collect();
    let private = engine.configure(plan, inherit, &mut events);
    context.warn_of_registers(listener);
    context.warn_of_branches(&specs, listener);
    warn_of_precision(&events, listener);
    let has_output = events.iter().any(|event| event.is_bpf_output);
    let wants_identifier = plan.fields.extra.identifier || has_output;
    unify(&mut events, wants_identifier);
    events.iter_mut().for_each(|event| kernel.limit(&mut event.attr));
    Ok((events, private))
}

struct Context<'a> {
    plan: &'a EventPlan,
    inherit: bool,
    rate: (Sampling, bool),
    arch: Option<Arch>,
    /// Index of the appended sideband event; without one the first event tracks.
    side_band: Option<usize>,
    /// Index of the event that keeps the events of a process in that process, where this matters.
    apart: Option<usize>,
}

impl Context<'_> {
    fn attr(&self, specs: &[EventSpec], index: usize) -> Attr {
        let spec = &specs[index];
        let is_side_band = self.side_band == Some(index);
        let ([config, config1, config2, config3], bp_type) = spec.event.attr_words();
        let mut attr = Attr {
            pmu_type: spec.event.pmu_type,
            config,
            config1,
            config2,
            config3,
            bp_type,
            sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
            read_format: ReadFormat::ID | ReadFormat::LOST,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        attr.set_precise_ip(match spec.event.precise_ip {
            PreciseIp::Level(level) => level.min(MAX_PRECISION),
            PreciseIp::Max => MAX_PRECISION,
        });
        self.set_modes(&mut attr, spec);
        self.set_start(&mut attr, spec, spec.is_member(index), is_side_band);
        self.set_rate(&mut attr, spec);
        self.set_group(&mut attr, specs, index);
        if index == self.side_band.unwrap_or(0) {
            self.set_tracking(&mut attr);
            // One event of a ring: each that asks for the records gets all of them.
            let mut chained = specs.iter().filter(|spec| !spec.is_dummy());
            let defers = chained.any(|spec| self.defers_chains(self.plan.call_graph_of(spec)));
            attr.flags = attr.flags.with(AttrFlags::DEFER_OUTPUT, defers);
        }
        if !is_side_band {
            self.set_sample_fields(&mut attr, spec);
            self.set_extra_fields(&mut attr);
            self.set_branches(&mut attr, spec);
            self.set_counts(&mut attr);
            let overwrite = spec.event.terms.overwrite.unwrap_or(self.plan.overwrite);
            attr.flags = attr.flags.with(AttrFlags::WRITE_BACKWARD, overwrite);
        }
        if self.apart == Some(index) {
            // Between two processes that inherited the same events, the kernel exchanges them in place of taking some
            // off the CPU and putting others on it. A probe belongs to the process that inherited it, and is taken out of
            // the code of the other one when the first has ended. Events whose samples have their count stay with their
            // process (`nr_no_switch_fast` in kernel/events/core.c).
            attr.sample_type |= SampleType::READ;
        }
        if let Some(clock) = self.plan.clock {
            attr.flags |= AttrFlags::USE_CLOCKID;
            attr.clockid = clock.0;
        }
        attr
    }

    fn set_modes(&self, attr: &mut Attr, spec: &EventSpec) {
        let event = &spec.event;
        let inherit = self.inherit && event.terms.inherit.unwrap_or(true);
        attr.flags |= spec
            .exclusions()
            .with(AttrFlags::PINNED, event.pinned)
            .with(AttrFlags::EXCLUSIVE, event.exclusive)
            .with(AttrFlags::INHERIT, inherit);
    }

    /// Leaders start switched off: a command's exec switches them on, or we do. Members follow
    /// their leader. The sideband event waits for nothing but the exec. Events of sockets are always on: programs write
    /// their samples, and begin on all CPUs at once.
    fn set_start(&self, attr: &mut Attr, spec: &EventSpec, is_member: bool, is_side_band: bool) {
        let is_command = self.plan.target == Target::Command;
        if is_member || spec.socket.is_some() || (is_side_band && !is_command) {
            return;
        }
        attr.flags |= AttrFlags::DISABLED;
        if is_command && (is_side_band || self.plan.begin.at_once) {
            attr.flags |= AttrFlags::ENABLE_ON_EXEC;
        }
    }

    fn set_rate(&self, attr: &mut Attr, spec: &EventSpec) {
        let (rate, by_user) = self.rate;
        let default = match spec.event.default_period {
            Some(period) if !by_user => Sampling::Period(period),
            _ => rate,
        };
        match spec.event.terms.sampling.unwrap_or(default) {
            Sampling::Period(period) => attr.sample_period_or_freq = period,
            Sampling::FrequencyHz(hz) => {
                attr.sample_period_or_freq = hz;
                attr.flags |= AttrFlags::FREQ;
                attr.sample_type |= SampleType::PERIOD;
            }
        }
    }

    /// With `:S` the leader alone samples, and each sample carries the counts of all members.
    fn set_group(&self, attr: &mut Attr, specs: &[EventSpec], index: usize) {
        let Some(leader) = specs[index].leader else { return };
        let members = specs.iter().filter(|spec| spec.leader == Some(leader)).count();
        if !specs[leader].event.sample_read || members < 2 {
            return;
        }
        attr.sample_type |= SampleType::READ;
        attr.read_format |= ReadFormat::GROUP;
        // Kernels before 6.12 cannot read a group that is inherited.
        attr.flags = attr.flags.with(AttrFlags::INHERIT, false);
        if index != leader {
            attr.flags = attr.flags.with(AttrFlags::FREQ, false);
            attr.sample_period_or_freq = 0;
        }
    }

    fn set_tracking(&self, attr: &mut Attr) {
        let tracking = &self.plan.tracking;
        attr.flags |= AttrFlags::MMAP
            | AttrFlags::MMAP2
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::TASK
            | AttrFlags::KSYMBOL;
        for (flag, on) in [
            (AttrFlags::MMAP_DATA, self.records_addresses()),
            (AttrFlags::BUILD_ID, tracking.kernel_build_ids),
            (AttrFlags::BPF_EVENT, tracking.bpf_events),
            (AttrFlags::CONTEXT_SWITCH, tracking.switches),
            (AttrFlags::CGROUP, tracking.cgroups),
            (AttrFlags::NAMESPACES, tracking.namespaces),
        ] {
            attr.flags = attr.flags.with(flag, on);
        }
    }

    /// Unwinding reads the data segments of binaries, so dwarf wants data mappings as well.
    fn records_addresses(&self) -> bool {
        self.plan.fields.data_addresses
            || matches!(self.plan.chains.call_graph, CallGraph::Dwarf { .. })
    }

    fn set_sample_fields(&self, attr: &mut Attr, spec: &EventSpec) {
        let fields = &self.plan.fields;
        if self.records_addresses() {
            attr.sample_type |= SampleType::ADDR | SampleType::DATA_SRC;
        }
        if fields.periods || spec.is_tracepoint() {
            attr.sample_type |= SampleType::PERIOD;
        }
        if fields.raw || spec.has_raw_data() {
            attr.sample_type |= SampleType::RAW | SampleType::CPU;
        }
        // The list of waits names the CPU on which each began.
        if fields.cpus || self.plan.target.covers_cpus() || self.plan.tracking.switches {
            attr.sample_type |= SampleType::CPU;
        }
        self.set_call_graph(attr, spec);
        if fields.user_registers != 0 {
            attr.sample_type |= SampleType::REGS_USER;
            attr.sample_regs_user |= fields.user_registers;
        }
        if fields.interrupt_registers != 0 {
            attr.sample_type |= SampleType::REGS_INTR;
            attr.sample_regs_intr = fields.interrupt_registers;
        }
    }

    fn set_extra_fields(&self, attr: &mut Attr) {
        let extra = &self.plan.fields.extra;
        // x86 has three weights in one, as perf has it.
        let weight = match self.arch {
            Some(Arch::X86_64) => SampleType::WEIGHT_STRUCT,
            _ => SampleType::WEIGHT,
        };
        for (field, on) in [
            (SampleType::PHYS_ADDR, extra.physical_addresses),
            (SampleType::DATA_PAGE_SIZE, extra.data_page_sizes),
            (SampleType::CODE_PAGE_SIZE, extra.code_page_sizes),
            (SampleType::DATA_SRC, extra.data_sources),
            (weight, extra.weights),
            (SampleType::TRANSACTION, extra.transactions),
            (SampleType::CGROUP, self.plan.tracking.cgroups),
        ] {
            if on {
                attr.sample_type |= field;
            }
        }
    }

    /// Branch records are asked for by themselves, or are the call chain. They cannot be both.
    fn set_branches(&self, attr: &mut Attr, spec: &EventSpec) {
        if spec.is_dummy() {
            return;
        }
        let asked = spec.branches.or(self.plan.fields.branches);
        let call_chain = self.takes_lbr(spec).then_some(BranchFilter::CALL_CHAIN);
        if let Some(BranchFilter(mask)) = asked.or(call_chain) {
            attr.sample_type |= SampleType::BRANCH_STACK;
            attr.branch_sample_type = mask;
        }
    }

    fn takes_lbr(&self, spec: &EventSpec) -> bool {
        let call_graph = self.plan.call_graph_of(spec);
        call_graph == CallGraph::Lbr && !spec.event.exclude.user
    }

    fn set_counts(&self, attr: &mut Attr) {
        let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        if self.plan.counts.by_thread {
            attr.flags |= AttrFlags::INHERIT_STAT;
        }
        if self.plan.counts.by_thread || self.plan.counts.running_time {
            attr.read_format |= times;
        }
        if self.plan.counts.alone {
            attr.sample_period_or_freq = 0;
        }
    }

    /// Kernels defer frame pointers alone, and nothing where the user's part is left out.
    fn defers_chains(&self, call_graph: CallGraph) -> bool {
        let chains = &self.plan.chains;
        chains.is_deferred && !chains.kernel_only && call_graph == CallGraph::FramePointer
    }

    fn set_call_graph(&self, attr: &mut Attr, spec: &EventSpec) {
        let call_graph = self.plan.call_graph_of(spec);
        if call_graph == CallGraph::None {
            return;
        }
        let own_max_frames = spec.event.terms.max_stack;
        attr.sample_max_stack = own_max_frames.or(self.plan.chains.max_frames).unwrap_or(0);
        attr.sample_type |= SampleType::CALLCHAIN;
        if self.plan.chains.kernel_only {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
        }
        if self.plan.chains.user_only {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_KERNEL;
        }
        if self.defers_chains(call_graph) {
            attr.flags |= AttrFlags::DEFER_CALLCHAIN;
        }
        if let CallGraph::Dwarf { stack_dump_bytes } = call_graph {
            attr.sample_type |= SampleType::REGS_USER | SampleType::STACK_USER;
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
            attr.sample_stack_user_bytes = stack_dump_bytes;
            attr.sample_regs_user |= match (self.arch, self.plan.fields.user_registers) {
                (Some(arch), 0) => registers::all(arch),
                (Some(arch), _) => registers::minimal(arch),
                (None, _) => 0,
            };
        }
    }

    /// perf's answers to call chains by branch records that cannot be: frame pointers instead.
    fn warn_of_branches(&self, specs: &[EventSpec], listener: &mut dyn Listener) {
        let wants_lbr = |spec: &&EventSpec| self.plan.call_graph_of(spec) == CallGraph::Lbr;
        for spec in specs.iter().filter(wants_lbr).filter(|spec| !spec.is_dummy()) {
            let event = spec.name().to_owned();
            if spec.branches.or(self.plan.fields.branches).is_some() {
                listener.notice(Notice::BranchesNotCallChain { event });
            } else if !self.takes_lbr(spec) {
                listener.notice(Notice::NoKernelLbr { event });
            }
        }
    }

    fn warn_of_registers(&self, listener: &mut dyn Listener) {
        let asked = self.plan.fields.user_registers;
        let minimal = self.arch.map_or(0, registers::minimal);
        let is_dwarf = matches!(self.plan.chains.call_graph, CallGraph::Dwarf { .. });
        if is_dwarf && asked != 0 && asked & minimal != minimal {
            listener.notice(Notice::RegistersAdded);
        }
    }
}

/// Where a level was asked for, and not just the best.
fn warn_of_precision(events: &[ConfiguredEvent], listener: &mut dyn Listener) {
    for ConfiguredEvent { spec, attr, .. } in events {
        if matches!(spec.event.precise_ip, PreciseIp::Level(1..)) && attr.precise_ip() == 0 {
            listener.notice(Notice::PrecisionLowered { event: spec.name().to_owned(), level: 0 });
        }
    }
}

/// Makes the layouts of all events agree where they must: on the CPU field, and on where the
/// event's id stands.
fn unify(events: &mut [ConfiguredEvent], wants_identifier: bool) {
    if events.iter().any(|e| e.attr.sample_type.contains(SampleType::CPU)) {
        events.iter_mut().for_each(|e| e.attr.sample_type |= SampleType::CPU);
    }
    if events.len() < 2 && !wants_identifier {
        return;
    }
    let first = events[0].attr.sample_type;
    let id = if !wants_identifier && events.iter().all(|e| e.attr.sample_type == first) {
        SampleType::ID
    } else {
        SampleType::IDENTIFIER
    };
    events.iter_mut().for_each(|e| e.attr.sample_type |= id);
}

/// Wakes the reader at every record, or when a ring of this size is a quarter full.
pub fn set_wakeup(attr: &mut Attr, ring_size_bytes: usize, choices: Choices) {
    if choices.unbuffered {
        attr.wakeup = 1;
    } else {
        attr.flags |= AttrFlags::WATERMARK;
        attr.wakeup = watermark(ring_size_bytes);
    }
}

#[cfg(test)]
mod tests;
