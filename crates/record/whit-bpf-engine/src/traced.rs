//! Tracepoints and probes whose hits' stacks are recorded.
//!
//! The kernel gives tracepoints programs of one kind, and probes (uprobes, USDT, kprobes) those of another. Both are
//! tracepoints to perf; the list of dynamic events tells them apart.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use whit_bpf::BpfError;
use whit_bpf::stacks::{ProgramKind, Stacks};
use whit_engine_api::error::EngineError;
use whit_engine_api::event::EventSpec;
use whit_engine_api::open_event::{OpenEvent, open_one};
use whit_host::open::EventTarget;
use whit_host::roots::Roots;
use whit_host::tracepoint::name_of;
use whit_perfdata::attr::{Attr, AttrFlags};
use whit_sys::{Errno, PerfEventFd};

/// Dynamic events, one a line: kind, `:`, group, `/`, name.
const DYNAMIC_EVENTS: &str = "dynamic_events";

/// Which programs the kernel calls at a tracepoint's hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hits {
    /// Those of tracepoints.
    Tracepoint,
    /// Those of probes.
    Probe,
    /// None: probes by ftrace and on other events.
    Nobodys,
}

/// The hits that an event counts.
pub(super) fn hits_of(spec: &EventSpec, roots: &Roots) -> Hits {
    let by_id = || name_of(&roots.tracefs()?, spec.event.config[0]);
    let name = || spec.event.tracepoint().map(str::to_owned).or_else(by_id);
    let list = || std::fs::read_to_string(roots.tracefs()?.join(DYNAMIC_EVENTS)).ok();
    match (list(), name()) {
        (Some(list), Some(name)) => hits_in(&list, &name),
        // A user who may not read the list has no event of it.
        _ => Hits::Tracepoint,
    }
}

/// Whether hits of an event have call chains, which programs take.
pub(super) fn has_program(spec: &EventSpec) -> bool {
    spec.is_tracepoint() && spec.takes_chains()
}

/// The list has return probes as `r` with a number, and names with `/`.
fn hits_in(list: &str, name: &str) -> Hits {
    let path = name.replacen(':', "/", 1);
    let entry = |line: &str| {
        let (kind, rest) = line.split_once(':')?;
        (rest.split_whitespace().next()? == path).then(|| kind.chars().next())?
    };
    match list.lines().find_map(entry) {
        None => Hits::Tracepoint,
        Some('p' | 'r') => Hits::Probe,
        Some(_) => Hits::Nobodys,
    }
}

/// The kernel calls no program at the hits of an event.
#[derive(Debug, thiserror::Error)]
#[error(
    "'{event}': the kernel calls no BPF program at its hits, so that it has no call chains with \
     --engine=bpf (take --engine=ring --call-graph dwarf)"
)]
struct NoProgramAt {
    event: String,
    source: BpfError,
}

/// A tracepoint or probe whose hits the program emits, with an event of its own that counts nothing: a program is with an event, and
/// goes with the first thread that inherited both.
#[derive(Debug)]
pub(super) struct Traced {
    /// The kernel's number, by which records name it.
    number: u32,
    name: String,
    part: ProgramKind,
    event: PerfEventFd,
}

/// Where one of the event's instances is: of a probe, the kernel changes the code of that process alone.
fn open_anywhere(of: &OpenEvent) -> Result<PerfEventFd, Errno> {
    let attr = Attr {
        pmu_type: of.event.attr.pmu_type,
        config: of.event.attr.config,
        flags: AttrFlags::DISABLED,
        ..Attr::default()
    };
    let bytes = attr.to_bytes();
    let mut last = Errno::SRCH;
    for instance in &of.instances {
        match open_one(&bytes, EventTarget { cpu: instance.cpu, tasks: instance.tid.into() }) {
            Ok(opened) => return Ok(opened.fd),
            // A thread may have ended meanwhile.
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

impl Traced {
    /// The tracepoints and probes among the recorded events.
    pub(super) fn among(events: &[OpenEvent], roots: &Roots) -> Result<Vec<Traced>, EngineError> {
        let mut seen = BTreeSet::new();
        let mut traced = Vec::new();
        for event in events.iter().filter(|event| has_program(&event.event.spec)) {
            let spec = &event.event.spec;
            let number = spec.event.config[0] as u32;
            if !seen.insert(number) {
                continue;
            }
            let part = match hits_of(spec, roots) {
                Hits::Probe => ProgramKind::Probes,
                Hits::Tracepoint | Hits::Nobodys => ProgramKind::Traces,
            };
            let event = open_anywhere(event)
                .map_err(EngineError::system("open the event that a BPF program is called by"))?;
            traced.push(Traced { number, name: spec.name().to_owned(), part, event });
        }
        Ok(traced)
    }

    /// Has the program called from here on.
    pub(super) fn attach(&self, stacks: &mut Stacks) -> Result<(), EngineError> {
        let attached = stacks.attach_trace(self.event.as_fd(), self.number, self.part);
        attached.map_err(|source| self.refusal(source))
    }

    fn refusal(&self, source: BpfError) -> EngineError {
        match source.is_permission() {
            true => EngineError::own(source),
            false => EngineError::own(NoProgramAt { event: self.name.clone(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_dynamic_events_distinguishes_probes() {
        let list = "p:probe_a/fn /a:0x10\nr8:probe_a/fn__return /a:0x10\np:kprobes/open do_open\n\
                    f:fprobes/read vfs_read\ne:eprobes/sw sched.sched_switch\ns:synthetic/x u64 y\n";
        for probe in ["probe_a:fn", "probe_a:fn__return", "kprobes:open"] {
            assert_eq!(hits_in(list, probe), Hits::Probe, "{probe}");
        }
        for other in ["fprobes:read", "eprobes:sw", "synthetic:x"] {
            assert_eq!(hits_in(list, other), Hits::Nobodys, "{other}");
        }
        for static_one in ["sched:sched_switch", "probe_a:f", "a:fn"] {
            assert_eq!(hits_in(list, static_one), Hits::Tracepoint, "{static_one}");
        }
    }
}
