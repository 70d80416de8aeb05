//! Two made-up recordings, before and after a change.

use std::collections::BTreeMap;
use whit_estimate::Series;
use whit_page::Comparison;
use whit_profile::model::*;
use whit_view::diff::{Diff, DiffOptions, Per, Run, diff};
use whit_view::differences::{
    Cell, Differences, DifferencesError, Kind, Recorded, Values, compare, quantities,
};
use whit_view::hists::Filters;

use crate::builder::Builder;
use crate::code::blocks;
use crate::small::long_hostile_name;

/// Stack, samples before, samples after.
type Stack<'a> = (&'a [&'a str], u64, u64);

fn side(path: &str, stacks: &[Stack<'_>], is_after: bool) -> Profile {
    let mut builder = Builder::default();
    let event = builder.event("cycles");
    let thread = builder.thread(7, 7, "shop");
    let logger = builder.thread(9, 9, "logger");
    for (frames, before, after) in stacks {
        let samples = if is_after { *after } else { *before };
        if samples > 0 {
            let frames = frames.iter().map(|name| {
                // Functions lose an argument in the new build.
                if is_after {
                    name.replace("sort<int, 2>", "sort<int>")
                } else {
                    (*name).to_owned()
                }
            });
            let frames: Vec<String> = frames.collect();
            let node = builder.stack(frames.iter().map(String::as_str));
            let is_log = frames.iter().any(|frame| frame.contains("log"));
            let thread = if is_log { logger } else { thread };
            builder.add(event, thread, node, samples, samples * 1_000_000);
        }
    }
    let mut profile = builder.profile;
    profile.recording.path = path.into();
    profile.recording.has_callchains = true;
    profile.blocks = Some(blocks(&profile));
    profile
}

/// The comparison and the profiles of both sides.
pub(crate) fn sides(
    filters: &Filters,
) -> Result<(Diff, [Vec<Profile>; 2]), whit_view::diff::DiffError> {
    let hostile = format!("u|{}", long_hostile_name().replace('|', "/"));
    let stacks: [Stack<'_>; 6] = [
        (&["c|_start", "u|main", "u|shop::find_product(int)"], 3_000, 6_000),
        (&["c|_start", "u|main", "u|shop::render(Page&)"], 4_000, 2_000),
        (&["c|_start", "u|main", "u|shop::log(char const*)"], 2_000, 1_990),
        (&["c|_start", "u|main", "u|sort<int, 2>(int*)"], 800, 810),
        (&["c|_start", "u|main", "u|shop::gone()"], 400, 0),
        (&["c|_start", "u|main", &hostile], 300, 310),
    ];
    let sides = [("before.data", false), ("after.data", true)]
        .map(|(path, is_after)| side(path, &stacks, is_after));
    let options = DiffOptions { filters: filters.clone(), ..DiffOptions::default() };
    let runs = sides.each_ref().map(|profile| Run::of(profile.clone(), &options));
    let [before, after] = runs;
    let diff = diff(&[before?], &[after?], &Per::Share)?;
    Ok((diff, sides.map(|profile| vec![profile])))
}

/// The page's comparison, and the profile that it is drawn from.
pub(crate) fn page<'a>(
    diff: &'a Diff,
    sides: [Vec<Profile>; 2],
    filters: &'a Filters,
) -> Result<(Comparison<'a>, Profile), &'static str> {
    Comparison::new(sides, diff, filters).ok_or("no profiles")
}

/// Blocks of time of a recording, of a second each.
const BLOCKS: u64 = 24;

/// Waits for locks in a recording: milliseconds a second in each function.
fn locks(path: &str, ms: &[(&str, u64)]) -> Recorded {
    let row = |of: u64| {
        let sums = |scale: u64| {
            // Blocks differ by some percent.
            let block = |block| (1.0, (of * scale * (98 + block % 5)) as f64 / 100.0);
            Values::Sums(Series::new((0..BLOCKS).map(block)))
        };
        let per_wait = Values::Sums(Series::new((0..BLOCKS).map(|_| (of as f64, 1e6 * of as f64))));
        let events = of * BLOCKS;
        [sums(1_000_000), sums(1), per_wait, sums(1000)].map(|values| Cell { values, events })
    };
    let rows: BTreeMap<_, Vec<Cell>> =
        ms.iter().map(|&(name, of)| (vec![name.into()], row(of).into())).collect();
    let quantities = quantities(Kind::Locks);
    Recorded {
        path: path.into(),
        kind: Kind::Locks,
        machine: Vec::new(),
        what: Vec::new(),
        notes: Vec::new(),
        keys: vec!["callsite"],
        missing: vec![0.0; quantities.len()],
        quantities,
        rows,
        whole: Some(row(ms.iter().map(|it| it.1).sum()).into()),
        seconds: vec![1.0; BLOCKS as usize],
    }
}

/// Differences of waits for locks.
pub(crate) fn measures() -> Result<Vec<Differences>, DifferencesError> {
    let hostile = long_hostile_name();
    let before = locks("before.data", &[("shop::reserve", 100), ("shop::log", 50), (&hostile, 70)]);
    let after = locks("after.data", &[("shop::reserve", 180), ("shop::log", 50), (&hostile, 70)]);
    Ok(vec![compare(&[before], &[after], None)?])
}
