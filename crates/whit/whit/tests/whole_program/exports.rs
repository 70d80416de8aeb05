//! Exports: other tools read the sums in them that whit reports.
//!
//! Five recordings (C++, Go, waits, cgroups, losses) are exported, read by the real consumer of each format, and the
//! sums of each function compared. A consumer that is not installed is skipped by name (`scripts/setup.sh test`
//! installs them).

mod cgroups;
pub(crate) mod consumers;
mod files;
mod firefox;
mod order;
mod pprof;
mod readers;
pub(crate) mod recordings;
mod requests;
pub(crate) mod sums;
mod waits;
