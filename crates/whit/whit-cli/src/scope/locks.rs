//! Options of `whit locks`.

use super::{ANY, Acts, Answer, JSON, REQUESTS, Scope, TEXT, each, frames};

const OUTPUTS: [Acts; 3] = [
    Acts("json", &[(ANY, JSON)]),
    Acts("width", &[(ANY, TEXT)]),
    Acts("call_graph", &[(ANY, TEXT)]),
];

const ROWS: [Acts; 12] = each(
    [
        "by", "limit", "comms", "dsos", "symbols", "min_wait", "max_wait", "no_idle", "pid", "tid",
        "cgroup", "time",
    ],
    &[(ANY, TEXT | JSON)],
);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "locks",
    answers: &[Answer { bit: 1, options: &[], joins: 0 }],
    options: &[
        &OUTPUTS,
        &ROWS,
        &each(REQUESTS, &[(ANY, TEXT | JSON)]),
        &[Acts("cpu", &[])],
        &frames(&[(ANY, TEXT | JSON)]),
    ],
    hints: &[
        ("cpu", "waits belong to threads: choose with --pid, --tid, --comms or --cgroup"),
        ("call_graph", "--json has every call chain"),
    ],
};
