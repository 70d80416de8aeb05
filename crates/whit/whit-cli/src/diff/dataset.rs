//! `whit diff --dataset`: compares parts of a dataset. `whit-query` does it, since it reads datasets.

use crate::symbol_args::SELECTING;

/// The first argument that makes `whit-query` compare.
pub const DIFF: &str = "diff";

/// Options on recordings and their symbols: a dataset has names, and selections choose its samples.
pub(super) fn conflicts() -> impl Iterator<Item = &'static str> {
    const OF_NAMES: [&str; 8] = [
        "max_stack",
        "inline",
        "no_inline",
        "no_demangle",
        "symfs",
        "vmlinux",
        "kallsyms",
        "threads",
    ];
    SELECTING.into_iter().chain(OF_NAMES)
}
