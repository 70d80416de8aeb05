//! The last while of a recording that is still being made, as a recording.
//!
//! A recorder writes a stream that never ends (`whit record -o -`). A [`Window`] takes the stream piece by piece, keeps
//! its records for a while, and writes a recording of them at any time. Old samples go. Old mappings, names and
//! cgroups go into a [`Sideband`], which keeps those that still hold: a later sample is looked up in them.
//!
//! ```
//! use whit_live::{Bounds, Window};
//!
//! let stream = std::fs::read("../../../tests/recordings/golden/perf-pipe/recording.data")?;
//! let mut window = Window::new(Bounds { keep_ns: 60_000_000_000, bytes_max: 1 << 20 });
//! window.push(&stream, 0)?;
//! let mut recording = Vec::new();
//! window.write_to(&mut recording)?;
//! assert_eq!(recording[..8], *b"PERFILE2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Memory is bounded by [`Bounds::bytes_max`], and by the processes, mappings and cgroups that exist; not by the time
//!   that passes ([`Window::prune`]).
//! - Time comes in as a value; nothing is read but the bytes that are given.
#![forbid(unsafe_code)]

mod compress;
mod dump;
mod frozen;
mod mappings;
mod piece;
mod process;
pub mod recorder;
mod sampled;
mod sideband;
mod symbols;
#[cfg(test)]
mod tests;
mod window;

pub use dump::{Dump, Newer};
pub use frozen::Frozen;
pub use sideband::Sideband;
pub use window::{Bounds, Lost, Observer, StreamError, Window};
