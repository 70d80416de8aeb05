//! How long threads were runnable before they came onto a CPU.

use super::durations::Durations;
use super::interval::{Switch, Trust, WaitEnd};
use super::switch_event::WaitKind;
use crate::model::ThreadId;
use whit_types::TimestampNs;

/// The run-queue delays of one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunQueueDelays {
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    pub thread: ThreadId,
    /// One for each time that it came onto a CPU, where the delay is certain.
    pub delays: Durations,
    /// When the longest began.
    pub longest_from: TimestampNs,
}

/// The same while a recording is read.
#[derive(Clone, Debug, Default)]
pub(super) struct DelaySums {
    pub(super) delays: Durations,
    pub(super) longest_from: TimestampNs,
}

impl DelaySums {
    /// Adds the delay of a switch, where it is known.
    pub(super) fn add(&mut self, switch: &Switch, duration_ns: u64) {
        let Some(ns) = delay_ns(switch, duration_ns) else { return };
        if self.delays.count == 0 || ns > self.delays.max_ns {
            let end = switch.out.0.saturating_add(duration_ns);
            self.longest_from = TimestampNs(end.saturating_sub(ns));
        }
        self.delays.add(ns);
    }
}

/// From the wake-up of a voluntary wait; of other waits all.
fn delay_ns(switch: &Switch, duration_ns: u64) -> Option<u64> {
    let is_whole = switch.found_blocked.is_none()
        && matches!(switch.end, WaitEnd::In { trust: Trust::Whole, .. });
    match switch.kind {
        _ if !is_whole => None,
        WaitKind::Preempt | WaitKind::New => Some(duration_ns),
        WaitKind::Sync => {
            let woken = switch.woken?;
            Some(duration_ns - woken.time.since(switch.out).min(duration_ns))
        }
    }
}
