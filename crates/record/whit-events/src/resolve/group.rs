//! Groups: modifiers of the whole, and the split by PMU.

use crate::ast::{Event, Group};
use crate::modifiers::Modifiers;
use crate::pmu::{TYPE_BREAKPOINT, TYPE_SOFTWARE, TYPE_TRACEPOINT};
use crate::resolve::Resolver;
use crate::resolve::error::{ResolveError, ResolveErrorKind};
use crate::resolve::resolved::{Draft, PreciseIp, ResolvedEvent, ResolvedGroup};

impl Resolver<'_> {
    pub(super) fn group(&mut self, group: &Group) -> Result<Vec<ResolvedGroup>, ResolveError> {
        let mut events: Vec<ResolvedEvent> = Vec::new();
        for (index, event) in group.events.iter().enumerate() {
            if index > 0 && (event.modifiers.pinned || event.modifiers.exclusive) {
                return Err(self.error(event, ResolveErrorKind::PinnedMember));
            }
            for draft in self.event(event)? {
                events.push(self.with_group_modifiers(draft, event, &group.modifiers)?);
            }
        }
        let mut parts = split_by_pmu(events);
        let split = parts.len() > 1;
        for part in &mut parts {
            mark_leader(part, &group.modifiers);
        }
        let name = &group.name;
        let group_of = |events| ResolvedGroup { name: name.clone(), explicit: true, split, events };
        Ok(parts.into_iter().map(group_of).collect())
    }

    fn with_group_modifiers(
        &self,
        mut draft: Draft,
        event: &Event,
        modifiers: &Modifiers,
    ) -> Result<ResolvedEvent, ResolveError> {
        if modifiers.is_empty() {
            return Ok(draft.event);
        }
        let exclude = modifiers.apply(draft.event.exclude, &mut draft.guest_host_chosen);
        let resolved = &mut draft.event;
        resolved.exclude = exclude;
        resolved.sample_read |= modifiers.sample_read;
        resolved.weak_group |= modifiers.weak;
        resolved.bpf |= modifiers.bpf;
        resolved.precise_ip = match (resolved.precise_ip, modifiers) {
            (_, Modifiers { precise_max: true, .. }) | (PreciseIp::Max, _) => PreciseIp::Max,
            (PreciseIp::Level(level), _) => PreciseIp::Level(level + modifiers.precise),
        };
        if matches!(resolved.precise_ip, PreciseIp::Level(level) if level > Modifiers::MAX_PRECISE)
        {
            return Err(self.error(event, ResolveErrorKind::TooPrecise));
        }
        Ok(draft.event)
    }
}

/// The kernel lets only leaders be pinned or exclusive, and it then holds for the group.
fn mark_leader(part: &mut [ResolvedEvent], modifiers: &Modifiers) {
    let pinned = modifiers.pinned || part.iter().any(|event| event.pinned);
    let exclusive = modifiers.exclusive || part.iter().any(|event| event.exclusive);
    for (index, event) in part.iter_mut().enumerate() {
        event.pinned = pinned && index == 0;
        event.exclusive = exclusive && index == 0;
    }
}

/// Splits a group into one for each PMU, in the order in which they occur. Software events,
/// tracepoints and breakpoints can join any and stay in the first.
fn split_by_pmu(events: Vec<ResolvedEvent>) -> Vec<Vec<ResolvedEvent>> {
    let mut parts: Vec<(Option<String>, Vec<ResolvedEvent>)> = Vec::new();
    for event in events {
        let anywhere = [TYPE_SOFTWARE, TYPE_TRACEPOINT, TYPE_BREAKPOINT].contains(&event.pmu_type);
        let pmu = (!anywhere).then(|| event.pmu.clone());
        if let Some((owner, part)) =
            parts.iter_mut().find(|(owner, _)| pmu.is_none() || owner.is_none() || *owner == pmu)
        {
            if owner.is_none() {
                *owner = pmu;
            }
            part.push(event);
        } else {
            parts.push((pmu, vec![event]));
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}
