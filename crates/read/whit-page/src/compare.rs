//! A page that compares two sides: a profile with the samples of both, and the verdicts of `whit diff`.
//! `web/src/compare.js` reads what this writes.

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::value::RawValue;
use whit_profile::model::{FunctionId, Profile};
use whit_types::OutsideText;
use whit_view::diff::{Diff, FunctionName, document, is_of_commands, stable_binary};
use whit_view::differences::{self, Differences};
use whit_view::hists::Filters;

use super::HtmlError;
use super::tables::Tables;

/// Functions of an event that a page compares at most; those that differ come first.
pub const MAX_COMPARED: usize = 5_000;

/// Names of the sides, as they stand behind the names of events.
const SIDES: [&str; 2] = ["before", "after"];

/// Two sides in one profile, for [`Content`](super::Content).
#[derive(Debug)]
pub struct Comparison<'a> {
    diff: &'a Diff,
    filters: &'a Filters,
    measures: &'a [Differences],
}

impl<'a> Comparison<'a> {
    /// Joins the profiles of both sides into one: each event is there once for each side, and functions that the
    /// comparison matched are one. `filters` are those of the comparison: samples of other commands go. `None` without
    /// profiles.
    pub fn new(
        sides: [Vec<Profile>; 2],
        diff: &'a Diff,
        filters: &'a Filters,
    ) -> Option<(Comparison<'a>, Profile)> {
        let mut all = Vec::new();
        for (side, profiles) in SIDES.iter().zip(sides) {
            for mut profile in profiles {
                for event in &mut profile.events {
                    event.name = side_name(&event.name, side);
                }
                // Those of recordings at other times have no common time.
                (profile.singles, profile.blocks) = (None, None);
                all.push(profile);
            }
        }
        let mut profile = whit_profile::merge(all)?;
        // Behind the merge, which adds up the events: shares stay those of all samples.
        let comms = &profile.comms;
        profile.rows.retain(|row| is_of_commands(filters, &comms[row.comm.index()]));
        join_functions(&mut profile, diff);
        Some((Comparison { diff, filters, measures: &[] }, profile))
    }

    /// With differences of waits, requests and the like.
    #[must_use]
    pub fn with_measures(self, measures: &'a [Differences]) -> Comparison<'a> {
        Comparison { measures, ..self }
    }
}

fn side_name(event: &OutsideText, side: &str) -> OutsideText {
    format!("{} ({side})", event.exact()).into()
}

/// A function is the same whether or not the compiler inlined it, in each build of a binary, and where it was renamed.
fn join_functions(profile: &mut Profile, diff: &Diff) {
    let rows = diff.events.iter().flat_map(|event| &event.rows);
    let renamed = rows.filter_map(|row| Some((key(row.renamed.as_ref()?), key(&row.name))));
    let renamed: FxHashMap<_, _> = renamed.collect();
    let mut first: FxHashMap<(&str, &str), FunctionId> = FxHashMap::default();
    let binaries = stable_binaries(profile);
    let ids = profile.functions.iter().enumerate().map(|(id, function)| {
        let binary = binaries[function.dso.index()].exact();
        let own = (binary, function.name.exact());
        let name = renamed.get(&own).copied().unwrap_or(own);
        *first.entry(name).or_insert(FunctionId(id as u32))
    });
    let joined: Vec<FunctionId> = ids.collect();
    for frame in &mut profile.frames {
        frame.inlined = false;
        // Lines of two builds have nothing in common.
        frame.source = None;
        frame.function = joined[frame.function.index()];
    }
}

/// The names by which the comparison knows binaries.
fn stable_binaries(profile: &Profile) -> Vec<OutsideText> {
    profile.dsos.iter().map(|dso| stable_binary(&dso.short_name)).collect()
}

fn key(name: &FunctionName) -> (&str, &str) {
    (name.binary.exact(), name.function.exact())
}

/// The block of the page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CompareBlock {
    /// The document of `whit diff --json`.
    diff: Box<RawValue>,
    events: Vec<CompareEvent>,
    /// The only commands whose samples are there; empty for all.
    commands: Vec<String>,
    /// The only binaries and functions that have statistics; empty for all.
    narrowed: Vec<String>,
    max_rows: usize,
    /// Documents of `whit diff --waits --json` and the like.
    measures: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CompareEvent {
    /// The page's events before and after.
    sides: [Option<usize>; 2],
    /// For each row one more than the page's function, 0 where no node leads to it.
    functions: Vec<u32>,
    left_off: usize,
}

pub(crate) fn block(
    comparison: &Comparison<'_>,
    profile: &Profile,
    tables: &Tables<'_>,
) -> Result<CompareBlock, HtmlError> {
    let Comparison { diff, filters, measures } = comparison;
    let mut places: FxHashMap<(&str, &str), u32> = FxHashMap::default();
    let binaries = stable_binaries(profile);
    for (id, place) in &tables.function_of {
        let function = &profile.functions[id.index()];
        let binary = binaries[function.dso.index()].exact();
        places.insert((binary, function.name.exact()), *place);
    }
    let event = |event: &whit_view::diff::EventDiff| CompareEvent {
        sides: SIDES.map(|side| {
            let name = side_name(&event.name, side);
            profile.events.iter().position(|known| known.name == name)
        }),
        functions: event
            .rows
            .iter()
            .take(MAX_COMPARED)
            .map(|row| {
                let names = [Some(&row.name), row.renamed.as_ref()];
                let mut found =
                    names.into_iter().flatten().filter_map(|name| places.get(&key(name)));
                found.next().map_or(0, |place| place + 1)
            })
            .collect(),
        left_off: event.rows.len().saturating_sub(MAX_COMPARED),
    };
    let measures = measures.iter().map(|it| raw(&differences::document(it, MAX_COMPARED)));
    Ok(CompareBlock {
        diff: raw(&document(diff, MAX_COMPARED))?,
        measures: measures.collect::<Result<_, _>>()?,
        events: diff.events.iter().map(event).collect(),
        commands: filters.comms.clone(),
        narrowed: filters.dsos.iter().chain(&filters.symbols).cloned().collect(),
        max_rows: MAX_COMPARED,
    })
}

/// A document as a part of the page. Escaped here already, since raw values are written as they are.
fn raw(document: &impl Serialize) -> Result<Box<RawValue>, HtmlError> {
    let mut json = Vec::new();
    whit_view::json_strings::write_for_script(&mut json, document)?;
    let json = String::from_utf8(json).map_err(std::io::Error::other)?;
    Ok(RawValue::from_string(json).map_err(std::io::Error::other)?)
}
