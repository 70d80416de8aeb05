//! Options of `whit annotate`.

use super::{ANY, Acts, Answer, Answers, JSON, REQUESTS, Scope, TEXT, each};

/// The functions with the largest shares.
const HOTTEST: Answers = 1;
/// The functions of a name.
const NAMED: Answers = 1 << 1;

const OUTPUTS: [Acts; 4] = [
    Acts("stdio", &[(ANY, TEXT)]),
    Acts("json", &[(ANY, JSON)]),
    Acts("width", &[(ANY, TEXT)]),
    Acts("wide", &[(ANY, TEXT)]),
];

const CHOICE: [Acts; 2] = each(["limit", "percent_limit"], &[(HOTTEST, TEXT | JSON)]);

/// Columns and lines of text. JSON has all of them.
const OF_TEXT: [Acts; 9] = each(
    [
        "percent_type",
        "show_nr_samples",
        "show_total_period",
        "group",
        "print_line",
        "full_paths",
        "asm_raw",
        "inline",
        "no_inline",
    ],
    &[(ANY, TEXT)],
);

const OF_BOTH: [Acts; 15] = each(
    [
        "dsos",
        "event",
        "skip_missing",
        "intervals",
        "no_intervals",
        "source",
        "no_source",
        "prefix",
        "prefix_strip",
        "disassembler_style",
        "intel",
        "pid",
        "tid",
        "cpu",
        "cgroup",
    ],
    &[(ANY, TEXT | JSON)],
);

pub(super) const SCOPE: Scope = Scope {
    subcommand: "annotate",
    answers: &[
        Answer { bit: HOTTEST, options: &[], joins: 0 },
        Answer { bit: NAMED, options: &["function", "symbol"], joins: 0 },
    ],
    options: &[
        &OUTPUTS,
        &CHOICE,
        &OF_TEXT,
        &OF_BOTH,
        &each(REQUESTS, &[(ANY, TEXT | JSON)]),
        &[Acts("time", &[(ANY, TEXT | JSON)]), Acts("max_stack", &[])],
    ],
    hints: &[
        (
            "percent_type",
            "--json has shares of the function and of the event, in samples and periods",
        ),
        ("show_nr_samples", "--json has samples and periods"),
        ("show_total_period", "--json has samples and periods"),
        ("group", "--json has all events"),
        ("print_line", "--json has the line of each instruction"),
        ("full_paths", "--json has whole paths"),
        ("asm_raw", "--json has the bytes of each instruction"),
        ("inline", "--json has inlined functions"),
        ("no_inline", "--json has inlined functions"),
        ("max_stack", "call chains do not count here"),
    ],
};
