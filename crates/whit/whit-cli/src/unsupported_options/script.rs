//! Options of `perf script`.

use super::Unsupported;

const SCRIPTS: &str = "read the lines that it prints, or run the script with: perf script -s";
const BRANCHES: &str = "branch records are printed with -F brstack";
const RECORDS: &str = "count other records with: whit report --stats";
const TRACES: &str = "AUX area data is decoded by: perf script --itrace";
const GUEST: &str = "names of a guest's kernel are found by: perf script --guestmount";

/// Options that `whit script` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct OfScript;

impl Unsupported for OfScript {
    const SUBCOMMAND: &'static str = "script";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        ("script", Some('s'), SCRIPTS),
        ("gen-script", Some('g'), SCRIPTS),
        ("list", Some('l'), SCRIPTS),
        ("dlfilter", None, SCRIPTS),
        ("dlarg", None, SCRIPTS),
        ("list-dlfilters", None, SCRIPTS),
        ("all-cpus", Some('a'), "all that was recorded is printed: leave it out"),
        ("graph-function", None, TRACES),
        ("debug-mode", Some('d'), "count records with: whit report --stats"),
        (
            "dump-raw-trace",
            Some('D'),
            "count records with: whit report --stats, or dump them with: perf script -D",
        ),
        ("dump-unsorted-raw-trace", None, "dump records with: perf script -D"),
        ("force", Some('f'), "whit reads recordings of every owner: leave it out"),
        (
            "show-info",
            Some('I'),
            "print what the recording says of itself with: whit report --header-only",
        ),
        ("verbose", Some('v'), "print addresses with -F ip,sym,symoff,dso"),
        ("call-trace", None, TRACES),
        ("call-ret-trace", None, TRACES),
        ("insn-trace", None, TRACES),
        ("itrace", None, TRACES),
        ("xed", None, TRACES),
        ("demangle-kernel", None, "whit always does so: leave it out"),
        (
            "full-source-path",
            None,
            "paths are printed as the debug information has them: leave it out",
        ),
        ("show-kernel-path", None, "print the binaries with -F +dso"),
        ("guest-code", None, GUEST),
        ("guestkallsyms", None, GUEST),
        ("guestmodules", None, GUEST),
        ("guestmount", None, GUEST),
        ("guestvmlinux", None, GUEST),
        ("max-blocks", None, BRANCHES),
        ("stitch-lbr", None, BRANCHES),
        (
            "show-round-events",
            None,
            "lines stand in order of time, where rounds have no place; count them with: whit report --stats",
        ),
        ("show-text-poke-events", None, RECORDS),
    ];
}
