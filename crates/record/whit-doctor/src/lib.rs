//! The events and targets that this machine and this user can record, the refused ones, and the
//! command that lifts each refusal.
//!
//! ```
//! use whit_doctor::{Area, Machine, Status, render_text, run};
//!
//! let report = run(&mut Machine::this());
//! assert!(report.of(Area::Recording).count() > 0);
//! // The text shows each refusal.
//! let mut refused = report.findings.iter().filter(|finding| finding.status == Status::Refused);
//! let text = render_text(&report);
//! assert!(refused.all(|finding| text.contains(&finding.what)));
//! ```
//!
//! The caller has put no capability in force: each trial borrows those that the program's file lends, as a
//! recording does.
//!
//! [`list`] does the same for every event that can be written after `-e`.
//!
//! Nothing is concluded from settings alone where it can be tried: events are opened, made to
//! count and made to sample. Settings explain the outcome and name the way out.
//!
//! # Invariants
//!
//! Nothing on the machine is changed. The checks read files below [`Roots`] and ask the kernel
//! through [`Probe`] only, so that a tree of files and a scripted probe stand in for a machine;
//! [`Machine::this`] is the only place that names the real ones.
#![forbid(unsafe_code)]

mod checks;
mod finding;
mod listing;
mod machine;
mod probe;
mod refusal;
mod render;
mod system_probe;
mod work;

pub use checks::{check_processes, run};
pub use finding::{Area, Cost, Finding, Report, Status};
pub use listing::{
    ListedEvent, Listing, MAX_TRACEPOINTS_TRIED, Note, Openable, Selection, TextOptions, Trial,
    Unmatched, list, render_listing_json, render_listing_text, render_names,
};
pub use machine::{Machine, Privileges, ProgramFile};
pub use probe::{Count, EngineTrial, Probe, Target};
pub use render::{render_json, render_text};
pub use system_probe::SystemProbe;
pub use whit_host::roots::Roots;
