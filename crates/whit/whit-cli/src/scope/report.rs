//! Options of `whit report`.

use super::{ALL, Acts, Answer, Answers, JSON, Outputs, PAGE, REQUESTS, Scope, TEXT, each, frames};

const ROWS: Answers = 1;
const HIERARCHY: Answers = 1 << 1;
const CGROUP_TREE: Answers = 1 << 2;
const TOTAL_CYCLES: Answers = 1 << 3;
const WALL: Answers = 1 << 4;
const TASKS: Answers = 1 << 5;
const STATS: Answers = 1 << 6;
const LEDGER: Answers = 1 << 7;
const HEADER_ONLY: Answers = 1 << 8;
const BRIEF: Answers = 1 << 9;
const CALLERS: Answers = 1 << 10;

/// Tables with a row for each function, or for other keys.
const KEYS: Answers = ROWS | HIERARCHY;
/// Tables of samples with their call chains.
const TREES: Answers = KEYS | CGROUP_TREE;
/// Tables of samples.
const TABLES: Answers = TREES | TOTAL_CYCLES;
/// Counts and costs of the whole recording.
const ACCOUNTS: Answers = STATS | LEDGER | HEADER_ONLY;
/// Answers that read samples.
const OF_SAMPLES: Answers = TABLES | WALL | BRIEF | CALLERS;

const ANSWERS: [Answer; 11] = [
    Answer { bit: ROWS, options: &[], joins: 0 },
    Answer { bit: HIERARCHY, options: &["hierarchy"], joins: 0 },
    Answer { bit: CGROUP_TREE, options: &["cgroup_tree"], joins: 0 },
    Answer { bit: TOTAL_CYCLES, options: &["total_cycles"], joins: 0 },
    Answer { bit: WALL, options: &["wall"], joins: 0 },
    Answer { bit: TASKS, options: &["tasks", "mmaps"], joins: 0 },
    Answer { bit: STATS, options: &["stats"], joins: ACCOUNTS },
    Answer { bit: LEDGER, options: &["ledger"], joins: ACCOUNTS },
    Answer { bit: HEADER_ONLY, options: &["header_only"], joins: ACCOUNTS },
    Answer { bit: BRIEF, options: &["brief"], joins: 0 },
    Answer { bit: CALLERS, options: &["callers", "callees"], joins: 0 },
];

const EVERY: Outputs = TEXT | JSON;

const OUTPUTS: [Acts; 11] = [
    Acts("stdio", &[(Answers::MAX, TEXT)]),
    Acts("json", &[(OF_SAMPLES | TASKS, JSON)]),
    Acts("html", &[(ROWS, PAGE)]),
    Acts("no_source", &[(ROWS, PAGE)]),
    Acts("header", &[(TABLES | TASKS | STATS | LEDGER, TEXT)]),
    Acts("width", &[(TABLES | WALL | TASKS | ACCOUNTS, TEXT)]),
    Acts("field_separator", &[(KEYS, TEXT)]),
    Acts("column_widths", &[(ROWS, TEXT)]),
    Acts("ns", &[(KEYS, TEXT)]),
    Acts("show_nr_samples", &[(KEYS, TEXT)]),
    Acts("show_total_period", &[(KEYS, TEXT)]),
];

const ROW_OPTIONS: [Acts; 14] = [
    Acts("children", &[(KEYS, EVERY)]),
    Acts("no_children", &[(KEYS, EVERY)]),
    Acts("sort", &[(KEYS, EVERY)]),
    Acts("fields", &[(ROWS, EVERY)]),
    Acts("call_graph", &[(KEYS, EVERY), (WALL, TEXT)]),
    Acts("inverted", &[(KEYS, EVERY), (WALL, TEXT)]),
    Acts("percent_limit", &[(KEYS, EVERY), (WALL, TEXT)]),
    Acts("show_cpu_utilization", &[(KEYS, TEXT)]),
    Acts("parent", &[(TREES, EVERY)]),
    Acts("ignore_callees", &[(KEYS, ALL)]),
    Acts("only_path", &[(WALL, EVERY)]),
    Acts("intervals", &[(ROWS, EVERY)]),
    Acts("no_intervals", &[(ROWS, EVERY)]),
    Acts("parallelism_of", &[(KEYS, EVERY)]),
];

/// Keys, kinds and columns of rows.
const KEY_OPTIONS: [Acts; 12] = each(
    [
        "group",
        "no_group",
        "group_sort_idx",
        "branch_stack",
        "samples",
        "mem_mode",
        "raw_trace",
        "self_time",
        "time_quantum",
        "latency",
        "parallelism",
        "percentage",
    ],
    &[(KEYS, EVERY)],
);

const FILTERS: [Acts; 12] = [
    Acts("comms", &[(TREES | WALL, EVERY)]),
    Acts("dsos", &[(TREES | WALL, EVERY)]),
    Acts("symbols", &[(TREES | WALL, EVERY)]),
    Acts("symbol_filter", &[(TREES, EVERY)]),
    Acts("socket_filter", &[(TABLES, EVERY)]),
    Acts("exclude_other", &[(TREES, EVERY)]),
    Acts("hide_unresolved", &[(KEYS, ALL)]),
    Acts("pid", &[(OF_SAMPLES, ALL)]),
    Acts("tid", &[(OF_SAMPLES, ALL)]),
    Acts("cpu", &[(OF_SAMPLES & !WALL, ALL)]),
    Acts("cgroup", &[(OF_SAMPLES, ALL)]),
    Acts("time", &[(OF_SAMPLES, ALL)]),
];

const WAIT_FILTERS: [Acts; 6] = each(
    ["min_wait", "max_wait", "no_idle", "only_class", "not_class", "wait_object"],
    &[(WALL, EVERY)],
);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "report",
    answers: &ANSWERS,
    options: &[
        &OUTPUTS,
        &ROW_OPTIONS,
        &KEY_OPTIONS,
        &FILTERS,
        &WAIT_FILTERS,
        &each(REQUESTS, &[(OF_SAMPLES, ALL)]),
        &frames(&[(OF_SAMPLES & !TOTAL_CYCLES, ALL)]),
    ],
    hints: &[
        ("cpu", "waits belong to threads: choose with --pid, --tid, --comms or --cgroup"),
        ("comms", "the page has this filter itself"),
        ("dsos", "the page has this filter itself"),
        ("symbols", "the page has this filter itself"),
    ],
};
