//! From the event language's result to events that can be recorded.

use whit_engine_api::branch::{BranchFilter, BranchFilterError};
use whit_engine_api::settings::{CallGraph, DEFAULT_STACK_DUMP_BYTES};
use whit_events::{
    CallGraph as TermCallGraph, EventTerms, PreciseIp, ResolvedEvent, ResolvedGroup, Sampling,
};
use whit_perfdata::attr::pmu_type::TRACEPOINT;

use super::{EventSpec, Exclude, Precision, Rate};

/// An event that can be counted or written, but not recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnrecordableEvent {
    /// It is measured by the tool, not by the kernel.
    #[error("'{event}' can be counted, not sampled: leave it out of -e")]
    Tool {
        /// The event as the user wrote it.
        event: String,
    },
    /// Its branch records cannot be read.
    #[error("'{event}': {source}")]
    Branches {
        /// The event as the user wrote it.
        event: String,
        /// The reason.
        source: BranchFilterError,
    },
    /// The recorder does not support a term of the event.
    #[error("'{event}': the recorder does not take the term '{term}'")]
    Term {
        /// The event as the user wrote it.
        event: String,
        /// The part of it between slashes that is refused.
        term: String,
    },
}

/// All events of these groups, in order.
pub fn from_groups(groups: &[ResolvedGroup]) -> Result<Vec<EventSpec>, UnrecordableEvent> {
    groups
        .iter()
        .flat_map(|group| group.events.iter().map(move |event| (group, event)))
        .map(|(group, event)| {
            let is_grouped = group.explicit && group.events.len() > 1;
            Ok(EventSpec { leader: is_grouped.then_some(event.leader), ..from_event(event)? })
        })
        .collect()
}

fn from_event(event: &ResolvedEvent) -> Result<EventSpec, UnrecordableEvent> {
    check(event)?;
    let terms = &event.terms;
    let mut spec = EventSpec {
        config1: event.config[1],
        config2: event.config[2],
        config3: event.config[3],
        exclude: Exclude {
            user: event.exclude.user,
            kernel: event.exclude.kernel,
            hypervisor: event.exclude.hypervisor,
            guest: event.exclude.guest,
            host: event.exclude.host,
            idle: event.exclude.idle,
        },
        precision: match event.precise_ip {
            PreciseIp::Level(level) => Precision::Level(level),
            PreciseIp::Max => Precision::Max,
        },
        rate: terms.sampling.map(|sampling| match sampling {
            Sampling::Period(period) => Rate::Period(period),
            Sampling::FrequencyHz(hz) => Rate::FrequencyHz(hz),
        }),
        default_period: event.default_period,
        call_graph: call_graph(terms),
        stack_dump_bytes: terms.stack_size_bytes,
        max_stack: terms.max_stack,
        branches: branches(event)?,
        overwrite: terms.overwrite,
        inherit: terms.inherit,
        is_name_given: event.name_given,
        is_pinned: event.pinned,
        is_exclusive: event.exclusive,
        reads_group: event.sample_read,
        is_weak: event.weak_group,
        cpus: event.cpus.clone(),
        tracepoint: (event.pmu_type == TRACEPOINT && !event.name_given).then(|| event.name.clone()),
        ..EventSpec::new(&event.name, event.pmu_type, event.config[0])
    };
    if let Some(breakpoint) = event.breakpoint {
        (spec.config1, spec.config2) = (breakpoint.address.0, breakpoint.len);
        spec.bp_type = breakpoint.bp_type;
    }
    Ok(spec)
}

fn call_graph(terms: &EventTerms) -> Option<CallGraph> {
    Some(match terms.call_graph? {
        TermCallGraph::None => CallGraph::None,
        TermCallGraph::FramePointer => CallGraph::FramePointer,
        TermCallGraph::Lbr => CallGraph::Lbr,
        TermCallGraph::Dwarf => CallGraph::Dwarf {
            stack_dump_bytes: terms.stack_size_bytes.unwrap_or(DEFAULT_STACK_DUMP_BYTES),
        },
    })
}

fn branches(event: &ResolvedEvent) -> Result<Option<BranchFilter>, UnrecordableEvent> {
    let parse = |text: &String| {
        text.parse()
            .map_err(|source| UnrecordableEvent::Branches { event: event.name.clone(), source })
    };
    event.terms.branch_type.as_ref().map(parse).transpose()
}

fn check(event: &ResolvedEvent) -> Result<(), UnrecordableEvent> {
    let name = || event.name.clone();
    if event.tool.is_some() {
        return Err(UnrecordableEvent::Tool { event: name() });
    }
    let terms = &event.terms;
    let refused = [
        ("percore", terms.per_core),
        ("nr", terms.max_events.is_some()),
        ("aux-output", terms.aux_output),
        ("aux-action", terms.aux_action.is_some()),
        ("aux-sample-size", terms.aux_sample_size_bytes.is_some()),
        ("@", !terms.driver_config.is_empty()),
    ];
    match refused.iter().find(|(_, is_there)| *is_there) {
        Some((term, _)) => Err(UnrecordableEvent::Term { event: name(), term: (*term).to_owned() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_events::{PmuTable, TracefsIds, parse, resolve};

    fn events(text: &str) -> Result<Vec<EventSpec>, UnrecordableEvent> {
        let mut tracepoints = TracefsIds::new("/nonexistent");
        let list = parse(text).unwrap();
        from_groups(&resolve(&list, &PmuTable::default(), &mut tracepoints).unwrap())
    }

    #[test]
    fn groups_keep_their_leader_and_lone_events_have_none() {
        let specs = events("cpu-clock,{page-faults,context-switches}:S,task-clock").unwrap();
        let leaders: Vec<_> = specs.iter().map(|spec| spec.leader).collect();
        assert_eq!(leaders, [None, Some(1), Some(1), None]);
        assert!(specs[1].reads_group && !specs[0].reads_group);
        assert_eq!(specs[3].config, 1);
    }

    #[test]
    fn terms_and_modifiers_arrive() {
        let specs = events("cycles/period=1000,call-graph=dwarf,stack-size=4096/upp").unwrap();
        let spec = &specs[0];
        assert_eq!(spec.rate, Some(Rate::Period(1000)));
        assert_eq!(spec.call_graph, Some(CallGraph::Dwarf { stack_dump_bytes: 4096 }));
        assert_eq!(spec.precision, Precision::Level(2));
        assert!(spec.exclude.kernel && !spec.exclude.user);
        let specs = events("cycles/call-graph=lbr,overwrite/,cycles/branch_type=any/").unwrap();
        assert_eq!((specs[0].call_graph, specs[0].overwrite), (Some(CallGraph::Lbr), Some(true)));
        assert_eq!(specs[1].branches, Some(BranchFilter::ANY));
        let specs = events("mem:0x1000/8:rw").unwrap();
        assert_eq!((specs[0].config1, specs[0].config2, specs[0].bp_type), (0x1000, 8, 3));
        assert_eq!(specs[0].default_period, Some(1));
    }

    #[test]
    fn events_that_cannot_be_recorded_are_named() {
        let error = events("cycles/aux-output/").unwrap_err();
        assert!(error.to_string().contains("'aux-output'"), "{error}");
        let error = events("cycles/branch_type=sideways/").unwrap_err();
        assert!(error.to_string().contains("'sideways'"), "{error}");
        assert!(matches!(events("duration_time"), Err(UnrecordableEvent::Tool { .. })));
    }
}
