//! Context switches, typed: per thread, when it ran, when it waited, for what, and who ended that.
//!
//! What records say is brought to statements (`fact`); the interval logic (`intervals`) alone makes
//! switches and runs of them, and `sums` add these up. An engine that records switches
//! otherwise only has to make statements.
//!
//! Memory grows with threads and distinct call stacks, not with switches; single intervals are kept up
//! to bounds ([`SwitchOptions`], [`Timeline::max_stretches`]).

mod decode;
mod fact;
mod finish;
mod interval;
mod intervals;
mod load;
mod losses;
mod model;
mod phase;
mod recorded_spans;
mod ring_losses;
mod roles;
mod sums;
mod thread;
mod timeline;

pub use fact::{TaskState, WaitKind};
pub use interval::{Misfits, Trust};
pub use load::{SwitchOptions, load, may_tell};
pub use losses::LossWindow;
pub(crate) use losses::RingLoss;
pub use model::{
    Activity, Sources, Stretch, SwitchRow, SwitchSums, Switches, Timeline, Wait, Waker, WakerRow,
};
pub(crate) use ring_losses::{RecordedCpus, RingLosses};
