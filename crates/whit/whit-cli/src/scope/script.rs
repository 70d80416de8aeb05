//! Options of `whit script`.

use super::{Acts, Answer, Answers, REQUESTS, Scope, TEXT, each, frames};

const LINES: Answers = 1;
const FOLDED: Answers = 1 << 1;
const HEADER_ONLY: Answers = 1 << 2;
const PER_EVENT_DUMP: Answers = 1 << 3;

/// Answers with a line for each sample.
const OF_LINES: Answers = LINES | PER_EVENT_DUMP;
/// Answers that read samples.
const OF_SAMPLES: Answers = OF_LINES | FOLDED;

const ANSWERS: [Answer; 4] = [
    Answer { bit: LINES, options: &[], joins: 0 },
    Answer { bit: FOLDED, options: &["folded"], joins: 0 },
    Answer { bit: HEADER_ONLY, options: &["header_only"], joins: 0 },
    Answer { bit: PER_EVENT_DUMP, options: &["per_event_dump"], joins: 0 },
];

const OUTPUTS: [Acts; 3] = [
    Acts("header", &[(LINES, TEXT)]),
    Acts("width", &[(LINES | HEADER_ONLY, TEXT)]),
    Acts("wide", &[(LINES | HEADER_ONLY, TEXT)]),
];

const OF_EACH_LINE: [Acts; 20] = each(
    [
        "fields",
        "reltime",
        "deltatime",
        "stop_bt",
        "comms",
        "dsos",
        "symbols",
        "addr_range",
        "ns",
        "hide_call_graph",
        "show_task_events",
        "show_mmap_events",
        "show_switch_events",
        "show_namespace_events",
        "show_cgroup_events",
        "show_lost_events",
        "show_bpf_events",
        "switch_on",
        "switch_off",
        "show_on_off_events",
    ],
    &[(OF_LINES, TEXT)],
);

const FILTERS: [Acts; 5] = each(["pid", "tid", "cpu", "cgroup", "time"], &[(OF_SAMPLES, TEXT)]);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "script",
    answers: &ANSWERS,
    options: &[
        &OUTPUTS,
        &OF_EACH_LINE,
        &FILTERS,
        &each(REQUESTS, &[(OF_SAMPLES, TEXT)]),
        &frames(&[(OF_SAMPLES, TEXT)]),
    ],
    hints: &[],
};
