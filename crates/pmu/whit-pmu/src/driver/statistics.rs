//! Outcomes of overflows and interrupts.

/// Outcomes of overflows and interrupts. Every overflow that the hardware signalled is in exactly
/// one of [`samples`](Statistics::samples), [`throttled`](Statistics::throttled),
/// [`partial`](Statistics::partial), [`wraps`](Statistics::wraps),
/// [`stopped`](Statistics::stopped), [`stale`](Statistics::stale) and
/// [`pebs_records`](Statistics::pebs_records), but for those that [`stuck`](Statistics::stuck)
/// swept away.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct Statistics {
    /// Overflows that ended a period and gave a sample.
    pub samples: u64,
    /// Overflows that ended a period and were refused; their event was stopped.
    pub throttled: u64,
    /// Overflows in the middle of a period that is longer than a counter.
    pub partial: u64,
    /// Overflows of events that do not sample.
    pub wraps: u64,
    /// Overflows whose event was taken off its counter before the interrupt came.
    pub stopped: u64,
    /// Overflows of counters without an event.
    pub stale: u64,
    /// Records that the hardware wrote itself.
    pub pebs_records: u64,
    /// Interrupts that had something to handle.
    pub interrupts: u64,
    /// Interrupts whose overflows an earlier one had handled.
    pub already_handled: u64,
    /// Interrupts that were not the PMU's.
    pub not_ours: u64,
    /// Times that the status did not become 0 and the PMU was reset.
    pub stuck: u64,
}

impl Statistics {
    pub(super) const ZERO: Statistics = Statistics {
        samples: 0,
        throttled: 0,
        partial: 0,
        wraps: 0,
        stopped: 0,
        stale: 0,
        pebs_records: 0,
        interrupts: 0,
        already_handled: 0,
        not_ours: 0,
        stuck: 0,
    };

    /// Overflows that are accounted for.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.samples
            + self.throttled
            + self.partial
            + self.wraps
            + self.stopped
            + self.stale
            + self.pebs_records
    }
}
