//! Answers and options of each subcommand, and recordings on which the options make a difference.

/// An answer in an output.
pub(crate) struct Cell {
    /// The options that choose both.
    pub(crate) arguments: &'static [&'static str],
    /// A recording that has this answer, where few have it.
    pub(crate) recording: Option<&'static str>,
}

/// An option with a value that makes a difference.
pub(crate) struct Sample {
    /// Its long name.
    pub(crate) option: &'static str,
    /// Options without which it makes none.
    pub(crate) base: &'static [&'static str],
    pub(crate) args: &'static [&'static str],
    /// It makes a difference on one of them.
    pub(crate) recordings: &'static [&'static str],
    /// No run of a test can tell that it acts.
    pub(crate) is_accepted_alone: bool,
}

/// A subcommand.
pub(crate) struct Walk {
    pub(crate) subcommand: &'static str,
    pub(crate) cells: &'static [Cell],
    pub(crate) lists: &'static [&'static [Sample]],
}

impl Walk {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &'static Sample> {
        self.lists.iter().copied().flatten()
    }
}

/// Options that say how to read and to print, and where names come from.
pub(crate) const HOW: [&str; 14] = [
    "input",
    "help",
    "threads",
    "color",
    "no-pager",
    "quiet",
    "demangle",
    "no-demangle",
    "symfs",
    "vmlinux",
    "kallsyms",
    "debuginfod",
    "no-debuginfod",
    "debuginfod-limit",
];

const WAITS: &[&str] = &["waits"];
const REQUESTS: &[&str] = &["requests"];

const fn plain(arguments: &'static [&'static str]) -> Cell {
    Cell { arguments, recording: None }
}

/// Callers, inlined ones among them.
const PARENTS: &str = "pass|await|lll_mutex|_dl_";

/// An answer of branches.
const fn branches(arguments: &'static [&'static str]) -> Cell {
    Cell { arguments, recording: Some("branches") }
}

const fn on(
    recordings: &'static [&'static str],
    option: &'static str,
    base: &'static [&'static str],
    args: &'static [&'static str],
) -> Sample {
    Sample { option, base, args, recordings, is_accepted_alone: false }
}

const fn waits(option: &'static str, args: &'static [&'static str]) -> Sample {
    on(WAITS, option, &[], args)
}

/// `why` is for the reader.
const fn accepted(option: &'static str, args: &'static [&'static str], why: &str) -> Sample {
    assert!(!why.is_empty());
    Sample { option, base: &[], args, recordings: &["waits", "demo"], is_accepted_alone: true }
}

const FILTERS: &[Sample] = &[
    waits("pid", &["--pid", "1"]),
    waits("tid", &["--tid", "1"]),
    waits("cpu", &["--cpu", "1"]),
    waits("cgroup", &["--cgroup", "nowhere"]),
    waits("time", &["--time", "0%-10%"]),
];

const OF_REQUESTS: &[Sample] = &[
    on(REQUESTS, "request", &[], &["--request", "call"]),
    on(REQUESTS, "request-longer-than", &["--request", "call"], &["--request-longer-than", "20ms"]),
    on(REQUESTS, "request-key", &["--request", "call"], &["--request-key", "99"]),
];

const STACKS: &[Sample] = &[
    waits("comms", &["--comms", "slow-owner"]),
    waits("dsos", &["--dsos", "nowhere"]),
    waits("symbols", &["--symbols", "strcmp"]),
];

const WAIT_FILTERS: &[Sample] = &[
    waits("min-wait", &["--min-wait", "1ms"]),
    waits("max-wait", &["--max-wait", "1ms"]),
    waits("no-idle", &["--no-idle=10s"]),
    waits("only-class", &["--only-class", "lock"]),
    waits("not-class", &["--not-class", "lock"]),
    waits("wait-object", &["--wait-object", "pipe"]),
];

const FRAMES: &[Sample] = &[
    waits("max-stack", &["--max-stack", "1"]),
    waits("no-inline", &["--no-inline"]),
    on(WAITS, "inline", &["--no-inline"], &["--inline"]),
];

const WRITTEN: &str = "a pipe gets text without it";

const REPORT_OUTPUTS: &[Sample] = &[
    accepted("stdio", &["--stdio"], WRITTEN),
    accepted("json", &["--json"], "it is an output"),
    accepted("html", &["--html", "PAGE"], "it is an output"),
    accepted("hierarchy", &["--hierarchy"], "it is an answer"),
    accepted("cgroup-tree", &["--cgroup-tree"], "it is an answer"),
    on(&["branches"], "total-cycles", &[], &["--total-cycles"]),
    accepted("wall", &["--wall"], "it is an answer"),
    accepted("tasks", &["--tasks"], "it is an answer"),
    accepted("mmaps", &["--mmaps"], "it is an answer"),
    accepted("stats", &["--stats"], "it is an answer"),
    accepted("ledger", &["--ledger"], "it is an answer"),
    accepted("header-only", &["--header-only"], "it is an answer"),
    accepted("brief", &["--brief"], "it is an answer"),
    accepted("callers", &["--callers", "main"], "it is an answer"),
    accepted("callees", &["--callees", "main"], "it is an answer"),
    waits("no-source", &["--no-source"]),
    waits("header", &["--header"]),
    on(&["waits", "branches"], "width", &[], &["--width", "20"]),
    on(&["waits", "branches"], "field-separator", &[], &["-t", ","]),
    on(&["waits", "branches"], "column-widths", &[], &["-w", "3,3,3,3"]),
    on(WAITS, "ns", &["-s", "time"], &["--ns"]),
    on(&["waits", "branches"], "show-nr-samples", &[], &["-n"]),
    on(&["waits", "branches"], "show-total-period", &[], &["--show-total-period"]),
];

const REPORT_ROWS: &[Sample] = &[
    on(WAITS, "children", &["--no-children"], &["--children"]),
    waits("no-children", &["--no-children"]),
    waits("sort", &["-s", "comm"]),
    waits("fields", &["-F", "overhead,comm"]),
    waits("call-graph", &["-g", "callee"]),
    on(WAITS, "inverted", &["--no-children"], &["-G"]),
    on(&["waits", "branches"], "percent-limit", &[], &["--percent-limit", "90"]),
    waits("show-cpu-utilization", &["--show-cpu-utilization"]),
    on(WAITS, "parent", &["-x"], &["-p", "hold_slow"]),
    waits("ignore-callees", &["--ignore-callees", "pthread|futex"]),
    waits("only-path", &["--only-path", "hold_slow"]),
    on(&["waits", "branches"], "intervals", &["--no-intervals"], &["--intervals"]),
    on(&["waits", "branches"], "no-intervals", &["--intervals"], &["--no-intervals"]),
    on(WAITS, "parallelism-of", &["--latency"], &["--parallelism-of", "cgroup"]),
    on(&["perf-group"], "group", &["--no-group"], &["--group"]),
    on(&["perf-group"], "no-group", &["--group"], &["--no-group"]),
    on(
        &["perf-group", "orphans", "old-2.6.34", "pipe"],
        "group-sort-idx",
        &["--group"],
        &["--group-sort-idx", "1"],
    ),
    on(&["branches"], "branch-stack", &[], &["-b"]),
    waits("samples", &["--samples", "2"]),
    on(&["every-field"], "mem-mode", &[], &["--mem-mode"]),
    on(&["perf-tracepoint"], "raw-trace", &["-s", "trace"], &["--raw-trace"]),
    waits("self-time", &["--self-time", "outer"]),
    on(WAITS, "time-quantum", &["-s", "time"], &["--time-quantum", "1ms"]),
    waits("latency", &["--latency"]),
    waits("parallelism", &["--parallelism", "1"]),
    on(WAITS, "percentage", &["-c", "slow-owner"], &["--percentage", "relative"]),
    waits("symbol-filter", &["--symbol-filter", "pthread"]),
    waits("socket-filter", &["--socket-filter", "7"]),
    waits("exclude-other", &["-x"]),
    on(&["waits", "perf-dwarf", "orphans"], "hide-unresolved", &[], &["-U"]),
];

const REPORT: Walk = Walk {
    subcommand: "report",
    cells: &[
        plain(&[]),
        plain(&["--json"]),
        plain(&["--html", "PAGE"]),
        plain(&["--hierarchy"]),
        plain(&["--hierarchy", "--json"]),
        // Names and chains choose the samples.
        plain(&["--cgroup-tree", "-x", "-p", PARENTS]),
        plain(&["--cgroup-tree", "--json", "-x", "-p", PARENTS]),
        branches(&["--total-cycles"]),
        branches(&["--total-cycles", "--json"]),
        plain(&["--wall"]),
        plain(&["--wall", "--json"]),
        plain(&["--tasks"]),
        plain(&["--tasks", "--json"]),
        plain(&["--mmaps"]),
        plain(&["--mmaps", "--json"]),
        plain(&["--stats"]),
        plain(&["--ledger"]),
        plain(&["--header-only"]),
        plain(&["--brief"]),
        plain(&["--brief", "--json"]),
        plain(&["--callers", "futex_wait"]),
        plain(&["--callers", "futex_wait", "--json"]),
        plain(&["--callees", "hold_slow"]),
        plain(&["--callees", "hold_slow", "--json"]),
    ],
    lists: &[FILTERS, OF_REQUESTS, STACKS, WAIT_FILTERS, FRAMES, REPORT_OUTPUTS, REPORT_ROWS],
};

const SWITCHES_OPTIONS: &[Sample] = &[
    accepted("stdio", &["--stdio"], WRITTEN),
    accepted("json", &["--json"], "it is an output"),
    accepted("html", &["--html", "PAGE"], "it is an output"),
    accepted("tree", &["--tree"], "it is an answer"),
    accepted("flat", &["--flat"], "it is an answer"),
    accepted("per-thread", &["--per-thread"], "it is an answer"),
    accepted("worst", &["--worst"], "it is an answer"),
    accepted("wait", &["--wait", "w-17571-15y1wwqhr"], "it is an answer"),
    accepted("wakers", &["--wakers"], "it is an answer"),
    accepted("run-queue", &["--run-queue"], "it is an answer"),
    waits("no-source", &["--no-source"]),
    waits("width", &["--width", "20"]),
    waits("limit", &["--limit", "1"]),
    waits("call-graph", &["-g", "caller"]),
    waits("sort", &["-s", "comm"]),
    on(WAITS, "children", &["--no-children"], &["--children"]),
    waits("no-children", &["--no-children"]),
    waits("percent-limit", &["--percent-limit", "90"]),
];

const SWITCHES: Walk = Walk {
    subcommand: "switches",
    cells: &[
        plain(&[]),
        plain(&["--tree"]),
        plain(&["--flat"]),
        plain(&["--per-thread"]),
        plain(&["--worst"]),
        plain(&["--wakers"]),
        plain(&["--run-queue"]),
        plain(&["--json"]),
        plain(&["--html", "PAGE"]),
    ],
    lists: &[FILTERS, OF_REQUESTS, STACKS, WAIT_FILTERS, FRAMES, SWITCHES_OPTIONS],
};

const LOCKS_OPTIONS: &[Sample] = &[
    waits("max-stack", &["--max-stack", "1"]),
    accepted("no-inline", &["--no-inline"], "no stored call site of a lock is inlined"),
    accepted("inline", &["--inline"], "no stored call site of a lock is inlined"),
    accepted("json", &["--json"], "it is an output"),
    waits("width", &["--width", "20"]),
    waits("by", &["--by", "callsite"]),
    waits("limit", &["--limit", "1"]),
    waits("call-graph", &["-g"]),
    waits("min-wait", &["--min-wait", "1ms"]),
    waits("max-wait", &["--max-wait", "1ms"]),
    waits("no-idle", &["--no-idle=10s"]),
];

const LOCKS: Walk = Walk {
    subcommand: "locks",
    cells: &[plain(&[]), plain(&["--json"])],
    lists: &[FILTERS, OF_REQUESTS, STACKS, LOCKS_OPTIONS],
};

const SCRIPT_OPTIONS: &[Sample] = &[
    accepted("folded", &["--folded"], "it is an answer"),
    accepted("header-only", &["--header-only"], "it is an answer"),
    accepted("per-event-dump", &["--per-event-dump"], "it is an answer"),
    waits("header", &["--header"]),
    waits("width", &["--width", "20"]),
    accepted("wide", &["--wide"], "a pipe gets whole lines without it"),
    waits("fields", &["-F", "comm,tid"]),
    waits("reltime", &["--reltime"]),
    waits("deltatime", &["--deltatime"]),
    waits("stop-bt", &["--stop-bt", "hold_slow"]),
    on(WAITS, "addr-range", &["-S", "0x1000"], &["--addr-range", "281474976710655"]),
    waits("ns", &["--ns"]),
    waits("hide-call-graph", &["-G"]),
    waits("show-task-events", &["--show-task-events"]),
    waits("show-mmap-events", &["--show-mmap-events"]),
    waits("show-switch-events", &["--show-switch-events"]),
    on(&["perf-cgroups"], "show-namespace-events", &[], &["--show-namespace-events"]),
    on(&["perf-cgroups"], "show-cgroup-events", &[], &["--show-cgroup-events"]),
    on(&["losses"], "show-lost-events", &[], &["--show-lost-events"]),
    on(&["bpf-programs"], "show-bpf-events", &[], &["--show-bpf-events"]),
    on(&["orphans"], "switch-on", &[], &["--switch-on", "cycles"]),
    on(&["orphans"], "switch-off", &[], &["--switch-off", "cycles"]),
    on(&["orphans"], "show-on-off-events", &["--switch-on", "cycles"], &["--show-on-off-events"]),
];

const SCRIPT: Walk = Walk {
    subcommand: "script",
    cells: &[
        plain(&[]),
        plain(&["--folded"]),
        plain(&["--header-only"]),
        plain(&["--per-event-dump"]),
    ],
    lists: &[FILTERS, OF_REQUESTS, STACKS, FRAMES, SCRIPT_OPTIONS],
};

const DEMO: &[&str] = &["demo"];

const ANNOTATE_OPTIONS: &[Sample] = &[
    accepted("stdio", &["--stdio"], WRITTEN),
    accepted("json", &["--json"], "it is an output"),
    on(DEMO, "symbol", &[], &["-s", "kernels::hash_block"]),
    on(DEMO, "dsos", &[], &["-d", "nowhere"]),
    on(&["perf-group"], "event", &[], &["-e", "page-faults:u"]),
    on(DEMO, "limit", &[], &["--limit", "1"]),
    on(DEMO, "percent-limit", &[], &["--percent-limit", "20"]),
    accepted("skip-missing", &["--skip-missing"], "the stored program is at hand"),
    on(DEMO, "percent-type", &[], &["--percent-type", "global-hits"]),
    on(DEMO, "show-nr-samples", &[], &["-n"]),
    on(DEMO, "show-total-period", &[], &["--show-total-period"]),
    on(DEMO, "intervals", &["--no-intervals"], &["--intervals"]),
    on(DEMO, "no-intervals", &["--intervals"], &["--no-intervals"]),
    accepted("group", &["--group"], "the stored program has samples of one event"),
    on(DEMO, "source", &["--no-source"], &["--source"]),
    on(DEMO, "no-source", &[], &["--no-source"]),
    on(DEMO, "print-line", &[], &["-l"]),
    on(DEMO, "full-paths", &[], &["-P"]),
    accepted("prefix", &["--prefix", "nowhere"], "the stored program's source has another place"),
    accepted("prefix-strip", &["--prefix", "nowhere", "--prefix-strip", "1"], "the same"),
    on(DEMO, "asm-raw", &[], &["--asm-raw"]),
    on(DEMO, "disassembler-style", &[], &["-M", "intel"]),
    on(DEMO, "intel", &[], &["--intel"]),
    on(DEMO, "width", &[], &["--width", "20"]),
    accepted("wide", &["--wide"], "a pipe gets whole lines without it"),
    on(DEMO, "no-inline", &[], &["--no-inline"]),
    on(DEMO, "inline", &["--no-inline"], &["--inline"]),
    on(DEMO, "pid", &[], &["--pid", "1"]),
    on(DEMO, "tid", &[], &["--tid", "1"]),
    on(DEMO, "cpu", &[], &["--cpu", "77"]),
    on(DEMO, "cgroup", &[], &["--cgroup", "nowhere"]),
    on(DEMO, "time", &[], &["--time", "0%-10%"]),
    accepted("request", &["--request", "call"], "no recording has requests and code"),
    accepted(
        "request-longer-than",
        &["--request", "call", "--request-longer-than", "20ms"],
        "the same",
    ),
    accepted("request-key", &["--request", "call", "--request-key", "99"], "the same"),
];

const ANNOTATE: Walk = Walk {
    subcommand: "annotate",
    cells: &[plain(&[]), plain(&["--json"]), plain(&["kernels::hash_block"])],
    lists: &[ANNOTATE_OPTIONS],
};

const DIFF_OPTIONS: &[Sample] = &[
    accepted("json", &["--json"], "it is an output"),
    accepted("html", &["--html", "PAGE"], "it is an output"),
    waits("per", &["--per", "1,2"]),
    waits("per-event", &["--per-event", "cpu-clock"]),
    accepted("fail-above", &["--fail-above", "1"], "the recordings are one"),
    waits("percent-limit", &["--percent-limit", "30"]),
    waits("dataset", &["--dataset", "nowhere"]),
    waits("width", &["--width", "20"]),
    accepted("waits", &["--waits"], "it is an answer"),
    accepted("locks", &["--locks"], "it is an answer"),
    accepted("wall", &["--wall"], "it is an answer"),
    Sample {
        option: "requests",
        base: &[],
        args: &["--requests"],
        recordings: REQUESTS,
        is_accepted_alone: true,
    },
    accepted("stat", &["--stat"], "it is an answer, of other files"),
    waits("sort", &["--sort", "comm"]),
];

const DIFF: Walk = Walk {
    subcommand: "diff",
    cells: &[
        plain(&["perf.data", "perf.data"]),
        plain(&["perf.data", "perf.data", "--json"]),
        plain(&["perf.data", "perf.data", "--html", "PAGE"]),
        plain(&["perf.data", "perf.data", "--waits"]),
    ],
    lists: &[FILTERS, OF_REQUESTS, STACKS, FRAMES, DIFF_OPTIONS],
};

/// Answers for which no stored recording shows that an option acts: it would need a sample in inlined code, which
/// --symbols would choose, or cgroups of samples or branch records with requests.
pub(crate) const NOT_STORED: &[(&str, &[&str])] = &[
    ("--cgroup-tree", &["inline", "no-inline", "request", "request-longer-than", "request-key"]),
    ("--total-cycles", &["request", "request-longer-than", "request-key"]),
];

/// Options that have no answer here: waits belong to threads, a dataset takes no --symfs, which each run gives, counts are
/// in other files, and the recording with requests has no code.
pub(crate) const NOWHERE: [(&str, &str); 7] = [
    ("switches", "cpu"),
    ("locks", "cpu"),
    ("diff", "dataset"),
    ("diff", "stat"),
    ("annotate", "request"),
    ("annotate", "request-longer-than"),
    ("annotate", "request-key"),
];

/// All that are walked.
pub(crate) const COMMANDS: [&Walk; 6] = [&REPORT, &SWITCHES, &LOCKS, &SCRIPT, &ANNOTATE, &DIFF];
