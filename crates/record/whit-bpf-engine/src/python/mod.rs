//! CPython's functions: which binaries have an interpreter, where that has its data, and the names of functions whose
//! frames the programs have met.
//!
//! The programs walk frames and emit addresses (`crates/record/whit-bpf/bpf/interpreter.h`). They tell each function once. A
//! thread here reads its name, file and lines from the memory of the process, while that lives.

mod layout;
mod lines;
mod met;
mod names;
mod objects;

pub(crate) use layout::{Python, find};
pub(crate) use names::{Named, Names};

#[cfg(test)]
pub(crate) use names::tests;
