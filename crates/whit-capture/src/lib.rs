//! A capture session: which events on which CPUs and threads, the readers that drain the rings,
//! the records that stand for what was there before, losses, and the ledger.
//!
//! Layout: [`session`] holds the order of things. [`target`] says whom to record, [`configure`]
//! turns events and options into attributes, [`open`] opens them and bears refusals, [`ring_set`]
//! maps rings and redirects, [`affinity`] says how many readers there are and where they run, each
//! [`ring_drainer`] drains its rings into a [`stream`], [`loss`] looks at what passes by, [`synthesize`]
//! writes what existed before, [`machine`] fills the header. [`control`] is what other programs may
//! ask for meanwhile, [`cgroup`] finds cgroups, [`branch`] reads filters of branch records.
//!
//! Invariants:
//! - Nothing here knows symbols, prints, or reads the environment; what a user should hear is a
//!   [`notice::Notice`].
//! - `/proc` and `/sys` are values ([`roots::Roots`]), so that all that reads them is testable.
//! - Bytes go from the ring to the file without a copy in between, or with one: into the block
//!   that is written while the ring fills again. Nothing is allocated per record.
//! - What is not recorded is counted: no loss is silent.
#![forbid(unsafe_code)]

pub mod affinity;
pub mod branch;
pub mod build_id;
pub mod configure;
pub mod error;
pub mod event;
pub mod features;
pub mod file_cache;
mod kept_files;
pub mod kernel;
pub mod loss;
mod lost_counts;
pub mod machine;
pub mod mapped_files;
pub mod notice;
pub mod open;
pub mod options;
pub mod output;
mod pmi;
mod record_clock;
pub mod recording;
pub mod registers;
mod ring_clock;
pub mod ring_drainer;
pub mod ring_set;
mod ring_slices;
pub mod session;
pub mod stack_engine;
pub mod stream;
pub mod summary;
pub mod synthesize;
pub mod tracing_data;
mod wakeups;
