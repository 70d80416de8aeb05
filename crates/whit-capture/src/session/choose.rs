//! Which engine makes call chains.
//!
//! `--engine=auto` records the same whichever it takes: samples with call chains of all of the stack. Where the
//! programs cannot be had, dumps of stacks take their place, which no right is needed for.

use whit_host::roots::Roots;
use whit_types::Arch;

use crate::error::CaptureError;
use crate::notice::{Listener, Notice};
use crate::options::{CallGraph, DEFAULT_STACK_DUMP_BYTES, Engine, RecordOptions};
use crate::stack_engine::{self, StackEngine, WakeFormat};
use crate::wakeups;

/// Loads the programs of the engine that unwinds in the kernel, where that is asked for and can be.
/// Gives the options as they are then.
pub(super) fn choose_engine(
    options: &RecordOptions,
    roots: &Roots,
    listener: &mut dyn Listener,
) -> Result<(Option<StackEngine>, RecordOptions), CaptureError> {
    let waking = options.wakeups.then(|| wakeups::format(roots)).transpose()?;
    let load = || StackEngine::load(options, waking.as_ref().map(WakeFormat::new), roots);
    let engine = match options.engine {
        Engine::Ring => None,
        Engine::Bpf => match stack_engine::conflict(options, roots) {
            Some(why) => return Err(CaptureError::EngineConflict { why }),
            None => Some(load().map_err(CaptureError::Bpf)?),
        },
        Engine::Auto => {
            let engine = match obstacle(options, roots) {
                Some(why) => Err(why),
                None => load().map_err(|error| stack_engine::refusal(&error)),
            };
            listener.notice(match &engine {
                Ok(_) => Notice::BpfChosen,
                Err(why) => Notice::RingChosen {
                    why: why.clone(),
                    call_graph: without_programs(options),
                    bare_switches: options.switch_events,
                },
            });
            engine.ok()
        }
    };
    let mut chosen = options.clone();
    if engine.is_some() {
        chosen.engine = Engine::Bpf;
        stack_engine::leave_to_perf(&mut chosen);
    } else {
        if options.engine == Engine::Auto {
            chosen.call_graph = without_programs(options);
        }
        chosen.engine = Engine::Ring;
        chosen.events.extend(waking.as_ref().map(wakeups::event));
    }
    Ok((engine, chosen))
}

/// Why `--engine=auto` does not try the programs.
fn obstacle(options: &RecordOptions, roots: &Roots) -> Option<String> {
    if options.is_call_graph_given && options.call_graph == CallGraph::None {
        return Some("no call chains are asked for".to_owned());
    }
    stack_engine::conflict(options, roots).map(|why| format!("the BPF engine {why}"))
}

/// How `--engine=auto` has call chains made without programs: as the user says, else in the way that comes
/// nearest to them. `-g` asks for call chains, and not for those of frame pointers.
fn without_programs(options: &RecordOptions) -> CallGraph {
    match Arch::native() {
        _ if options.is_call_graph_given => options.call_graph,
        // Of the kernel's part, frame pointers or better are all that there is.
        _ if options.kernel_callchains_only => CallGraph::FramePointer,
        // Which registers to dump, nobody knows.
        None => CallGraph::FramePointer,
        Some(_) => CallGraph::Dwarf { stack_dump_bytes: DEFAULT_STACK_DUMP_BYTES },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSpec;
    use crate::options::Output;
    use whit_perfdata::attr::pmu_type;

    const DUMPS: CallGraph = CallGraph::Dwarf { stack_dump_bytes: DEFAULT_STACK_DUMP_BYTES };

    fn options(call_graph: CallGraph, is_call_graph_given: bool) -> RecordOptions {
        let events = vec![EventSpec::new("cpu-clock", pmu_type::SOFTWARE, 0)];
        let output = Output::File("perf.data".into());
        RecordOptions {
            call_graph,
            is_call_graph_given,
            engine: Engine::Auto,
            ..RecordOptions::for_command(events, vec!["true".into()], output)
        }
    }

    /// The ring engine, since these options are beyond the other.
    fn without(options: RecordOptions) -> (CallGraph, Vec<Notice>) {
        let options = RecordOptions { per_thread: true, ..options };
        let mut notices = Vec::new();
        let mut listener = |notice| notices.push(notice);
        let chosen = choose_engine(&options, &Roots::default(), &mut listener).unwrap();
        assert!(chosen.0.is_none() && chosen.1.engine == Engine::Ring);
        (chosen.1.call_graph, notices)
    }

    #[test]
    fn without_programs_call_chains_come_from_dumps_unless_the_user_says_otherwise() {
        for not_given in [CallGraph::None, CallGraph::FramePointer] {
            let (call_graph, notices) = without(options(not_given, false));
            assert_eq!(call_graph, DUMPS);
            let [said @ Notice::RingChosen { .. }] = &notices[..] else { panic!("{notices:?}") };
            let text = said.to_string();
            assert!(text.contains("a ring for each CPU") && text.contains("dumps"), "{text}");
        }
        for given in [CallGraph::None, CallGraph::FramePointer, CallGraph::Lbr] {
            assert_eq!(without(options(given, true)).0, given);
        }
        let of_kernel = options(CallGraph::FramePointer, false);
        let of_kernel = RecordOptions { kernel_callchains_only: true, ..of_kernel };
        assert_eq!(without(of_kernel).0, CallGraph::FramePointer);
    }

    #[test]
    fn what_was_asked_for_of_the_ring_engine_stays() {
        for call_graph in [CallGraph::None, CallGraph::FramePointer] {
            let options = RecordOptions { engine: Engine::Ring, ..options(call_graph, false) };
            let (chosen, notices) = without(options);
            assert_eq!((chosen, notices.len()), (call_graph, 0));
        }
    }
}
