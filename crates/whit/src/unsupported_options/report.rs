//! Options of `perf report`.

use super::Unsupported;

const BRANCHES: &str = "branch records are printed with: whit script -F brstack";
const SOURCE: &str = "show source lines with -s srcline, or disassemble with: perf annotate";
const PARENT: &str = "keep call chains by function with -S NAME";
const TRACE: &str = "print raw data of tracepoints with: whit script -F comm,tid,time,event,trace";
const TABLE: &str = "the table has one form; read --json from a program";
const EVENTS: &str = "each event has a table of its own";
const SWITCH: &str = "choose the time with --time FROM,TO";
const ALWAYS: &str = "whit always does so: leave it out";

/// Options that `whit report` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct OfReport;

impl Unsupported for OfReport {
    const SUBCOMMAND: &'static str = "report";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        ("tui", None, "look at it in a browser: whit report --html page.html"),
        ("gtk", None, "look at it in a browser: whit report --html page.html"),
        ("branch-stack", Some('b'), BRANCHES),
        ("branch-history", None, BRANCHES),
        ("total-cycles", None, BRANCHES),
        ("stitch-lbr", None, BRANCHES),
        (
            "dump-raw-trace",
            Some('D'),
            "count records with --stats, or dump them with: perf report -D",
        ),
        (
            "fields",
            Some('F'),
            "choose what makes a row with -s, and columns with -n and --show-total-period",
        ),
        ("force", Some('f'), "whit reads recordings of every owner: leave it out"),
        ("show-info", Some('I'), "print what the recording says of itself with --header"),
        ("modules", Some('m'), "modules are found by themselves: leave it out"),
        ("parent", Some('p'), PARENT),
        ("exclude-other", Some('x'), PARENT),
        ("ignore-callees", None, PARENT),
        ("symbol-filter", None, "keep rows by function with -S NAME"),
        ("column-widths", Some('w'), TABLE),
        ("pretty", None, TABLE),
        ("stdio-color", None, "the text has no colours: leave it out"),
        ("hierarchy", None, "look at a tree with -g caller, or in a browser with --html page.html"),
        (
            "hide-unresolved",
            Some('U'),
            "leave rows out with --percent-limit, or keep some with -S and -d",
        ),
        ("verbose", Some('v'), "print addresses with: whit script -F ip,sym,symoff,dso"),
        ("disassembler-style", Some('M'), SOURCE),
        ("asm-raw", None, SOURCE),
        ("source", None, SOURCE),
        ("objdump", None, SOURCE),
        ("prefix", None, SOURCE),
        ("prefix-strip", None, SOURCE),
        ("full-source-path", None, SOURCE),
        ("percent-type", None, SOURCE),
        ("demangle-kernel", None, ALWAYS),
        ("skip-empty", None, ALWAYS),
        ("ignore-vmlinux", None, "name the kernel's symbols with --kallsyms FILE"),
        ("raw-trace", None, TRACE),
        ("disable-order", None, TRACE),
        ("group", None, EVENTS),
        ("group-sort-idx", None, EVENTS),
        ("itrace", None, "AUX area data is decoded by: perf report --itrace"),
        ("mem-mode", None, "memory samples are read by: perf mem report"),
        ("mmaps", None, "print the mappings with: perf report --mmaps"),
        ("tasks", None, "print the tasks with: perf report --tasks"),
        ("ns", None, "print times to the nanosecond with: whit script --ns"),
        ("samples", None, "print single samples with: whit script"),
        ("show-cpu-utilization", None, "sort by CPU with -s cpu"),
        ("show-on-off-events", None, SWITCH),
        ("switch-on", None, SWITCH),
        ("switch-off", None, SWITCH),
        ("show-ref-call-graph", None, EVENTS),
        ("socket-filter", None, "keep the CPUs of a socket when recording: whit record -C LIST"),
    ];
}
