//! Counts that the tool takes itself: wall-clock time, and the command's CPU time.

use std::time::Duration;

use whit_events::ToolEvent;
use whit_sys::usage::CpuUsage;

use crate::counter::Counter;
use crate::reading::Reading;
use crate::source::Slot;

/// Whether it measures the command.
pub(super) fn needs_command(tool: ToolEvent) -> bool {
    match tool {
        ToolEvent::DurationTime => false,
        ToolEvent::UserTime | ToolEvent::SystemTime => true,
    }
}

/// Writes them into their slots. The command's CPU time is known only after its end.
pub(super) fn fill(
    counters: &[Counter],
    slots: &[Slot],
    readings: &mut [Reading],
    elapsed: Duration,
    usage: Option<CpuUsage>,
) {
    for (slot, reading) in slots.iter().zip(readings) {
        let value = match counters[slot.counter].event.tool {
            None => continue,
            Some(ToolEvent::DurationTime) => Some(elapsed.as_nanos() as u64),
            Some(ToolEvent::UserTime) => usage.map(|usage| usage.user_ns),
            Some(ToolEvent::SystemTime) => usage.map(|usage| usage.system_ns),
        };
        // Time in which nothing was used is seen, too.
        let seen = |value: u64| if value > 0 { value } else { elapsed.as_nanos() as u64 };
        *reading = value.map_or(Reading::ZERO, |value| Reading {
            value,
            enabled_ns: seen(value),
            running_ns: seen(value),
        });
    }
}
