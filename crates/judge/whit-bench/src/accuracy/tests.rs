//! Judging, on shares that are made up.

use std::collections::HashMap;

use whit_view::hists::ShareInterval;

use super::run::{Judged, counted, judge, sum};
use super::{Accuracy, Gain, Noticed, Row};
use crate::bench::page;

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn counts_are_shares_of_the_functions_that_have_them() {
    let counted = counted("share f0 30\nnonsense\nshare f1 90\nshare f2 x\n");
    assert_eq!(counted.len(), 2);
    assert!(close(counted["f0"], 25.0) && close(counted["f1"], 75.0));
}

/// Half of the samples are in other functions.
#[test]
fn errors_are_those_among_the_functions_and_intervals_of_their_part() {
    let truth: HashMap<String, f64> =
        [("a", 40.0), ("b", 60.0)].map(|(n, s)| (n.to_owned(), s)).into();
    let interval = |low, high| ShareInterval { low, high };
    let sampled = [("a", (25.0, interval(19.0, 26.0))), ("b", (25.0, interval(24.0, 26.0)))];
    let judged = judge(&truth, &sampled.map(|(name, found)| (name.to_owned(), found)).into());
    assert!(judged.errors.iter().all(|error| close(*error, 10.0)), "{judged:?}");
    // The truth is 20 % and 30 % of all samples.
    assert_eq!(judged.held, 1);
    let missing = judge(&truth, &HashMap::new());
    assert_eq!((missing.held, missing.errors.len()), (0, 2));
}

#[test]
fn recordings_are_summed_with_their_largest_error() {
    let one = |errors: &[f64], held| Judged { errors: errors.to_vec(), held };
    let row = sum(&[one(&[1.0, 2.0], 2), one(&[3.0, 6.0], 1)]);
    assert!(close(row.mean_error, 3.0) && close(row.largest_error, 6.0));
    assert_eq!((row.functions, row.held), (4, 3));
}

#[test]
fn tables_have_every_recorder_and_what_is_missing() {
    let row = Row {
        workload: "flat".into(),
        recorder: "perf".into(),
        functions: 4,
        held: 3,
        ..Row::default()
    };
    let accuracy = Accuracy {
        event: "cpu-clock".into(),
        seconds: 1,
        runs: 1,
        recorders: vec![("perf".into(), "perf version 6.1".into())],
        missing: vec![("samply".into(), "cannot run samply".into())],
        shares: vec![row],
        gains: vec![Gain {
            faster_percent: 50,
            predicted: vec![("perf".into(), 10.0)],
            ..Gain::default()
        }],
        noticed: vec![Noticed { waking_hz: 250, recordings: 3, said: 2, ..Noticed::default() }],
    };
    let text = page(None, &accuracy);
    for part in [
        "`samply` is missing: cannot run samply",
        "| flat     |",
        "75.0 |",
        "10.0 |",
        "the program's counts",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
