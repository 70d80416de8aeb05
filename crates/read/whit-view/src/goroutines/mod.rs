//! Waits of goroutines as text and as JSON.

mod json;
#[cfg(test)]
mod tests;
mod text;

pub use json::{VERSION, write_json};
pub use text::{TextOptions, write_text};

use crate::units::counted;
use std::cmp::Reverse;
use whit_profile::tables::GoroutineWaker;
use whit_why::{GoWait, GoWaker, Goroutines};

/// Sentences about waits that are in no number.
fn remarks(goroutines: &Goroutines) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            remarks.push(format!("{} {what}", counted(count, "wait")));
        }
    };
    let open = goroutines.rows.iter().map(|row| row.open).sum();
    add(open, "had not ended when the recording ended: the column Open");
    add(goroutines.begun_before, "began before the recording, and ended in it");
    add(goroutines.of_runtime, "of Go's runtime itself are left out (--runtime shows them)");
    add(goroutines.uncertain, "are left out: records were lost meanwhile");
    remarks
}

/// The longest waits, those without an end first.
fn worst(goroutines: &Goroutines, count: usize) -> Vec<&GoWait> {
    let mut waits: Vec<_> = goroutines.waits.iter().collect();
    waits.sort_by_key(|wait| (Reverse(wait.blocked_ns().unwrap_or(u64::MAX)), wait.from));
    waits.truncate(count);
    waits
}

/// The object of a wait, as far as it is known.
fn object(goroutines: &Goroutines, wait: &GoWait) -> Option<String> {
    let of_queue = match (wait.object.channel, wait.object.semaphore) {
        (Some(channel), _) => Some(format!("channel {channel:#x}")),
        (None, Some(word)) => Some(format!("lock {word:#x}")),
        (None, None) => None,
    };
    of_queue.or_else(|| goroutines.file(wait).map(|file| format!("fd {file}")))
}

/// The kind of the waker.
fn no_goroutine(goroutines: &Goroutines, waker: GoWaker, callsite: Option<u32>) -> &'static str {
    const TIMERS: &str = "runtime.(*timer";
    match waker {
        GoWaker::Ready(GoroutineWaker::Goroutine(_)) => "goroutine",
        GoWaker::Ready(GoroutineWaker::Unknown) => "unknown",
        GoWaker::Ready(GoroutineWaker::Scheduler) => {
            let chain = goroutines.chain(callsite);
            if chain.iter().any(|name| name.starts_with(TIMERS)) { "timer" } else { "scheduler" }
        }
        GoWaker::Ready(GoroutineWaker::Poller) => "poller",
        GoWaker::NoFunction if goroutines.source.has_polls() => "runtime",
        GoWaker::NoFunction => "poller",
    }
}
