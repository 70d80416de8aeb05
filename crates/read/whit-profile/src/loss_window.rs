//! When something may be missing from a recording.

use whit_types::{CpuId, Tid, TimestampNs};

/// A window, both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LossWindow {
    /// Last moment before which nothing is missing.
    pub from: TimestampNs,
    /// Moment from which on nothing is missing.
    pub to: TimestampNs,
}

/// A loss and the ring that had it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingLoss {
    /// Absent where the ring may be that of any CPU.
    pub(crate) cpu: Option<CpuId>,
    /// The only thread with missing records, where it is known: its switch-in was noticed late.
    pub(crate) thread: Option<Tid>,
    pub(crate) window: LossWindow,
    /// Records or samples that are missing, as far as they were counted.
    pub(crate) records: u64,
}

impl RingLoss {
    /// A loss of any thread's records.
    pub(crate) fn of_ring(
        cpu: Option<CpuId>,
        from: TimestampNs,
        to: TimestampNs,
        records: u64,
    ) -> RingLoss {
        RingLoss { cpu, thread: None, window: LossWindow { from, to }, records }
    }
}
