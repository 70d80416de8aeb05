//! Events of a PMU: named events expanded, terms laid into the `config` words.

use std::collections::BTreeSet;

use whit_types::{HardwareEvent, SoftwareEvent};

use crate::ast::Event;
use crate::cache::CacheEvent;
use crate::names::nearest;
use crate::parse_term::raw_config;
use crate::pmu::{Pmu, PmuEvent, TYPE_HARDWARE, TYPE_HW_CACHE, TYPE_RAW, TYPE_SOFTWARE};
use crate::resolve::error::ResolveErrorKind;
use crate::resolve::resolved::{Draft, ResolvedEvent};
use crate::resolve::{PMU_TYPE_SHIFT, terms};
use crate::term::{Term, TermValue, common_term_names};

/// The mark in sysfs of a parameter that the user has to give.
const PARAMETER: &str = "?";

/// The event on this PMU. The terms of a named event are applied first and the user's own after
/// them, each replacing the field that it sets. (perf merges the bits of the two, so that
/// `mem-loads,ldlat=30` asks for a latency of 31 where the named event says 3.)
pub(super) fn event_of_pmu(event: &Event, pmu: &Pmu) -> Result<Draft, ResolveErrorKind> {
    let mut draft = Draft::new(event, pmu.pmu_type);
    let resolved = &mut draft.event;
    resolved.use_pmu(pmu);
    let (named, own) = split_named(event, pmu)?;
    if let Some((name, named)) = named {
        apply_named(resolved, pmu, name, named, &own)?;
    }
    for term in &own {
        match term {
            Term::Pmu { name, value } => set_field(resolved, pmu, name, value)?,
            common => terms::apply_common(resolved, std::slice::from_ref(common))?,
        }
    }
    Ok(draft)
}

type Split<'a> = (Option<(&'a str, &'a PmuEvent)>, Vec<&'a Term>);

/// Splits the terms into the PMU's named event (at most one) and the rest.
fn split_named<'a>(event: &'a Event, pmu: &'a Pmu) -> Result<Split<'a>, ResolveErrorKind> {
    let mut named: Option<(&str, &PmuEvent)> = None;
    let mut own = Vec::new();
    for term in &event.terms {
        match (named_event(term, pmu), named) {
            (None, _) => own.push(term),
            (Some(found), None) => named = Some(found),
            (Some((second, _)), Some((first, _))) => {
                let (pmu, first, second) = (pmu.name.clone(), first.into(), second.into());
                return Err(ResolveErrorKind::TwoEvents { pmu, first, second });
            }
        }
    }
    Ok((named, own))
}

/// `NAME` alone, or `event=NAME`, where the PMU has no field but an event of that name.
fn named_event<'a>(term: &'a Term, pmu: &'a Pmu) -> Option<(&'a str, &'a PmuEvent)> {
    let Term::Pmu { name, value } = term else { return None };
    let name = match value {
        TermValue::Flag if !pmu.formats.contains_key(name) => name,
        TermValue::Text(text) if name == "event" => text,
        _ => return None,
    };
    let of_pmu = |name: &'a str| pmu.event(name).map(|event| (name, event));
    // `cpu/cycles/` is the event that the PMU itself calls `cpu-cycles`, where it has one.
    let aliases = || HardwareEvent::from_name(name)?.names().iter().find_map(|alias| of_pmu(alias));
    of_pmu(name).or_else(aliases)
}

fn apply_named(
    resolved: &mut ResolvedEvent,
    pmu: &Pmu,
    name: &str,
    named: &PmuEvent,
    own: &[&Term],
) -> Result<(), ResolveErrorKind> {
    let given: BTreeSet<&str> = own.iter().filter_map(|term| pmu_term_name(term)).collect();
    for term in &named.terms {
        match term {
            Term::Pmu { name: parameter, value: TermValue::Text(text) } if text == PARAMETER => {
                if !given.contains(parameter.as_str()) {
                    return Err(ResolveErrorKind::MissingParameter {
                        pmu: pmu.name.clone(),
                        event: name.to_owned(),
                        parameter: parameter.clone(),
                    });
                }
            }
            Term::Pmu { name, value } => set_field(resolved, pmu, name, value)?,
            // Tables of vendors propose a period; what the user says goes before it.
            Term::Period(period) => resolved.default_period = Some(*period),
            common => terms::apply_common(resolved, std::slice::from_ref(common))?,
        }
    }
    resolved.scale = named.scale;
    resolved.unit.clone_from(&named.unit);
    resolved.per_package = named.per_package;
    resolved.snapshot = named.snapshot;
    Ok(())
}

fn pmu_term_name(term: &Term) -> Option<&str> {
    match term {
        Term::Pmu { name, .. } => Some(name),
        _ => None,
    }
}

fn set_field(
    resolved: &mut ResolvedEvent,
    pmu: &Pmu,
    name: &str,
    value: &TermValue,
) -> Result<(), ResolveErrorKind> {
    let Some(format) = pmu.formats.get(name) else {
        if *value == TermValue::Flag && set_generic(resolved, pmu, name) {
            return Ok(());
        }
        return Err(unknown_term(pmu, name));
    };
    let (owner, term) = (pmu.name.clone(), name.to_owned());
    let number = match value {
        TermValue::Number(number) => *number,
        TermValue::Flag if format.width() == 1 => 1,
        TermValue::Flag => {
            return Err(ResolveErrorKind::ValueMissing { pmu: owner, term, bits: format.width() });
        }
        TermValue::Text(text) => {
            let value = text.clone();
            return Err(ResolveErrorKind::NotANumber { pmu: owner, term, value });
        }
    };
    if format.set(&mut resolved.config, number) {
        return Ok(());
    }
    let max = format.max_value();
    Err(ResolveErrorKind::ValueTooBig { pmu: owner, term, value: number, max, spec: *format })
}

/// `cpu/cycles/`, `cpu/L1-dcache-loads/`, `cpu/r1a8/`, `software/cs/`: built-in names where the
/// PMU itself has none of that name.
fn set_generic(resolved: &mut ResolvedEvent, pmu: &Pmu, name: &str) -> bool {
    if pmu.pmu_type == TYPE_SOFTWARE {
        let event = SoftwareEvent::from_name(name);
        return event.map(|event| resolved.config[0] = event.config()).is_some();
    }
    if let Some(config) = raw_config(name) {
        resolved.config[0] = config;
        return true;
    }
    let hardware = HardwareEvent::from_name(name).map(|event| (TYPE_HARDWARE, event.config()));
    let cache = CacheEvent::from_name(name)
        .filter(|event| event.cache.ops().contains(&event.op))
        .map(|event| (TYPE_HW_CACHE, event.config()));
    match hardware.or(cache) {
        Some((pmu_type, config)) if pmu.core => {
            // The one PMU of a machine with equal cores has the raw type and needs no mention.
            let extended = if pmu.pmu_type == TYPE_RAW { 0 } else { pmu.pmu_type };
            resolved.pmu_type = pmu_type;
            resolved.config[0] = config | u64::from(extended) << PMU_TYPE_SHIFT;
            true
        }
        _ => false,
    }
}

fn unknown_term(pmu: &Pmu, name: &str) -> ResolveErrorKind {
    let own = pmu.formats.keys().chain(pmu.events.keys()).map(String::as_str);
    let common = common_term_names().map(|known| -> &str { known });
    let nearest = nearest(name, own.chain(common)).map(str::to_owned);
    ResolveErrorKind::UnknownTerm {
        pmu: pmu.name.clone(),
        term: name.to_owned(),
        fields: pmu.formats.keys().cloned().collect(),
        events: pmu.events.keys().cloned().collect(),
        nearest,
    }
}
