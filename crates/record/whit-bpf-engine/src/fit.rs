//! Recording options for the engine that unwinds in the kernel: supported ones, and the changes to
//! others.

use crate::unwind_tables::WORK_MEMORY_MAX_BYTES;
use whit_bpf::stacks::TABLE_MEMORY_MAX_BYTES;
use whit_engine_api::event::{EventSpec, software};
use whit_engine_api::event_plan::EventPlan;
use whit_engine_api::settings::{CallGraph, ExtraFields, RingSize};
use whit_host::memory_limit::MemoryLimit;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_perfdata::attr::pmu_type;
use whit_sys::clock::ClockId;
use whit_sys::system::page_size;

use super::traced::{Hits, has_program, hits_of};

/// Size of a ring where there is much to tell and nobody asked for another: a tenth of a second of the
/// busiest that were seen.
const RING_BYTES: usize = 4 << 20;

/// Why these options cannot be had with stacks that are unwound in the kernel.
pub(crate) fn conflict(
    plan: &EventPlan,
    is_automatic: bool,
    roots: &Roots,
) -> Option<&'static str> {
    conflict_among(plan, is_automatic).or_else(|| super::chosen::conflict(&plan.target)).or_else(|| {
        let mut tracepoints = plan.specs.iter().filter(|event| has_program(event));
        let is_nobodys = |event: &EventSpec| hits_of(event, roots) == Hits::Nobodys;
        tracepoints.any(is_nobodys).then_some(
            "takes no probes by ftrace and none on other events (f:, t: and e: of dynamic_events), at which \
             the kernel calls no BPF program",
        )
    })
}

fn conflict_among(plan: &EventPlan, is_automatic: bool) -> Option<&'static str> {
    let events = || plan.specs.iter().filter(|event| event.takes_chains());
    let sampled = events().count();
    let call_graphs = || events().map(|event| plan.call_graph_of(event));
    let dumps = call_graphs().any(|call_graph| matches!(call_graph, CallGraph::Dwarf { .. }));
    let has_branches =
        plan.fields.branches.is_some() || events().any(|event| event.branches.is_some());
    let extra = ExtraFields { identifier: false, ..plan.fields.extra };
    let other_clock = plan.clock.is_some_and(|clock| clock != ClockId::MONOTONIC);
    let names_whom = plan.target.chosen().is_some();
    let checks: [(bool, &'static str); 16] = [
        (
            names_whom && events().any(EventSpec::is_tracepoint),
            "cannot limit tracepoints and probes to names: record them with --engine=ring and --cgroup",
        ),
        (
            plan.chains.is_deferred,
            "unwinds user stacks at the sample, and defers none: leave ',defer' out of --call-graph, or \
             take --engine=ring",
        ),
        (
            other_clock && plan.tracking.switches,
            "stamps switches by CLOCK_MONOTONIC: leave --clockid out",
        ),
        (
            sampled == 0 && !plan.tracking.switches && !plan.tracking.wakeups,
            "takes an event to sample",
        ),
        (events().any(|event| event.event.sample_read), "takes no counts of groups (:S)"),
        (call_graphs().any(|chains| chains == CallGraph::Lbr), "takes no branch records"),
        (dumps && is_automatic, "needs no dumps of stacks"),
        (
            dumps && (sampled != 1 || events().any(EventSpec::is_tracepoint)),
            "has dumps of stacks beside one event alone, which is no tracepoint",
        ),
        (
            dumps && plan.tracking.switches && !events().all(counts_switches),
            "has dumps of stacks beside samples, or beside those of context-switches (-e \
             software/config=0x3,period=1,name=dumps/) with --switch-events",
        ),
        (has_branches, "takes no branch records"),
        (extra != ExtraFields::default(), "takes no further fields of samples"),
        (plan.per_thread, "needs a ring for each CPU: leave --per-thread out"),
        (plan.overwrite, "cannot overwrite old samples"),
        (
            plan.fields.data_addresses || plan.fields.raw,
            "takes no addresses of data and no raw data",
        ),
        (
            plan.fields.user_registers != 0 || plan.fields.interrupt_registers != 0,
            "takes no registers",
        ),
        (whit_types::Arch::native() != Some(whit_types::Arch::X86_64), "runs on x86-64 alone"),
    ];
    checks.into_iter().find_map(|(is_so, why)| is_so.then_some(why))
}

/// Whether an event counts context switches.
fn counts_switches(event: &EventSpec) -> bool {
    event.event.pmu_type == pmu_type::SOFTWARE
        && event.event.config[0] == software::CONTEXT_SWITCHES
}

/// How the sampled event gets its call chains.
pub(super) fn call_graph(plan: &EventPlan) -> CallGraph {
    let sampled = plan.specs.iter().find(|event| event.takes_chains());
    sampled.map_or(plan.chains.call_graph, |event| plan.call_graph_of(event))
}

/// Fits the plan to the programs.
pub(crate) fn adapt(plan: &mut EventPlan, ring_size: &mut RingSize) {
    leave_to_perf(plan, ring_size);
    let of_cpus: Vec<bool> = plan.specs.iter().map(|spec| samples_cpus(plan, spec)).collect();
    let is_chosen = plan.target.chosen().is_some();
    for (spec, is_of_cpus) in plan.specs.iter_mut().zip(of_cpus) {
        spec.is_of_cpus |= is_of_cpus;
        // The kernel throttles an event that is hit often without a tick, as on an idle CPU.
        spec.exclude_idle |= is_of_cpus || is_chosen;
    }
}

/// The part of the call graph that perf still writes: dumps of stacks, for comparison with the
/// programs' stacks of the same samples. Otherwise it is empty.
fn leave_to_perf(plan: &mut EventPlan, ring_size: &mut RingSize) {
    plan.chains.call_graph = match call_graph(plan) {
        dumps @ CallGraph::Dwarf { .. } => dumps,
        _ => CallGraph::None,
    };
    plan.specs.iter_mut().for_each(|event| event.event.terms.call_graph = None);
    let has_tracepoints = plan.specs.iter().any(EventSpec::is_tracepoint);
    let is_large = plan.tracking.switches
        || plan.tracking.wakeups
        || has_tracepoints
        || plan.chains.call_graph != CallGraph::None;
    if is_large && *ring_size == RingSize::Default {
        *ring_size = RingSize::Bytes(RING_BYTES);
    }
    // The programs have no other clock that perf has too.
    if plan.tracking.switches {
        plan.clock = Some(ClockId::MONOTONIC);
    }
}

/// Whether an event is opened on CPUs, and programs leave out threads that are not recorded.
///
/// Events that count time are. An event of a thread has a period of its own, and its first sample comes at the period's
/// end: a pool of threads that each run for less than that would have no sample at all. The period of a CPU goes on from
/// thread to thread. The thread that a tick hits depends on the time alone, so that none is preferred.
fn samples_cpus(plan: &EventPlan, spec: &EventSpec) -> bool {
    let is_clock = spec.event.pmu_type == pmu_type::SOFTWARE
        && matches!(spec.event.config[0], software::CPU_CLOCK | software::TASK_CLOCK);
    !plan.target.covers_cpus()
        && (is_clock || spec.is_cycles())
        // These are of single threads: counts at their ends, groups with others, other children than all.
        && !plan.counts.by_thread
        && spec.leader.is_none()
        && spec.event.terms.inherit.is_none_or(|inherit| inherit == plan.inherit)
        // perf's own samples beside those of the program need nothing of it.
        && call_graph(plan) == CallGraph::None
}

/// Whether of a process only some threads are recorded: those that are named, or that were there before.
pub(super) fn has_few_threads(plan: &EventPlan) -> bool {
    matches!(plan.target, Target::Threads(_)) || !plan.inherit
}

/// Where a cgroup limits the memory of the recorder, tables take at most this part of it: the kernel's memory counts there.
const TABLES_SHARE_OF_LIMIT: u64 = 4;

/// Bytes that tables may take in the kernel.
pub(super) fn table_bytes(limit: Option<&MemoryLimit>) -> usize {
    let share = limit.map(|limit| limit.bytes / TABLES_SHARE_OF_LIMIT);
    share.and_then(|share| usize::try_from(share).ok()).unwrap_or(TABLE_MEMORY_MAX_BYTES)
}

/// There, making tables takes at most this part.
const WORK_SHARE_OF_LIMIT: u64 = 8;

/// Bytes that tables may take while they are made.
pub(super) fn work_bytes(limit: Option<&MemoryLimit>) -> usize {
    let share = limit.map(|limit| limit.bytes / WORK_SHARE_OF_LIMIT);
    share.and_then(|share| usize::try_from(share).ok()).unwrap_or(WORK_MEMORY_MAX_BYTES)
}

/// There, the channels of all CPUs together take at most this part, unless the user names a size of rings.
const CHANNELS_SHARE_OF_LIMIT: u64 = 16;
/// A smaller channel is full before its reader has its turn on a busy CPU.
const CHANNEL_MIN_BYTES: usize = 256 << 10;

/// Bytes of a CPU's channel: those of a ring, as far as a limit of memory leaves them. Channels are the kernel's memory,
/// which counts in the cgroup, and rings are not.
pub(super) fn channel_bytes(
    ring_size: RingSize,
    limit: Option<&MemoryLimit>,
    cpus: usize,
) -> usize {
    match ring_size {
        RingSize::Default => {
            let share = limit.map(|it| it.bytes / CHANNELS_SHARE_OF_LIMIT / cpus.max(1) as u64);
            let share = share.and_then(|share| usize::try_from(share).ok()).unwrap_or(RING_BYTES);
            // The largest power of two within the share.
            let within = 1 << share.max(1).ilog2();
            within.clamp(CHANNEL_MIN_BYTES, RING_BYTES)
        }
        RingSize::Pages(pages) => pages.saturating_mul(page_size()),
        RingSize::Bytes(bytes) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_leaves_room_for_more_than_tables() {
        assert_eq!(table_bytes(None), TABLE_MEMORY_MAX_BYTES);
        let limit = |bytes| MemoryLimit { bytes, cgroup: "/sys/fs/cgroup/a".into() };
        assert_eq!(table_bytes(Some(&limit(128 << 20))), 32 << 20);
        assert_eq!(work_bytes(None), WORK_MEMORY_MAX_BYTES);
        assert_eq!(work_bytes(Some(&limit(128 << 20))), 16 << 20);
        let channel = |bytes, cpus| channel_bytes(RingSize::Default, Some(&limit(bytes)), cpus);
        assert_eq!(channel_bytes(RingSize::Default, None, 256), RING_BYTES);
        assert_eq!([1, 2, 4, 5].map(|cpus| channel(128 << 20, cpus) >> 20), [4, 4, 2, 1]);
        assert_eq!([64, 1000].map(|cpus| channel(128 << 20, cpus)), [CHANNEL_MIN_BYTES; 2]);
        assert_eq!([0, u64::MAX].map(|bytes| channel(bytes, 2)), [CHANNEL_MIN_BYTES, RING_BYTES]);
        let own = channel_bytes(RingSize::Bytes(1 << 24), Some(&limit(128 << 20)), 64);
        assert_eq!(own, 1 << 24, "the user's size stays");
    }
}
