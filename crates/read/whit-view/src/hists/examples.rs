//! Single samples of rows.

use rustc_hash::FxHashMap;
use whit_profile::model::EventId;
use whit_profile::{ExampleSample, keep_example};

use super::HistRow;
use super::code_location::CodeLocation;
use super::context::{Context, ContextMaker, SampleFilter};
use super::pass::Pass;

/// Gives each row samples of its parts; the rule that chose these chooses among them again.
pub(super) fn add(
    pass: &Pass<'_>,
    event: EventId,
    maker: &ContextMaker<'_>,
    filter: &SampleFilter,
    rows: &mut [HistRow],
) {
    let profile = pass.profile();
    let mut kept: FxHashMap<(Context, CodeLocation), Vec<ExampleSample>> = FxHashMap::default();
    let all = profile.rows.iter().zip(&profile.examples);
    for (row, samples) in all.filter(|(row, _)| row.event == event) {
        if filter.passes(profile, pass.parents(), row) {
            let kept = kept.entry((maker.context(row), pass.place_of(row.node))).or_default();
            samples.iter().for_each(|sample| keep_example(kept, *sample, pass.max_examples()));
        }
    }
    for row in rows {
        if let Some(mut samples) = kept.remove(&(*row.context, row.place)) {
            samples.sort_unstable();
            row.examples = samples.into();
        }
    }
}
