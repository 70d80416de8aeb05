//! From a recording to a profile: process model over time, sample streams, call trees, losses.
//!
//! A recording is read twice. The first pass takes only the sideband (mappings, command names,
//! forks) and the losses; from these the process model of the whole recording is made. In the
//! second pass samples can then be looked up in any order, so that several threads decode blocks
//! of the file at once, each with sums of its own. Symbols come last, once per distinct place.
//!
//! A [`Reading`] answers [`Question`]s: of [`Samples`], of switches ([`switches::SamplesAndSwitches`]), of text
//! ([`script::Script`]), of [`tasks::Tasks`], of [`tables::Tables`].
//!
//! ```
//! use std::path::Path;
//! use whit_perfdata::reader::Recording;
//! use whit_profile::{ReadOptions, Reading, Samples};
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//!
//! let golden = Path::new("../../../tests/recordings/golden");
//! let recording = Recording::open(&golden.join("perf-fp/recording.data"))?;
//! // The recorded programs are kept below another root than `/`.
//! let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
//! let options = ReadOptions::new(2, SymbolizerConfig::new(dirs));
//! let profile = Reading::open(&recording, &options).answer(Samples::default())?;
//!
//! let hottest = profile.rows.iter().max_by_key(|row| row.period).unwrap();
//! let frame = profile.frames[profile.nodes[hottest.node.index()].frame.index()];
//! assert_eq!(profile.functions[frame.function.index()].name, "burn");
//! assert!(profile.losses.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The caller keeps the recording and the programs unchanged meanwhile, and shows [`model::Profile::losses`] and
//! [`model::Profile::warnings`] beside each result.
//!
//! Invariants:
//! - Memory is bounded by the number of processes, mappings, distinct places and distinct call
//!   chains, each with a named bound; not by the size of the recording.
//! - The result does not depend on the number of threads.
//! - Nothing is dropped in silence: what could not be read, unwound or named is counted and ends
//!   up in the profile's losses, stats or warnings.
//! - This crate prints nothing.
#![forbid(unsafe_code)]

mod blocks;
mod call_chain;
pub mod call_times;
mod chained;
mod collect_names;
pub mod companions;
mod error;
mod facets;
mod first_fetch;
mod first_pass;
pub mod handle;
mod header_facts;
mod ids;
mod in_order;
mod interner;
mod loss_window;
mod machine_model;
pub mod model;
mod name_sources;
mod naming;
mod object_table;
pub mod parallelism;
mod parallelism_pass;
pub mod precision;
mod progress;
mod reading;
mod result;
mod samples;
mod samples_pass;
pub mod script;
mod second_pass;
mod selection;
mod stack_table;
mod step_watch;
mod sums;
pub mod switches;
pub mod tables;
pub mod tasks;
pub mod time_filter;
mod trace_number;
mod tracepoints;
pub mod wall;
pub mod warning;

pub use chained::{Chained, ChainedError, ChainedRecords};
pub use collect_names::NotedNames;
pub use error::LoadError;
pub use facets::{
    BranchFacet, DataPlace, Facets, WantedBranches, WantedData, WantedFacets, WantedTrace,
};
pub use first_pass::sample_filter::has_cgroups;
pub use machine_model::machine::ThisMachine;
pub use machine_model::own_names::own_names;
pub use name_sources::{KeptSymbols, NameSources};
pub use naming::code::{CodeBytes, CodeFinder, NoCode, SourceLine, SourceOf};
pub use reading::{Question, ReadOptions, Reading, WithCode};
pub use result::describe::header_of;
pub use result::merge::merge;
pub use samples::{Counted, MAX_SINGLES, Samples, SinglesWanted};
pub use selection::Selection;
pub use sums::examples::{ExampleSample, keep as keep_example};
pub use tracepoints::Tracepoints;
