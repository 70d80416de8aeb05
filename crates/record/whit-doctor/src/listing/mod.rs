//! The events that can be written after `-e`, and which of them open here.
//!
//! Each event is opened once and runs for a moment. A kernel has thousands of tracepoints, and
//! opening one patches kernel code. They are opened one by one only if few are selected or the user
//! asks for it; otherwise one of them stands for all in a note.

mod json;
mod open;
mod render;
mod select;

use serde::Serialize;
use whit_events::{
    CatalogueEntry, EventClass, Pmu, PmuTable, TracepointIds, catalogue, tracepoint_entries,
};

use crate::checks::several;
use crate::machine::{Machine, Privileges};

pub use json::render_listing_json;
pub use open::Openable;
pub use render::{TextOptions, render_listing_text, render_names};
pub use select::{Selection, Unmatched};

/// Most tracepoints that are opened without being asked to.
pub const MAX_TRACEPOINTS_TRIED: usize = 16;
/// The tracepoint that stands for the others, where it is among them.
const USUAL_TRACEPOINT: &str = "sched:sched_switch";

/// Which events are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Trial {
    /// All but tracepoints beyond [`MAX_TRACEPOINTS_TRIED`].
    #[default]
    Usual,
    /// Every listed event is opened.
    Everything,
    /// No event is opened.
    Nothing,
}

/// The selected events, each with the result of opening it.
#[derive(Clone, PartialEq, Debug)]
pub struct Listing {
    /// The selected events.
    pub events: Vec<ListedEvent>,
    /// The PMUs of those events, or all where nothing in particular was selected.
    pub pmus: Vec<Pmu>,
    /// Events that are hidden or restricted, and the reasons.
    pub notes: Vec<Note>,
    /// Patterns that no event matches.
    pub unmatched: Vec<Unmatched>,
}

/// An event and whether it opens.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedEvent {
    /// Name, class and description from the catalogue.
    pub entry: CatalogueEntry,
    /// Whether it can be counted here.
    pub openable: Openable,
}

/// Something that concerns more than one event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Note {
    /// The hidden or restricted events: `2 312 tracepoints`.
    pub what: String,
    /// The command that changes it, where there is one.
    pub remedy: Option<String>,
}

/// Lists what `selection` wants of the PMUs in `table` and of `tracepoints`.
pub fn list(
    machine: &mut Machine,
    table: &PmuTable,
    tracepoints: &mut dyn TracepointIds,
    selection: &Selection,
    trial: Trial,
) -> Listing {
    let mut notes = table_notes(table);
    let mut entries = catalogue(table);
    if selection.wants_tracepoints() {
        match tracepoint_entries(tracepoints) {
            Ok(found) => entries.extend(found),
            Err(error) => {
                let what = format!("tracepoints are hidden: {error}");
                notes.push(Note { what, remedy: error.remedy() });
            }
        }
    }
    let (entries, unmatched) = selection.apply(entries, table);
    let pmus = table.pmus.iter().filter(|pmu| selection.wants_pmu(pmu, &entries));
    let pmus = pmus.cloned().collect();
    let events = match Privileges::read(machine) {
        Ok(privileges) => {
            let mut opener = open::Opener { machine, table, tracepoints, privileges };
            try_all(&mut opener, entries, trial, &mut notes)
        }
        Err(error) => {
            let what = format!("events are not tried: /proc/self/status cannot be read: {error}");
            notes.push(Note { what, remedy: Some("sudo mount -t proc proc /proc".to_owned()) });
            entries.into_iter().map(not_tried).collect()
        }
    };
    notes.extend(restrictions(&events));
    Listing { events, pmus, notes, unmatched }
}

fn not_tried(entry: CatalogueEntry) -> ListedEvent {
    ListedEvent { entry, openable: Openable::NotTried }
}

fn try_all(
    opener: &mut open::Opener<'_>,
    entries: Vec<CatalogueEntry>,
    trial: Trial,
    notes: &mut Vec<Note>,
) -> Vec<ListedEvent> {
    let is_tracepoint = |entry: &CatalogueEntry| entry.class == EventClass::Tracepoint;
    let tracepoints = entries.iter().filter(|entry| is_tracepoint(entry)).count();
    let each = trial == Trial::Everything || tracepoints <= MAX_TRACEPOINTS_TRIED;
    if trial == Trial::Usual && !each {
        let usual = entries.iter().find(|entry| entry.name == USUAL_TRACEPOINT);
        let one = usual.or_else(|| entries.iter().find(|entry| is_tracepoint(entry)));
        notes.extend(one.map(|one| stand_in(opener, one, tracepoints)));
    }
    entries
        .into_iter()
        .map(|entry| match trial {
            Trial::Nothing => not_tried(entry),
            _ if is_tracepoint(&entry) && !each => not_tried(entry),
            _ => ListedEvent { openable: opener.try_entry(&entry), entry },
        })
        .collect()
}

/// The note for many tracepoints, from the result of opening one.
fn stand_in(opener: &mut open::Opener<'_>, one: &CatalogueEntry, count: usize) -> Note {
    let outcome = opener.try_entry(one);
    Note {
        what: format!(
            "the {count} tracepoints were not opened one by one (--check-all does it); {}, tried \
             for all of them: {outcome}",
            one.name
        ),
        remedy: outcome.remedy().map(str::to_owned),
    }
}

fn table_notes(table: &PmuTable) -> Vec<Note> {
    table.problems.iter().map(|problem| Note { what: problem.to_string(), remedy: None }).collect()
}

/// One note for each way in which events are restricted.
fn restrictions(events: &[ListedEvent]) -> Vec<Note> {
    let mut notes: Vec<(String, String, usize)> = Vec::new();
    for event in events {
        let (Openable::UserOnly { remedy: Some(remedy) }
        | Openable::NotPermitted { remedy: Some(remedy), .. }
        | Openable::DoesNotCount { remedy: Some(remedy), .. }) = &event.openable
        else {
            continue;
        };
        let state = event.openable.state().to_owned();
        match notes.iter_mut().find(|(known, lift, _)| *known == state && lift == remedy) {
            Some((.., count)) => *count += 1,
            None => notes.push((state, remedy.clone(), 1)),
        }
    }
    let note = |(state, remedy, count): (String, String, usize)| Note {
        what: format!("{}: {state}", several(count, "event")),
        remedy: Some(remedy),
    };
    notes.into_iter().map(note).collect()
}
