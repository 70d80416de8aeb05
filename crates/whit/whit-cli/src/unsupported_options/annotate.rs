//! Options of `perf annotate`.

use super::Unsupported;

const TEXT: &str = "print text with --stdio, or read --json from a program";
const OBJDUMP: &str = "whit reads instructions itself: leave it out";
const ALWAYS: &str = "whit always does so: leave it out";

/// Options that `whit annotate` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct OfAnnotate;

impl Unsupported for OfAnnotate {
    const SUBCOMMAND: &'static str = "annotate";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        ("tui", None, TEXT),
        ("gtk", None, TEXT),
        ("stdio2", None, TEXT),
        ("stdio-color", None, "choose colours with --color auto, always or never"),
        ("objdump", None, OBJDUMP),
        ("addr2line", None, OBJDUMP),
        ("dump-raw-trace", Some('D'), "dump records with: perf annotate -D"),
        ("force", Some('f'), "whit reads recordings of every owner: leave it out"),
        ("modules", Some('m'), "modules are found by themselves: leave it out"),
        ("verbose", Some('v'), "addresses are printed always; bytes with --asm-raw"),
        (
            "ignore-vmlinux",
            None,
            "the running kernel's memory comes first, unless --vmlinux names an image: leave it out",
        ),
        ("demangle-kernel", None, ALWAYS),
        ("itrace", None, "AUX area data is decoded by: perf annotate --itrace"),
        ("data-type", None, "types of data are shown by: perf annotate --data-type"),
        ("type-stat", None, "types of data are shown by: perf annotate --data-type"),
        ("skip-empty", None, ALWAYS),
        ("code-with-type", None, "types of data are shown by: perf annotate --data-type"),
    ];
}
