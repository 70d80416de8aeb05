//! Options of `perf report`.

use super::Unsupported;

const BRANCHES: &str =
    "make rows of branches with --branch-stack, or print them with: whit script -F brstack";
const SOURCE: &str =
    "show source lines with -s srcline, or instructions with: whit annotate FUNCTION";
const TRACE: &str =
    "print single records of tracepoints with: whit script -F comm,tid,time,event,trace";
const TABLE: &str = "choose the columns with --fields and their widths with --column-widths, or read --json from a program";
const EVENTS: &str = "each event has a table of its own";
const SWITCH: &str = "choose the time with --time FROM,TO, or print single samples with: whit script --switch-on EVENT";
const ALWAYS: &str = "whit always does so: leave it out";

/// Options that `whit report` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct OfReport;

impl Unsupported for OfReport {
    const SUBCOMMAND: &'static str = "report";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        ("tui", None, "on a terminal, whit report opens its interface without it: leave it out"),
        ("gtk", None, "look at it in a browser: whit report --html page.html"),
        (
            "branch-history",
            None,
            "print the branches in front of each sample with: whit script -F ip,sym,brstacksym",
        ),
        ("stitch-lbr", None, BRANCHES),
        (
            "dump-raw-trace",
            Some('D'),
            "count records with --stats, or dump them with: perf report -D",
        ),
        ("force", Some('f'), "whit reads recordings of every owner: leave it out"),
        ("show-info", Some('I'), "print what the recording says of itself with --header"),
        ("modules", Some('m'), "modules are found by themselves: leave it out"),
        ("pretty", None, TABLE),
        ("stdio-color", None, "the text has no colours: leave it out"),
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
        ("disable-order", None, TRACE),
        ("itrace", None, "AUX area data is decoded by: perf report --itrace"),
        ("show-on-off-events", None, SWITCH),
        ("switch-on", None, SWITCH),
        ("switch-off", None, SWITCH),
        ("show-ref-call-graph", None, EVENTS),
    ];
}
