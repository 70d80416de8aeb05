//! Why an interval of a thread took as long as it did: its critical path.
//!
//! The path begins at the end of the interval and leads back to its beginning. Where the thread was on a CPU, that is a
//! piece. Where it waited, the thread that ended the wait explains it: by the runs and waits of that thread since the wait
//! began. So each moment of the interval is in one piece, and the lengths of all pieces add up to
//! the interval ([`critical_path`]). A moment that the recording does not explain is in a piece that says why.
//!
//! ```
//! use whit_perfdata::reader::Recording;
//! use whit_profile::LoadOptions;
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//! use whit_testing::golden::Golden;
//! use whit_why::{Interval, Why};
//!
//! let path = Golden::folder().join("../waits/waits.data");
//! let options = LoadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
//! let why = Why::load(Recording::open(&path)?, options, &Interval::default(), &|_, _| ())?;
//! let pieces: u64 = why.path.pieces.iter().map(|piece| piece.duration_ns()).sum();
//! assert_eq!(pieces, why.to.since(why.from));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Pieces follow each other without a gap and without an overlap, whatever the recording says.
//! - Memory grows with the runs and waits in the interval, up to [`MAX_INTERVALS`], not with samples.
#![forbid(unsafe_code)]

mod group;
mod history;
mod load;
mod path;
mod place;
mod runs;
mod stacks;

pub use group::{ExplainedGroup, Group, GroupKey};
pub use history::{MAX_INTERVALS, Run, ThreadHistory, Wait, WakeUp, Waker};
pub use load::{Interval, Why, WhyError};
pub use path::{Activity, HandOver, HandOverId, Path, Piece, Unknown, critical_path};
pub use place::{Places, ThreadName};
pub use stacks::{Stack, StackFrame, Stacks};
