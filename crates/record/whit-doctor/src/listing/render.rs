//! The list as text, and as names alone.

use std::fmt::Write;

use whit_events::{EventClass, Pmu};
use whit_types::escape;

use super::{ListedEvent, Listing};
use crate::checks::several;

/// Where perf puts the kind of an event.
const NAME_WIDTH: usize = 50;
/// Room for the longest usual kind.
const KIND_WIDTH: usize = 22;

/// Room for the longest usual state.
const STATE_WIDTH: usize = 15;

/// How much a text says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextOptions {
    /// Leave descriptions out.
    pub without_descriptions: bool,
    /// Say what each PMU and event consists of, on lines of their own.
    pub details: bool,
}

/// One event a line: names, kind, whether it opens, and a description behind `#`. With details,
/// each PMU stands before its first event, and lines below an event say more of it.
pub fn render_listing_text(listing: &Listing, options: TextOptions) -> String {
    let mut text = String::new();
    let mut left: Vec<&Pmu> = if options.details { listing.pmus.iter().collect() } else { vec![] };
    for event in &listing.events {
        // Behind the events of PMUs come the PMUs without any.
        let before_others = event.entry.class > EventClass::Pmu;
        left.retain(|pmu| {
            let now = before_others || event.entry.pmus.contains(&pmu.name);
            if now {
                describe_pmu(&mut text, pmu);
            }
            !now
        });
        line(&mut text, event, options);
        if options.details {
            details(&mut text, event);
        }
    }
    left.iter().for_each(|pmu| describe_pmu(&mut text, pmu));
    text
}

/// Every spelling of every event, one a line: for completion by shells and for scripts.
pub fn render_names(listing: &Listing) -> String {
    let mut text = String::new();
    let writable = |event: &&ListedEvent| {
        !matches!(event.entry.class, EventClass::Raw | EventClass::Breakpoint)
    };
    for event in listing.events.iter().filter(writable) {
        for name in [&event.entry.name].into_iter().chain(&event.entry.aliases) {
            push_line(&mut text, name);
        }
    }
    text
}

fn line(text: &mut String, ListedEvent { entry, openable }: &ListedEvent, options: TextOptions) {
    let mut names = escape(&entry.name).into_owned();
    for alias in &entry.aliases {
        let _ = write!(names, " OR {}", escape(alias));
    }
    let kind = format!("[{}]", entry.class.descriptor());
    let state = openable.to_string();
    let mut line = format!("  {names:<NAME_WIDTH$} {kind:<KIND_WIDTH$}  {state:<STATE_WIDTH$}");
    let mut remarks = Vec::new();
    if !options.without_descriptions && !entry.description.is_empty() {
        remarks.push(one_line(&entry.description));
    }
    if !entry.unit.is_empty() {
        remarks.push(format!("in {}", entry.unit));
    }
    if entry.pmus.len() > 1 {
        remarks.push(format!("{} PMUs", entry.pmus.len()));
    }
    if entry.deprecated {
        remarks.push("deprecated".to_owned());
    }
    if !remarks.is_empty() {
        let _ = write!(line, "  # {}", remarks.join("; "));
    }
    push_line(text, line.trim_end());
}

/// Names and descriptions come from files of others: each line is escaped whole.
fn push_line(text: &mut String, line: &str) {
    text.push_str(&escape(line));
    text.push('\n');
}

/// Text of vendors may have lines; a list has one for each event.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn details(text: &mut String, ListedEvent { entry, openable }: &ListedEvent) {
    let indent = " ".repeat(8);
    if let Some(detail) = openable.detail() {
        push_line(text, &format!("{indent}here: {detail}"));
    }
    if !entry.terms.is_empty() {
        push_line(text, &format!("{indent}terms: {}", entry.terms));
    }
    if entry.scale != 1.0 {
        push_line(text, &format!("{indent}scale: {} {}", entry.scale, entry.unit));
    }
    if entry.pmus.len() > 1 {
        push_line(text, &format!("{indent}PMUs: {}", entry.pmus.join(", ")));
    }
    let marks = [(entry.per_package, "once for each package"), (entry.snapshot, "a snapshot")];
    for (_, mark) in marks.iter().filter(|(set, _)| *set) {
        push_line(text, &format!("{indent}counts: {mark}"));
    }
    if !entry.long_description.is_empty() && entry.long_description != entry.description {
        push_line(text, &format!("{indent}{}", one_line(&entry.long_description)));
    }
}

/// `PMU cpu: type 4, …` and its terms, one a line.
fn describe_pmu(text: &mut String, pmu: &Pmu) {
    let mut facts = vec![format!("type {}", pmu.pmu_type)];
    if pmu.core {
        facts.push("of the cores".to_owned());
    }
    facts.extend(pmu.alias.as_ref().map(|alias| format!("also called {alias}")));
    facts.extend(pmu.identifier.as_ref().map(|identifier| format!("device {identifier}")));
    facts.push(match cpu_list(pmu) {
        Some(cpus) if cpus.is_empty() => "on no CPU that is online".to_owned(),
        Some(cpus) if cpus.contains([',', '-']) => format!("on CPUs {cpus}"),
        Some(cpu) => format!("on CPU {cpu}"),
        None => "on any CPU".to_owned(),
    });
    facts.push(several(pmu.events.len(), "named event"));
    push_line(text, &format!("  PMU {}: {}", pmu.name, facts.join(", ")));
    for (name, spec) in &pmu.formats {
        let max = spec.max_value();
        push_line(text, &format!("        {name:<20} {spec}, up to {max:#x}"));
    }
    for (name, value) in &pmu.caps {
        push_line(text, &format!("        {name:<20} {value} (capability)"));
    }
}

/// `0-3,8`
pub(super) fn cpu_list(pmu: &Pmu) -> Option<String> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in pmu.cpus.as_ref()? {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu.0 => *last = cpu.0,
            _ => ranges.push((cpu.0, cpu.0)),
        }
    }
    let shown = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    Some(ranges.iter().map(shown).collect::<Vec<_>>().join(","))
}
