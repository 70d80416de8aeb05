//! Cgroups counted by BPF, through the whole program.

mod agreement;
mod changes;
mod measured;
mod rights;
mod sums;
mod ways;
