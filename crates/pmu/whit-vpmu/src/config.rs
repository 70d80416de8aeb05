//! How a device is set up.

use crate::filter::EventFilter;
use crate::model::PmuModel;

/// Treatment of the host event of a counter that stops.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash, Default)]
pub enum Backing {
    /// It is kept for the next time, and released when the guest leaves the counter alone.
    #[default]
    Reuse,
    /// It is closed at once, and another opened: what KVM did before Linux 5.5. For comparisons.
    Recreate,
}

/// How a device is set up. Made by [`VpmuConfig::new`] and changed field by field.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VpmuConfig {
    /// The PMU that the guest sees.
    pub model: PmuModel,
    /// Treatment of host events whose counters stop.
    pub backing: Backing,
    /// Events that the guest may count; `None`: all.
    pub filter: Option<EventFilter>,
    /// Shortest time between two rounds of [`Vpmu::on_tick`](crate::Vpmu::on_tick), in nanoseconds: a host
    /// event is released after one to two of them without an access to its counter.
    pub tick_ns: u64,
    /// Most interrupts within a tick. Further ones wait for the next tick.
    pub pmis_per_tick_max: u32,
}

/// 50 ms.
pub const TICK_NS: u64 = 50_000_000;
/// As many as the kernel's default `perf_event_max_sample_rate` (100000 a second) lets be in a tick.
pub const PMIS_PER_TICK_MAX: u32 = 5_000;

impl VpmuConfig {
    /// The defaults: reuse, no filter, a tick of 50 ms and 100000 interrupts a second at most.
    #[must_use]
    pub const fn new(model: PmuModel) -> VpmuConfig {
        VpmuConfig {
            model,
            backing: Backing::Reuse,
            filter: None,
            tick_ns: TICK_NS,
            pmis_per_tick_max: PMIS_PER_TICK_MAX,
        }
    }
}
