//! Options of `whit diff`.

use super::{ALL, ANY, Acts, Answer, JSON, PAGE, REQUESTS, Scope, TEXT, each, frames};

const OUTPUTS: [Acts; 4] = [
    Acts("json", &[(ANY, JSON)]),
    Acts("html", &[(ANY, PAGE)]),
    Acts("width", &[(ANY, TEXT)]),
    // JSON and the page have all functions.
    Acts("percent_limit", &[(ANY, TEXT)]),
];

const ROWS: [Acts; 12] = each(
    [
        "per",
        "per_event",
        "fail_above",
        "dataset",
        "comms",
        "dsos",
        "symbols",
        "pid",
        "tid",
        "cpu",
        "cgroup",
        "time",
    ],
    &[(ANY, ALL)],
);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "diff",
    answers: &[Answer { bit: 1, options: &[], joins: 0 }],
    options: &[&OUTPUTS, &ROWS, &each(REQUESTS, &[(ANY, ALL)]), &frames(&[(ANY, ALL)])],
    hints: &[("percent_limit", "--json and --html have all functions")],
};
