//! `whit diff --dataset`: compares parts of a dataset. `whit-query` does it, since it reads datasets.

/// The first argument that makes `whit-query` compare.
pub const DIFF: &str = "diff";

/// Options on recordings and their symbols: a dataset has names, and selections choose its samples.
pub(super) const CONFLICTS: [&str; 16] = [
    "pid",
    "tid",
    "cpu",
    "cgroup",
    "time",
    "request",
    "request_longer_than",
    "request_key",
    "max_stack",
    "inline",
    "no_inline",
    "no_demangle",
    "symfs",
    "vmlinux",
    "kallsyms",
    "threads",
];
