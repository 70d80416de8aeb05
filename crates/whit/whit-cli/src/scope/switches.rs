//! Options of `whit switches`.

use super::{
    ALL, ANY, Acts, Answer, Answers, JSON, Outputs, PAGE, REQUESTS, Scope, TEXT, each, frames,
};

const TREE: Answers = 1;
const FLAT: Answers = 1 << 1;
const PER_THREAD: Answers = 1 << 2;
const WORST: Answers = 1 << 3;
const WAIT: Answers = 1 << 4;
const WAKERS: Answers = 1 << 5;
const RUN_QUEUE: Answers = 1 << 6;

/// Text with call chains.
const CHAINS: Answers = ANY & !(PER_THREAD | RUN_QUEUE);

const ANSWERS: [Answer; 7] = [
    Answer { bit: TREE, options: &["tree"], joins: ANY },
    Answer { bit: FLAT, options: &["flat", "sort"], joins: ANY },
    Answer { bit: PER_THREAD, options: &["per_thread"], joins: ANY },
    Answer { bit: WORST, options: &["worst"], joins: ANY & !WAIT },
    Answer { bit: WAIT, options: &["wait"], joins: ANY & !WORST },
    Answer { bit: WAKERS, options: &["wakers"], joins: ANY },
    Answer { bit: RUN_QUEUE, options: &["run_queue"], joins: ANY },
];

const EVERY: Outputs = TEXT | JSON;

const OUTPUTS: [Acts; 11] = [
    Acts("stdio", &[(ANY, TEXT)]),
    Acts("json", &[(ANY, JSON)]),
    Acts("html", &[(ANY, PAGE)]),
    Acts("no_source", &[(ANY, PAGE)]),
    Acts("width", &[(ANY, TEXT)]),
    Acts("tree", &[(ANY, TEXT)]),
    Acts("flat", &[(ANY, TEXT)]),
    Acts("per_thread", &[(ANY, TEXT)]),
    Acts("wakers", &[(ANY, TEXT)]),
    Acts("run_queue", &[(ANY, TEXT)]),
    Acts("worst", &[(ANY, EVERY)]),
];

const ROWS: [Acts; 7] = [
    Acts("wait", &[(ANY, EVERY)]),
    Acts("limit", &[(RUN_QUEUE, TEXT)]),
    Acts("call_graph", &[(TREE, TEXT)]),
    Acts("sort", &[(FLAT, TEXT)]),
    Acts("children", &[(FLAT, TEXT)]),
    Acts("no_children", &[(FLAT, TEXT)]),
    Acts("percent_limit", &[(TREE | FLAT, TEXT)]),
];

/// One wait, named by its handle, needs no other choice.
const STACKS: [Acts; 3] = each(["comms", "dsos", "symbols"], &[(ANY & !WAIT, EVERY)]);

const WAITS: [Acts; 6] = each(
    ["min_wait", "max_wait", "no_idle", "only_class", "not_class", "wait_object"],
    &[(ANY & !WAIT, ALL)],
);

const FILTERS: [Acts; 5] = [
    Acts("pid", &[(ANY, ALL)]),
    Acts("tid", &[(ANY, ALL)]),
    Acts("cpu", &[]),
    Acts("cgroup", &[(ANY, ALL)]),
    Acts("time", &[(ANY, ALL)]),
];

pub(super) const SCOPE: Scope = Scope {
    subcommand: "switches",
    answers: &ANSWERS,
    options: &[
        &OUTPUTS,
        &ROWS,
        &STACKS,
        &WAITS,
        &FILTERS,
        &each(REQUESTS, &[(ANY, ALL)]),
        &frames(&[(CHAINS, TEXT), (ANY, JSON | PAGE)]),
    ],
    hints: &[
        (
            "cpu",
            "context switches belong to threads: choose with --pid, --tid, --comms or --cgroup",
        ),
        ("comms", "the page has this filter itself"),
        ("dsos", "the page has this filter itself"),
        ("symbols", "the page has this filter itself"),
    ],
};
