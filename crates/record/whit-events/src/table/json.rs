//! The text of a table file.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::entry::Entry;
use super::{EventTable, MAX_TABLE_EVENTS, Owner};

/// An architecture's own events, which the tables of its models refer to, by their names in small
/// letters.
#[derive(Clone, Debug, Default)]
pub(super) struct Standard(BTreeMap<String, Entry>);

impl Standard {
    /// Takes in the events of one file.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        for entry in entries(text)?.into_iter().take(MAX_TABLE_EVENTS) {
            if let Some(name) = entry.text("EventName") {
                self.0.insert(name.to_lowercase(), entry);
            }
        }
        Ok(())
    }
}

impl EventTable {
    /// The events of a file: a list of objects, or an object whose `Events` is one. An error in one
    /// event costs that event, and is kept in `problems` under `path`; so is a text that is no such
    /// list. Events that name no unit belong to the cores.
    pub fn from_json(path: &str, text: &str) -> EventTable {
        let mut table = EventTable::default();
        table.add_json(path, text, &Owner::Cores, &Standard::default());
        table
    }

    pub(super) fn add_json(&mut self, path: &str, text: &str, owner: &Owner, standard: &Standard) {
        let entries = match entries(text) {
            Ok(entries) => entries,
            Err(why) => return self.problem(path, why),
        };
        for entry in entries {
            match complete(entry, standard).and_then(|entry| entry.event(owner)) {
                Ok(None) => {}
                Ok(Some(_)) if self.events.len() == MAX_TABLE_EVENTS => {
                    let why = format!("holds more than {MAX_TABLE_EVENTS} events with the others");
                    return self.problem(path, why);
                }
                Ok(Some(event)) => self.events.push(event),
                Err(why) => self.problem(path, why),
            }
        }
    }
}

/// Adds the fields of the architecture's standard event that the entry refers to.
fn complete(entry: Entry, standard: &Standard) -> Result<Entry, String> {
    let Some(name) = entry.text("ArchStdEvent") else { return Ok(entry) };
    match standard.0.get(&name.to_lowercase()) {
        Some(defaults) => Ok(entry.with_defaults(defaults)),
        None => Err(format!("event {name}: no file of the architecture describes it")),
    }
}

fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let list = match value {
        Value::Array(list) => list,
        Value::Object(mut object) => match object.remove("Events") {
            Some(Value::Array(list)) => list,
            _ => return Err("holds no list of events".to_owned()),
        },
        _ => return Err("holds no list of events".to_owned()),
    };
    let object = |value| match value {
        Value::Object(object) => Entry(object),
        _ => Entry(Map::new()),
    };
    Ok(list.into_iter().map(object).collect())
}
