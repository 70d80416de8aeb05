//! From a recording to a profile: process model over time, sample streams, call trees, losses.
//!
//! A recording is read twice. The first pass takes only the sideband (mappings, command names,
//! forks) and the losses; from these the process model of the whole recording is made. In the
//! second pass samples can then be looked up in any order, so that several threads decode blocks
//! of the file at once, each with sums of its own. Symbols come last, once per distinct place.
//!
//! ```
//! use std::path::Path;
//! use whit_perfdata::reader::Recording;
//! use whit_profile::{LoadOptions, load};
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//!
//! let golden = Path::new("../../../tests/recordings/golden");
//! let recording = Recording::open(&golden.join("perf-fp/recording.data"))?;
//! // The recorded programs are kept below another root than `/`.
//! let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
//! let profile = load(&recording, &LoadOptions::new(2, SymbolizerConfig::new(dirs)), &|_, _| ())?;
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

mod address_map;
mod aggregate;
mod binaries;
mod block_order;
mod block_sums;
mod branch_chain;
mod census;
mod cgroups;
mod chain;
mod chain_entry;
mod chained;
mod change;
mod clock_relation;
mod code;
mod collect_names;
mod companion_fetch;
pub mod companions;
mod counts;
mod cut_maps;
mod deferred;
mod describe;
mod dso_index;
mod dso_table;
mod error;
mod examples;
mod facets;
mod finish;
mod first_fetch;
pub mod handle;
mod header_facts;
mod ids;
mod interner;
mod kernel_load;
mod kernel_reference;
mod leaf_places;
mod leaf_sums;
mod leaf_thread;
mod load;
mod lookup;
mod loss_window;
mod machine;
mod merge;
pub mod model;
mod one_frame;
mod options;
mod ordered;
mod ordered_batch;
mod ordered_pool;
mod own_names;
pub mod parallelism;
mod place_names;
mod place_symbols;
pub mod precision;
mod prepare;
mod process;
mod progress;
mod replay;
mod ring_full;
mod ring_losses;
mod row_key;
mod sample_filter;
mod sample_period;
mod sample_sums;
mod scan;
pub mod script;
mod scripted_frame;
mod singles;
mod split_reads;
mod stack_table;
mod stated_time;
mod step_watch;
mod stops;
mod stream_plan;
pub mod switches;
pub mod tables;
pub mod tasks;
pub mod time_filter;
mod tracepoints;
mod tree_order;
mod unnamed_runtimes;
pub mod wall;
pub mod warning;
mod without_match;
mod work;

pub use chained::{Chained, ChainedError, write_chained};
pub use code::{CodeBytes, CodeFinder, NoCode, SourceLine, SourceOf};
pub use collect_names::NamesCollector;
pub use describe::header_of;
pub use error::LoadError;
pub use examples::{ExampleSample, keep as keep_example};
pub use facets::{
    BranchFacet, DataPlace, Facets, WantedBranches, WantedData, WantedFacets, WantedTrace,
};
pub use load::{load, load_code, load_with_code};
pub use machine::ThisMachine;
pub use merge::merge;
pub use options::{Counted, KeptSymbols, LoadOptions, MAX_SINGLES, SinglesWanted};
pub use own_names::own_names;
pub use sample_filter::tells_cgroups;
pub use tracepoints::Tracepoints;
