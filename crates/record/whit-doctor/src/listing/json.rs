//! The list as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use whit_events::Pmu;
use whit_types::escape_json;

use super::render::cpu_list;
use super::{ListedEvent, Listing, Note, Openable};

/// `whit list --json`: one object.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "List"))]
struct JsonListing<'a> {
    events: Vec<JsonEvent<'a>>,
    pmus: Vec<JsonPmu<'a>>,
    notes: &'a [Note],
}

/// An event that can be written after `-e`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Event"))]
struct JsonEvent<'a> {
    name: &'a str,
    aliases: &'a [String],
    kind: &'static str,
    pmus: &'a [String],
    terms: &'a str,
    description: &'a str,
    long_description: &'a str,
    unit: &'a str,
    scale: f64,
    per_package: bool,
    snapshot: bool,
    deprecated: bool,
    /// `state`, with `detail`, `remedy` or `parameters` where there are any.
    openable: &'a Openable,
}

/// A performance monitoring unit.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Pmu"))]
struct JsonPmu<'a> {
    name: &'a str,
    alias: Option<&'a str>,
    #[serde(rename = "type")]
    pmu_type: u32,
    core: bool,
    uncore: bool,
    cpus: Option<String>,
    identifier: Option<&'a str>,
    formats: BTreeMap<&'a str, String>,
    caps: &'a BTreeMap<String, String>,
}

/// The list as one JSON object: `events`, `pmus` and `notes` (`docs/schemas/list.json`).
///
/// # Errors
///
/// None in practice: every field can be written as JSON.
pub fn render_listing_json(listing: &Listing) -> Result<String, serde_json::Error> {
    let json = JsonListing {
        events: listing.events.iter().map(JsonEvent::of).collect(),
        pmus: listing.pmus.iter().map(JsonPmu::of).collect(),
        notes: &listing.notes,
    };
    let json = serde_json::to_string_pretty(&json)?;
    Ok(escape_json(&json).into_owned() + "\n")
}

impl JsonEvent<'_> {
    fn of(ListedEvent { entry, openable }: &ListedEvent) -> JsonEvent<'_> {
        JsonEvent {
            name: &entry.name,
            aliases: &entry.aliases,
            kind: entry.class.descriptor(),
            pmus: &entry.pmus,
            terms: &entry.terms,
            description: &entry.description,
            long_description: &entry.long_description,
            unit: &entry.unit,
            scale: entry.scale,
            per_package: entry.per_package,
            snapshot: entry.snapshot,
            deprecated: entry.deprecated,
            openable,
        }
    }
}

impl JsonPmu<'_> {
    fn of(pmu: &Pmu) -> JsonPmu<'_> {
        JsonPmu {
            name: &pmu.name,
            alias: pmu.alias.as_deref(),
            pmu_type: pmu.pmu_type,
            core: pmu.core,
            uncore: pmu.uncore,
            cpus: cpu_list(pmu),
            identifier: pmu.identifier.as_deref(),
            formats: pmu.formats.iter().map(|(n, spec)| (n.as_str(), spec.to_string())).collect(),
            caps: &pmu.caps,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<JsonListing<'_>>("docs/schemas/list.json");
    }
}
