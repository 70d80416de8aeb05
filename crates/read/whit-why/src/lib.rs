//! Why an interval of a thread took as long as it did: its critical path.
//!
//! The path begins at the end of the interval and leads back to its beginning. Where the thread was on a CPU, that is a
//! piece. Where it waited, the thread that ended the wait explains it: by the runs and waits of that thread since the wait
//! began. So each moment of the interval is in one piece, and the lengths of all pieces add up to
//! the interval ([`critical_path`]). A moment that the recording does not explain is in a piece that says why.
//!
//! [`AllRequests`] asks for the requests of a recording: calls of a function, and where their time is.
//!
//! ```
//! use whit_perfdata::reader::Recording;
//! use whit_profile::{ReadOptions, Reading};
//! use whit_symbolize::{DebugDirs, SymbolizerConfig};
//! use whit_testing::golden::Golden;
//! use whit_why::Interval;
//!
//! let path = Golden::folder().join("../waits/waits.data");
//! let options = ReadOptions::new(1, SymbolizerConfig::new(DebugDirs::none()));
//! let recording = Recording::open(&path)?;
//! let why = Reading::open(&recording, &options).answer(Interval::default())?;
//! let explained = &why.intervals[0];
//! let pieces: u64 = explained.path.pieces.iter().map(|piece| piece.duration_ns()).sum();
//! assert_eq!(pieces, explained.to.since(explained.from));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - Pieces follow each other without a gap and without an overlap, whatever the recording says.
//! - Memory grows with the runs and waits in the interval, up to [`MAX_INTERVALS`], not with samples.
#![forbid(unsafe_code)]

mod error;
mod explained;
mod goroutines;
mod group;
mod histories;
mod history;
mod load;
mod losses;
mod path;
mod place;
mod requests;
mod runs;
mod stacks;
mod times;

pub use error::WhyError;
pub use explained::Explained;
pub use goroutines::{
    GoPairing, GoPart, GoRow, GoWait, GoWaker, GoroutineId, GoroutineWaits, Goroutines, WaitEnd,
};
pub use group::{ExplainedGroup, Group, GroupKey};
pub use history::{MAX_INTERVALS, Run, ThreadHistory, Wait, WaitSite, WakeUp, Waker};
pub use load::{Interval, SlowestOfEach, Why};
pub use path::{Activity, HandOver, HandOverId, Path, Piece, Unknown, critical_path, own_time};
pub use place::{Place, Places, ThreadName, Threads};
pub use requests::{
    AllRequests, Call, ChosenRequests, Counts, EachCall, Pairing, Part, Parts, QUANTILES, Quantile,
    RecordedCall, RecordedCalls, Requests, RequestsOfName, SlowRequest, SlowRequests, Tail,
    TailPart, TimesOfRequests, WhichRequests,
};
pub use stacks::{Stack, StackFrame, Stacks};
pub use times::Times;
