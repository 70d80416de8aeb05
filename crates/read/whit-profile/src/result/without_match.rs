//! Options that choose a part of a recording which has nothing in that part.

use crate::first_pass::prepare::Prepared;
use crate::model::Profile;
use crate::selection::Selection;
use crate::warning::{NoMatch, Warning, WhyNoMatch};
use whit_types::{Pid, Tid, format_cpu_list};

/// Values of `--pid`, `--tid`, `--cpu` and `--time` that no sample and no switch of the profile has.
pub(crate) fn warnings(
    selection: &Selection,
    prepared: &Prepared,
    profile: &Profile,
) -> Vec<Warning> {
    let has = |is_it: &dyn Fn(Pid, Tid) -> bool| {
        profile.threads.iter().any(|thread| is_it(thread.pid, thread.tid))
    };
    let absent = |option, id: i32, is_it: &dyn Fn(Pid, Tid) -> bool| {
        let is_known = prepared.model.last_comms().any(|((pid, tid), _)| is_it(pid, tid));
        let why = if is_known { WhyNoMatch::NothingRecorded } else { WhyNoMatch::UnknownTask };
        let warning = Warning::NoMatch(NoMatch { option, value: id.to_string().into(), why });
        (!has(is_it)).then_some(warning)
    };
    let mut warnings = Vec::new();
    for wanted in &selection.pids {
        warnings.extend(absent("--pid", wanted.0, &|pid, _| pid == *wanted));
    }
    for wanted in &selection.tids {
        warnings.extend(absent("--tid", wanted.0, &|_, tid| tid == *wanted));
    }
    if let (Some(ranges), Some((first, last))) = (&prepared.time, prepared.span)
        && ranges.iter().all(|range| range.to < first || last < range.from)
    {
        let why = WhyNoMatch::OtherTime { first, last };
        let value = String::new().into();
        warnings.push(Warning::NoMatch(NoMatch { option: "--time", value, why }));
    }
    if profile.threads.is_empty() && !selection.cpus.is_empty() {
        let value = format_cpu_list(&selection.cpus).into();
        let why = WhyNoMatch::NothingRecorded;
        warnings.push(Warning::NoMatch(NoMatch { option: "--cpu", value, why }));
    }
    warnings
}
