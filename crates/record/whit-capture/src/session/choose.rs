//! Which engine makes call chains.
//!
//! `--engine=auto` records the same whichever it takes: samples with call chains of all of the stack. Where the
//! programs cannot be had, dumps of stacks take their place, which no right is needed for.

use whit_bpf_engine::BpfEngine;
use whit_engine_api::error::EngineError;
use whit_engine_api::event::EventSpec;
use whit_engine_api::event_plan::EventPlan;
use whit_engine_api::{Capabilities, WaitMode};
use whit_host::roots::Roots;
use whit_sys::limit::Limit;
use whit_types::Arch;

use super::names;
use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::{CallGraph, DEFAULT_STACK_DUMP_BYTES, Engine, RingSize};
use crate::plan::RecordPlan;
use crate::wakeups;

/// Open files of the BPF engine: programs, maps and links; binaries whose tables are being made; and rings, channels and
/// events of a CPU.
const BPF_FILES: u64 = 128;
const BPF_FILES_PER_CPU: u64 = 16;

/// The engine of a recording. The plan is the engine's then.
pub(super) fn choose_engine(
    plan: &mut RecordPlan,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<Box<dyn whit_engine_api::Engine>, CaptureError> {
    let waking = plan.events.tracking.wakeups.then(|| wakeups::format(roots)).transpose()?;
    let by_ring = ring_obstacle(&plan.events, roots);
    let wish = plan.engine.wish;
    if wish == Engine::Unset {
        plan.engine.wish = default_engine(plan, by_ring.is_none(), roots, listener);
    }
    let (events, stacks) = (&plan.events, &plan.engine.stacks);
    let load = || {
        // Where it cannot be raised, the load says so.
        let _ = Limit::OpenFiles.raise();
        BpfEngine::load(events, stacks, waking.as_ref(), roots)
    };
    let engine = match plan.engine.wish {
        Engine::Ring => match by_ring {
            Some(why) => return Err(CaptureError::RingConflict { why, bpf: None }),
            None => None,
        },
        Engine::Bpf => match BpfEngine::conflict(events, false, roots) {
            Some(why) => return Err(CaptureError::EngineConflict { why }),
            None => Some(load().map_err(EngineError::own)?),
        },
        Engine::Auto => {
            let few_files = || few_files(Limit::OpenFiles.get().hard);
            let engine = match obstacle(plan, by_ring.is_none(), roots).or_else(few_files) {
                Some(why) => Err(why),
                None => load().map_err(|error| whit_bpf_engine::refusal(&error)),
            };
            if let (Err(bpf), Some(why)) = (&engine, by_ring) {
                return Err(CaptureError::RingConflict { why, bpf: Some(bpf.clone()) });
            }
            let chains = without_programs(plan);
            match &engine {
                // The last line of a recording names it.
                Ok(_) if wish == Engine::Unset => {}
                Ok(_) => listener.notice(Notice::BpfChosen),
                Err(why) => {
                    listener.notice(ring_chosen(why.clone(), chains, plan));
                    plan.events.chains.call_graph = chains;
                }
            }
            engine.ok()
        }
        Engine::Unset => None,
    };
    let engine: Box<dyn whit_engine_api::Engine> = match engine {
        Some(engine) => Box::new(engine),
        None => Box::new(RingEngine {
            waking: waking.as_ref().map(wakeups::event),
            records_switches: plan.events.tracking.switches,
        }),
    };
    plan.adapt_to(engine.as_ref());
    Ok(engine)
}

/// Why the ring engine cannot make such a recording.
fn ring_obstacle(events: &EventPlan, roots: &Roots) -> Option<String> {
    let has_sockets = events.specs.iter().any(|event| event.socket.is_some());
    let of_sockets = has_sockets.then(|| "takes no --request of a socket".to_owned());
    of_sockets.or_else(|| names::obstacle(events, roots))
}

/// The kernel writes call chains, or dumps of stacks, as it does for perf.
#[derive(Debug)]
struct RingEngine {
    /// The tracepoint of wake-ups, where these are recorded.
    waking: Option<EventSpec>,
    records_switches: bool,
}

impl whit_engine_api::Engine for RingEngine {
    fn adapt(&self, plan: &mut EventPlan, _ring_size: &mut RingSize) {
        plan.specs.extend(self.waking.clone());
    }

    fn capabilities(&self) -> Capabilities {
        // The kernel records switches, and nothing changes that but a pause.
        let wait_modes = self.records_switches.then_some(WaitMode::Exact).into_iter().collect();
        Capabilities { wait_modes, ..Capabilities::default() }
    }
}

/// The engine where the user names none. Call chains that the user names, or their absence, are the kernel's own.
/// Without `-g`, what the programs cannot record has no call chains, as in perf: dumps of stacks would be more than
/// the user asks for.
fn default_engine(
    plan: &RecordPlan,
    has_choice: bool,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Engine {
    let events = &plan.events;
    let names_chains = plan.engine.choices.is_call_graph_given
        || events.specs.iter().any(|event| event.event.terms.call_graph.is_some());
    if !has_choice {
        return Engine::Auto;
    }
    if names_chains {
        return Engine::Ring;
    }
    if events.chains.call_graph != CallGraph::None {
        return Engine::Auto;
    }
    let has_tracepoints =
        || events.specs.iter().any(|spec| spec.is_tracepoint() && spec.takes_chains());
    let has_nothing =
        !events.specs.iter().any(EventSpec::takes_chains) && !events.tracking.switches;
    if events.counts.alone || has_nothing || has_tracepoints() {
        return Engine::Ring;
    }
    match obstacle(plan, has_choice, roots) {
        Some(why) => {
            listener.notice(ring_chosen(why, CallGraph::None, plan));
            Engine::Ring
        }
        None => Engine::Auto,
    }
}

fn ring_chosen(why: String, call_graph: CallGraph, plan: &RecordPlan) -> Notice {
    Notice::RingChosen { why, call_graph, bare_switches: plan.events.tracking.switches }
}

/// Why `--engine=auto` does not try the programs.
fn obstacle(plan: &RecordPlan, has_choice: bool, roots: &Roots) -> Option<String> {
    if has_choice
        && plan.engine.choices.is_call_graph_given
        && plan.events.chains.call_graph == CallGraph::None
    {
        return Some("no call chains are asked for".to_owned());
    }
    let why = BpfEngine::conflict(&plan.events, true, roots);
    why.map(|why| format!("the BPF engine {why}"))
}

/// Why a limit of open files is too low for the programs. Without them, the recorder knows how many it needs.
fn few_files(hard: Option<u64>) -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let needed = BPF_FILES + BPF_FILES_PER_CPU * cpus;
    hard.filter(|hard| *hard < needed).map(|hard| {
        format!(
            "the BPF engine takes up to {needed} open files, {hard} are allowed (raise it: ulimit -n {needed})"
        )
    })
}

/// How `--engine=auto` has call chains made without programs: as the user says, else in the way that comes
/// nearest to them. `-g` asks for call chains, and not for those of frame pointers.
fn without_programs(plan: &RecordPlan) -> CallGraph {
    match Arch::native() {
        _ if plan.engine.choices.is_call_graph_given => plan.events.chains.call_graph,
        // The kernel unwinds its own part by frame pointers or better; there is no other way.
        _ if plan.events.chains.kernel_only => CallGraph::FramePointer,
        // Which registers to dump, nobody knows.
        None => CallGraph::FramePointer,
        Some(_) => CallGraph::Dwarf { stack_dump_bytes: DEFAULT_STACK_DUMP_BYTES },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Output;
    use whit_perfdata::attr::pmu_type;

    const DUMPS: CallGraph = CallGraph::Dwarf { stack_dump_bytes: DEFAULT_STACK_DUMP_BYTES };

    fn plan(call_graph: CallGraph, is_call_graph_given: bool) -> RecordPlan {
        let specs = vec![EventSpec::new("cpu-clock", pmu_type::SOFTWARE, 0)];
        let mut plan = RecordPlan::for_command(specs, Output::File("perf.data".into()));
        plan.events.chains.call_graph = call_graph;
        plan.engine.choices.is_call_graph_given = is_call_graph_given;
        plan.engine.wish = Engine::Auto;
        plan
    }

    /// The ring engine, since these plans are beyond the other.
    fn without(mut plan: RecordPlan) -> (CallGraph, Vec<Notice>) {
        plan.events.per_thread = true;
        let mut notices = Vec::new();
        let mut listener = |notice| notices.push(notice);
        let engine = choose_engine(&mut plan, &Roots::default(), &mut listener).unwrap();
        assert!(!engine.capabilities().needs_cpus);
        (plan.events.chains.call_graph, notices)
    }

    #[test]
    fn without_programs_call_chains_come_from_dumps_unless_the_user_says_otherwise() {
        for not_given in [CallGraph::None, CallGraph::FramePointer] {
            let (call_graph, notices) = without(plan(not_given, false));
            assert_eq!(call_graph, DUMPS);
            let [said @ Notice::RingChosen { .. }] = &notices[..] else { panic!("{notices:?}") };
            let text = said.to_string();
            assert!(text.contains("a ring for each CPU") && text.contains("dumps"), "{text}");
        }
        for given in [CallGraph::None, CallGraph::FramePointer, CallGraph::Lbr] {
            assert_eq!(without(plan(given, true)).0, given);
        }
        let mut of_kernel = plan(CallGraph::FramePointer, false);
        of_kernel.events.chains.kernel_only = true;
        assert_eq!(without(of_kernel).0, CallGraph::FramePointer);
    }

    #[test]
    fn a_low_limit_of_open_files_is_named() {
        assert_eq!(few_files(None), None);
        assert_eq!(few_files(Some(1 << 20)), None);
        let why = few_files(Some(64)).unwrap();
        assert!(why.contains("64 are allowed") && why.contains("ulimit -n"), "{why}");
    }

    #[test]
    fn call_chains_of_the_ring_engine_stay_as_requested() {
        for call_graph in [CallGraph::None, CallGraph::FramePointer] {
            let mut plan = plan(call_graph, false);
            plan.engine.wish = Engine::Ring;
            let (chosen, notices) = without(plan);
            assert_eq!((chosen, notices.len()), (call_graph, 0));
        }
    }
}
