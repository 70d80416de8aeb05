//! When something may be missing from a recording.

use whit_types::{CpuId, TimestampNs};

/// A window, both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LossWindow {
    /// Last moment before which nothing is missing.
    pub from: TimestampNs,
    /// Moment from which on nothing is missing.
    pub to: TimestampNs,
}

/// A loss and the ring that had it; without a CPU, that is any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingLoss {
    pub(crate) cpu: Option<CpuId>,
    pub(crate) window: LossWindow,
}
