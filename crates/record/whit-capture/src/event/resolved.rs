//! From the event language's result to events that can be recorded.

use whit_engine_api::branch::{BranchFilter, BranchFilterError};
use whit_events::{ResolvedEvent, ResolvedGroup};

use super::EventSpec;

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
pub fn from_groups(groups: Vec<ResolvedGroup>) -> Result<Vec<EventSpec>, UnrecordableEvent> {
    let of_group = |group: ResolvedGroup| {
        let is_grouped = group.explicit && group.events.len() > 1;
        group.events.into_iter().map(move |event| {
            check(&event)?;
            let (branches, leader) = (branches(&event)?, is_grouped.then_some(event.leader));
            Ok(EventSpec { branches, leader, ..EventSpec::from(event) })
        })
    };
    groups.into_iter().flat_map(of_group).collect()
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
        from_groups(resolve(&list, &PmuTable::default(), &mut tracepoints).unwrap())
    }

    #[test]
    fn groups_keep_their_leader_and_lone_events_have_none() {
        let specs = events("cpu-clock,{page-faults,context-switches}:S,task-clock").unwrap();
        let leaders: Vec<_> = specs.iter().map(|spec| spec.leader).collect();
        assert_eq!(leaders, [None, Some(1), Some(1), None]);
        assert!(specs[1].event.sample_read && !specs[0].event.sample_read);
        assert_eq!(specs[3].event.config[0], 1);
    }

    #[test]
    fn branch_filters_of_events_are_read() {
        let specs = events("cycles/branch_type=any/,cycles").unwrap();
        assert_eq!((specs[0].branches, specs[1].branches), (Some(BranchFilter::ANY), None));
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
