//! Requests: the calls of a function, their durations, and the parts of their time.
//!
//! The recorder notes the beginning and the end of each call (`whit record --request`), or data that a server receives and
//! sends. [`Pairing`] makes calls of them, nested and recursive ones too. The time of a call is that of its thread: on a CPU, in the run queue, in waits. The
//! parts of a call add up to its duration, or a part says why it is unknown ([`Part`]).
//!
//! A lost beginning or end makes a call open, and never long.

mod call;
mod calls;
mod connections;
mod live;
mod load;
mod pair;
mod parts;
mod quantile;
mod recorded;
mod tail;

pub use call::{Call, Counts};
pub(crate) use calls::{CallsOfThreads, chosen};
pub use calls::{ChosenRequests, WhichRequests};
pub use live::{SlowRequest, SlowRequests};
pub use load::{AllRequests, Requests, RequestsOfName};
pub use pair::Pairing;
pub use parts::{Part, Parts};
pub use quantile::{QUANTILES, Quantile};
pub use recorded::{EachCall, RecordedCall, RecordedCalls, TimesOfRequests};
pub use tail::{Tail, TailPart};
