//! Options of `whit diff`.

use super::{
    ALL, ANY, Acts, Answer, Answers, JSON, PAGE, REQUESTS as OF_REQUESTS, Scope, TEXT, each, frames,
};

const SAMPLES: Answers = 1;
const WAITS: Answers = 2;
const LOCKS: Answers = 4;
const WALL: Answers = 8;
const REQUESTS: Answers = 16;
const STAT: Answers = 32;

/// Rows of these have call chains.
const CHAINS: Answers = SAMPLES | WAITS | LOCKS | WALL;

const OUTPUTS: [Acts; 4] = [
    Acts("json", &[(ANY, JSON)]),
    Acts("html", &[(SAMPLES, PAGE)]),
    Acts("width", &[(ANY, TEXT)]),
    // JSON and the page have all functions.
    Acts("percent_limit", &[(ANY, TEXT)]),
];

const ROWS: [Acts; 5] = [
    Acts("per", &[(CHAINS | STAT, ALL)]),
    Acts("per_event", &[(SAMPLES, ALL)]),
    Acts("fail_above", &[(ANY, ALL)]),
    // A dataset has no counts.
    Acts("dataset", &[(CHAINS | REQUESTS, ALL)]),
    Acts("sort", &[(WAITS | LOCKS | WALL, ALL)]),
];

const SELECTION: [Acts; 7] =
    each(["comms", "dsos", "symbols", "pid", "tid", "cgroup", "time"], &[(CHAINS, ALL)]);

const OF_CALLS: [Acts; 3] = each(OF_REQUESTS, &[(CHAINS, ALL)]);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "diff",
    answers: &[
        Answer { bit: SAMPLES, options: &[], joins: 0 },
        Answer { bit: WAITS, options: &["waits"], joins: 0 },
        Answer { bit: LOCKS, options: &["locks"], joins: 0 },
        Answer { bit: WALL, options: &["wall"], joins: 0 },
        Answer { bit: REQUESTS, options: &["requests"], joins: 0 },
        Answer { bit: STAT, options: &["stat"], joins: 0 },
    ],
    options: &[
        &OUTPUTS,
        &ROWS,
        &SELECTION,
        &[Acts("cpu", &[(SAMPLES, ALL)])],
        &OF_CALLS,
        &frames(&[(CHAINS, ALL)]),
    ],
    hints: &[
        ("cpu", "waits belong to threads: choose with --pid, --tid, --comms or --cgroup"),
        ("percent_limit", "--json and --html have all rows"),
        ("html", "the page of samples has waits, locks and requests, too"),
    ],
};
