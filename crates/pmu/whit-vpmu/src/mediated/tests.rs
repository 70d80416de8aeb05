//! An exhaustive search over a small machine: two guests, one CPU, and a host that counts.

mod explore;
mod few;
mod hardware;
mod machine;
