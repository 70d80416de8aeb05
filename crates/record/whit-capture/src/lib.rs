//! A capture session: events on CPUs and threads, the readers that drain the rings, the records for
//! tasks that existed before, losses, and the ledger.
//!
//! Layout: [`session`] holds the order of things. It turns [`options`] into a plan once, and hands each part of the plan
//! to its user: [`whit_engine_api::event_plan`] to [`configure`], others to rings, streams, the output. A
//! [`whit_engine_api::Engine`] makes call chains: the kernel, or [`whit_bpf_engine`].
//!
//! [`whit_host::target`] finds the threads and CPUs, [`configure`] turns events into attributes, and [`open`] opens
//! them and handles refusals. [`ring_set`] maps rings and redirects, and [`affinity`] decides the number and the CPUs
//! of readers. Each [`ring_drainer`] drains its rings into a [`stream`], and [`loss`] looks at the records that pass.
//! [`synthesize`] writes the tasks that existed before, and [`machine`] fills the header. [`whit_host::control`]
//! receives the requests of other programs, [`whit_host::cgroup`] finds cgroups, and [`branch`] reads filters of branch
//! records.
//!
//! The example is not run: it needs the right to open events, and it blocks signals of the whole process.
//!
//! ```no_run
//! use whit_capture::event::EventSpec;
//! use whit_capture::notice::Notice;
//! use whit_capture::options::{EventPlan, Output, RecordOptions};
//! use whit_capture::session::record;
//! use whit_host::roots::Roots;
//!
//! // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK.
//! let events = EventPlan::for_command(vec![EventSpec::new("cpu-clock", 1, 0)]);
//! let output = Output::File("perf.data".into());
//! let options = RecordOptions::new(events, vec!["true".into()], output);
//! let mut show = |notice: Notice| eprintln!("{notice}");
//! let outcome = record(&options, &Roots::default(), &mut show)?;
//! assert_eq!(outcome.exit_code(), 0);
//! # Ok::<(), whit_capture::error::CaptureError>(())
//! ```
//!
//! The caller calls [`session::record`] before it starts threads, since signals are blocked for each thread alone. It shows
//! the notices, and ends with [`session::Outcome::exit_code`].
//!
//! Invariants:
//! - Nothing here knows symbols, prints, or reads the environment; what a user should hear is a
//!   [`notice::Notice`].
//! - `/proc` and `/sys` are values ([`whit_host::roots::Roots`]), so that all that reads them is testable.
//! - Bytes go from the ring to the file without a copy in between, or with one: into the block
//!   that is written while the ring fills again. Nothing is allocated per record.
//! - Each record that could not be stored is counted: no loss is silent.
#![forbid(unsafe_code)]

pub mod affinity;
pub mod build_id;
pub mod configure;
pub mod error;
pub mod event;
pub mod features;
pub mod file_cache;
mod kept_files;
pub mod kernel;
pub mod loss;
pub mod machine;
pub mod mapped_files;
pub mod notice;
pub mod open;
pub mod options;
pub mod output;
mod perf_maps;
mod plan;
mod pmi;
mod record_clock;
pub mod recording;
pub mod registers;
mod ring_clock;
pub mod ring_drainer;
pub mod ring_set;
mod sampled;
pub mod session;
pub mod stream;
pub mod summary;
pub mod synthesize;
pub mod tracing_data;
mod wakeups;

pub use whit_engine_api::branch;
