//! View models of a finished profile and their text forms.
//!
//! Everything here draws from a [`Profile`](whit_profile::model::Profile) alone: no view opens a
//! recording, resolves a symbol or reads a clock. [`hists`] turns the profile into rows as perf's
//! `report` does; [`stdio`], [`json`] and [`folded`] print them; [`script`] prints single samples.
//!
//! ```
//! use whit_profile::model::*;
//! use whit_types::{Pid, Svma, Tid};
//! use whit_view::folded::{FoldedOptions, write_folded};
//!
//! let mut profile = Profile::default();
//! profile.events.push(EventInfo { name: "cycles".into(), ..EventInfo::default() });
//! profile.comms.push("server".into());
//! profile.threads.push(ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) });
//! let (path, short_name) = ("/usr/bin/server".into(), "server".into());
//! profile.dsos.push(DsoInfo { path, short_name, build_id: None, kind: DsoKind::Elf });
//! let mut parent = NodeId::NONE;
//! for (index, name) in ["main", "serve"].into_iter().enumerate() {
//!     let id = index as u32;
//!     profile.functions.push(FunctionInfo { name: name.into(), dso: DsoId(0), known: true });
//!     let function = FunctionId(id);
//!     let address = Svma(0x1000 + u64::from(id));
//!     profile.frames.push(Frame { function, address, source: None, inlined: false, kernel: false });
//!     profile.nodes.push(CallNode { parent, frame: FrameId(id) });
//!     parent = NodeId(id);
//! }
//! let (event, thread, comm) = (EventId(0), ThreadId(0), CommId(0));
//! profile.rows.push(SampleRow { event, thread, comm, facets: FacetsId(0), node: parent, samples: 2, period: 7 });
//!
//! let mut text = Vec::new();
//! write_folded(&mut text, &profile, event, &FoldedOptions::default())?;
//! assert_eq!(String::from_utf8(text)?, "server;main;serve 7\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller gives the profile that `whit_profile` made. Indexes of a profile made by hand have to lie inside
//! its tables. It escapes nothing: each form escapes names as its readers need.
//!
//! Invariants: no file is opened here and nothing is lost silently: a result that a loss touches
//! is printed with the loss beside it.
#![forbid(unsafe_code)]

pub mod annotate;
pub mod brief;
pub mod cgroup_tree;
pub mod cycle_blocks;
pub mod diff;
pub mod differences;
pub mod flame;
pub mod folded;
pub mod hists;
pub mod json;
pub mod json_strings;
pub mod ledger_json;
pub mod locks;
pub mod relatives;
pub mod requests;
pub mod rows;
pub mod script;
pub mod short_name;
pub mod stdio;
pub mod strip;
pub mod switches;
pub mod tasks;
pub mod wall;
pub mod warning;
pub mod why;
pub mod width;

pub mod goroutines;
mod held_up;
mod json_facets;
mod json_list;
mod units;

#[cfg(test)]
#[path = "../tests/support/builder.rs"]
#[allow(unreachable_pub, reason = "shared with the integration tests by path")]
mod builder;
