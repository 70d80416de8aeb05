//! Tracepoints, one or as many as patterns match.

use crate::ast::Event;
use crate::glob;
use crate::names::nearest;
use crate::pmu::TYPE_TRACEPOINT;
use crate::resolve::error::ResolveErrorKind;
use crate::resolve::resolved::Draft;
use crate::resolve::{MAX_RESOLVED_EVENTS, Outcome, Resolver, terms};
use crate::tracepoint::TracepointError;

impl Resolver<'_> {
    pub(super) fn tracepoint(
        &mut self,
        event: &Event,
        system: &str,
        name: &str,
    ) -> Outcome<Vec<Draft>> {
        let systems = match glob::is_glob(system) {
            true => matching(system, self.tracepoints.systems()?),
            false => vec![system.to_owned()],
        };
        let mut drafts = Vec::new();
        for system in &systems {
            let names = match glob::is_glob(name) {
                true => matching(name, self.tracepoints.names(system)?),
                false => vec![name.to_owned()],
            };
            for name in &names {
                if let Some(id) = self.tracepoints.id(system, name)? {
                    drafts.push(self.tracepoint_event(event, system, name, id)?);
                }
            }
            if drafts.len() > MAX_RESOLVED_EVENTS {
                return Err(ResolveErrorKind::TooManyEvents);
            }
        }
        if drafts.is_empty() { Err(self.unknown_tracepoint(system, name)?) } else { Ok(drafts) }
    }

    fn tracepoint_event(&self, event: &Event, system: &str, name: &str, id: u64) -> Outcome<Draft> {
        let mut draft = Draft::new(event, TYPE_TRACEPOINT);
        draft.event.name = format!("{system}:{name}");
        draft.event.pmu = self.pmu_name_of_type(TYPE_TRACEPOINT);
        draft.event.config[0] = id;
        draft.event.default_period = Some(1);
        terms::apply_common(&mut draft.event, &event.terms)?;
        Ok(draft)
    }

    fn unknown_tracepoint(
        &mut self,
        system: &str,
        name: &str,
    ) -> Result<ResolveErrorKind, TracepointError> {
        let systems = self.tracepoints.systems()?;
        let nearest = if systems.iter().any(|known| known == system) {
            let names = self.tracepoints.names(system)?;
            nearest(name, names.iter().map(String::as_str)).map(|known| format!("{system}:{known}"))
        } else {
            nearest(system, systems.iter().map(String::as_str))
                .map(|known| format!("{known}:{name}"))
        };
        let (system, name) = (system.to_owned(), name.to_owned());
        Ok(ResolveErrorKind::UnknownTracepoint { system, name, nearest })
    }

    /// A tracepoint of this name, where its system was left out. Only a suggestion: where
    /// tracepoints cannot be listed there is none.
    pub(super) fn tracepoint_called(&mut self, name: &str) -> Option<String> {
        let systems = self.tracepoints.systems().ok()?;
        systems.into_iter().find_map(|system| {
            let id = self.tracepoints.id(&system, name).ok()?;
            id.map(|_| format!("{system}:{name}"))
        })
    }
}

fn matching(pattern: &str, names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| glob::glob_matches(pattern, name)).collect()
}
