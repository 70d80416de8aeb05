//! Names on the command line that a recording does not have.

use std::slice::from_ref;
use whit_profile::model::Profile;
use whit_profile::warning::{NoMatch, Warning, WhyNoMatch};
use whit_types::OutsideText;
use whit_view::hists::{Filters, listed, names_function};
use whit_view::warning::warning_text;

/// Names that a message lists.
const MAX_NAMES: usize = 5;

/// Adds a warning for each name of the filters that no command, binary or function of the profile has.
pub(crate) fn warn(profile: &mut Profile, filters: &Filters) {
    let comms = || profile.threads.iter().map(|it| &profile.comms[it.comm.index()]);
    let absent_comms =
        absent(&filters.comms, |comm| profile.comms.iter().any(|it| listed(from_ref(comm), it)));
    let mut warnings = named("--comms", absent_comms, || comms().collect());
    let absent_dsos = absent(&filters.dsos, |dso| {
        profile
            .dsos
            .iter()
            .any(|it| listed(from_ref(dso), &it.short_name) || listed(from_ref(dso), &it.path))
    });
    warnings.extend(named("--dsos", absent_dsos, || {
        profile.dsos.iter().map(|it| &it.short_name).collect()
    }));
    let absent_functions = absent(&filters.symbols, |symbol| {
        profile.functions.iter().any(|it| names_function(from_ref(symbol), profile, it))
    });
    warnings.extend(named("--symbols", absent_functions, || {
        profile.functions.iter().filter(|it| it.known).map(|it| &it.name).collect()
    }));
    profile.warnings.extend(warnings);
}

/// Prints why options choose nothing, where no other output says it.
pub(crate) fn print(profile: &Profile) {
    let unmatched = profile.warnings.iter().filter(|it| matches!(it, Warning::NoMatch(_)));
    unmatched.map(warning_text).for_each(crate::message::error);
}

fn absent(names: &[String], is_there: impl Fn(&String) -> bool) -> Vec<&String> {
    names.iter().filter(|name| !is_there(name)).collect()
}

/// A warning for each name, with names of the recording that are near, or all where they are few.
fn named<'p>(
    option: &'static str,
    names: Vec<&String>,
    known: impl FnOnce() -> Vec<&'p OutsideText>,
) -> Vec<Warning> {
    if names.is_empty() {
        return Vec::new();
    }
    let mut known = known();
    known.sort_unstable_by_key(|name| name.exact());
    known.dedup();
    known.retain(|name| !name.is_empty());
    let warning = |name: &String| {
        let why = WhyNoMatch::OtherNames(near(name, &known));
        Warning::NoMatch(NoMatch { option, value: name.as_str().into(), why })
    };
    names.into_iter().map(warning).collect()
}

fn near(name: &str, known: &[&OutsideText]) -> Vec<OutsideText> {
    if known.len() <= MAX_NAMES {
        return known.iter().copied().cloned().collect();
    }
    let lowered = name.to_lowercase();
    let has_part = |it: &&&OutsideText| it.exact().to_lowercase().contains(&lowered);
    let alike: Vec<_> =
        known.iter().filter(has_part).take(MAX_NAMES).map(|it| (*it).clone()).collect();
    if !alike.is_empty() {
        return alike;
    }
    let nearest = whit_events::nearest(name, known.iter().map(|it| it.exact()));
    nearest.map(OutsideText::from).into_iter().collect()
}
