//! Two made-up recordings, before and after a change.

use whit_page::Comparison;
use whit_profile::model::*;
use whit_view::diff::{Diff, DiffOptions, Per, Run, diff};
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
