//! Language runtimes whose functions have samples and no names.

use crate::first_pass::prepare::Prepared;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::RecordedKind;
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};
use whit_types::{PYTHON_WALKED, Pid, Runtime};

/// Such runtimes, each once. `used` are the binaries that samples lie in. `is_walked`: interpreters were walked, and the
/// samples without a function of theirs are of other code.
pub(crate) fn warnings(
    prepared: &Prepared,
    used: &BTreeSet<DsoIndex>,
    is_walked: bool,
) -> Vec<Warning> {
    let mut unnamed: BTreeMap<Runtime, BTreeSet<Pid>> = BTreeMap::new();
    for dso in used {
        for (runtime, pid) in unnamed_by(prepared, *dso) {
            unnamed.entry(runtime).or_default().insert(pid);
        }
    }
    let warning = |(runtime, pids): (Runtime, BTreeSet<Pid>)| {
        let first = pids.first().copied()?;
        Some(Warning::RuntimeWithoutNames { runtime, first, processes: pids.len() })
    };
    let has_advice = |(runtime, _): &(Runtime, _)| !(is_walked && may_be_walked(*runtime));
    unnamed.into_iter().filter(has_advice).filter_map(warning).collect()
}

fn may_be_walked(runtime: Runtime) -> bool {
    matches!(runtime, Runtime::Python { minor: Some(minor) } if PYTHON_WALKED.contains(&minor))
}

/// The processes in which code of a binary is, or runs, functions without names.
fn unnamed_by(prepared: &Prepared, dso: DsoIndex) -> Vec<(Runtime, Pid)> {
    let recorded = prepared.dsos.get(dso);
    match recorded.kind {
        RecordedKind::Anonymous(pid) => {
            let binary = prepared.binaries.get(dso);
            let is_unnamed = binary.is_some_and(|binary| binary.symbols.reason().is_some());
            let compiler = compiler_of(prepared, pid).filter(|_| is_unnamed);
            compiler.map(|runtime| (runtime, pid)).into_iter().collect()
        }
        RecordedKind::File => {
            let runtime = Runtime::of_path(recorded.path.as_bytes());
            let Some(runtime) = runtime.filter(|runtime| runtime.is_interpreter()) else {
                return Vec::new();
            };
            let is_named = |pid: &Pid| prepared.binaries.names_code_of(*pid, &prepared.dsos);
            let pids = prepared.dsos.mapped_by(dso).iter().copied();
            // Another process's names show that the user knows the way.
            match pids.clone().any(|pid| is_named(&pid)) {
                true => Vec::new(),
                false => pids.map(|pid| (runtime, pid)).collect(),
            }
        }
        _ => Vec::new(),
    }
}

/// The runtime that compiles in a process: an interpreter beside it (a debugger, a plug-in) is none.
fn compiler_of(prepared: &Prepared, pid: Pid) -> Option<Runtime> {
    let paths = prepared.model.binaries_of(pid).map(|dso| prepared.dsos.get(dso));
    let files = paths.filter(|dso| dso.kind == RecordedKind::File);
    let runtimes: BTreeSet<_> =
        files.filter_map(|dso| Runtime::of_path(dso.path.as_bytes())).collect();
    runtimes.into_iter().min_by_key(|runtime| runtime.is_interpreter())
}
