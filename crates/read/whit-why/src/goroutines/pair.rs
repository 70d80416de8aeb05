//! Waits of goroutines, from their changes.
//!
//! A wait begins where the goroutine parks, and ends where another one or the network's poller makes it ready. The collector's
//! scheduler changes a goroutine without a function of its own, and so does the poller in recordings without polls: such a
//! wait ends where the goroutine runs.

use rustc_hash::FxHashMap;
use whit_perfdata::goroutine::Change;
use whit_profile::tables::{Goroutine, GoroutineChange, GoroutineObject, GoroutineWaker};
use whit_types::TimestampNs;

/// Most waits of a recording; they take up to 700 MiB.
pub(super) const MAX_WAITS: usize = 1 << 22;

/// The side that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GoWaker {
    /// A function of the runtime made the goroutine ready.
    Ready(GoroutineWaker),
    /// No function was recorded: the collector, or the network's poller in recordings without its polls.
    NoFunction,
}

/// A wait of a goroutine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoWait {
    /// Number of the thread that ran it when it parked.
    pub thread: u32,
    /// The one that waited.
    pub goroutine: Goroutine,
    /// When it parked.
    pub from: TimestampNs,
    /// The value of `runtime.waitReason`.
    pub reason: Option<u64>,
    /// The object that it waited for.
    pub object: GoroutineObject,
    /// Where it parked.
    pub callsite: Option<u32>,
    /// How the wait ended; `None` where the recording ends first.
    pub end: Option<WaitEnd>,
}

/// Its moments, its waker, and the place of the waker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitEnd {
    /// When the goroutine was made ready.
    pub ready: TimestampNs,
    /// When a thread ran it; `None` where the recording ends first.
    pub run: Option<TimestampNs>,
    /// It ended the wait.
    pub waker: GoWaker,
    /// Where the waker was.
    pub callsite: Option<u32>,
}

impl GoWait {
    /// From the park until the goroutine was ready.
    pub fn blocked_ns(&self) -> Option<u64> {
        self.end.map(|end| end.ready.since(self.from))
    }

    /// From there until a thread ran it.
    pub fn runnable_ns(&self) -> Option<u64> {
        let end = self.end?;
        Some(end.run?.since(end.ready))
    }
}

/// Makes waits of changes.
#[derive(Debug, Default)]
pub struct GoPairing {
    /// The last wait of each goroutine of each process, which does not run yet.
    waiting: FxHashMap<(u32, u64), GoWait>,
    ended: Vec<GoWait>,
    begun_before: u64,
}

impl GoPairing {
    /// Whether there are more waits than are taken.
    pub fn is_full(&self) -> bool {
        self.ended.len() > MAX_WAITS
    }

    /// Takes the next change of a process, in order of time.
    pub fn add(&mut self, process: u32, change: GoroutineChange) {
        if self.is_full() {
            return;
        }
        let GoroutineChange { time, thread, goroutine, reason, object, waker, callsite, .. } =
            change;
        let key = (process, goroutine.address);
        match change.change {
            Change::Create => {}
            Change::Park => {
                let wait =
                    GoWait { thread, goroutine, from: time, reason, object, callsite, end: None };
                // A resumption that is not recorded.
                self.ended.extend(self.waiting.insert(key, wait));
            }
            Change::Ready => match self.waiting.get_mut(&key) {
                Some(GoWait { end: end @ None, .. }) => {
                    let waker = GoWaker::Ready(waker);
                    *end = Some(WaitEnd { ready: time, run: None, waker, callsite });
                }
                _ => self.begun_before += 1,
            },
            Change::Run => {
                let Some(mut wait) = self.waiting.remove(&key) else { return };
                match &mut wait.end {
                    Some(end) => end.run = Some(time),
                    none => {
                        let waker = GoWaker::NoFunction;
                        *none =
                            Some(WaitEnd { ready: time, run: Some(time), waker, callsite: None });
                    }
                }
                self.ended.push(wait);
            }
        }
    }

    /// All waits in order of their beginnings, and the number of ends whose beginning is not recorded.
    pub fn finish(mut self) -> (Vec<GoWait>, u64) {
        self.ended.extend(self.waiting.into_values());
        self.ended.sort_by_key(|wait| (wait.from, wait.goroutine));
        (self.ended, self.begun_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(time: u64, change: Change, address: u64, waker: Option<u64>) -> GoroutineChange {
        let goroutine = |address| Goroutine { address, number: None };
        GoroutineChange {
            time: TimestampNs(time),
            thread: 0,
            change,
            goroutine: goroutine(address),
            reason: None,
            object: GoroutineObject::default(),
            waker: waker.map_or(GoroutineWaker::Scheduler, |address| {
                GoroutineWaker::Goroutine(goroutine(address))
            }),
            callsite: None,
        }
    }

    fn waits(changes: &[(u64, Change, u64, Option<u64>)]) -> (Vec<GoWait>, u64) {
        let mut pairing = GoPairing::default();
        for (time, kind, address, waker) in changes {
            pairing.add(7, change(*time, *kind, *address, *waker));
        }
        pairing.finish()
    }

    #[test]
    fn a_wait_ends_where_the_goroutine_is_ready() {
        use Change::{Park, Ready, Run};
        let (waits, before) = waits(&[
            (1, Run, 1, None),
            (2, Ready, 3, None),
            (5, Park, 1, None),
            (6, Park, 2, None),
            (15, Ready, 1, Some(9)),
            (16, Run, 2, None),
            (17, Run, 1, None),
            (20, Park, 1, None),
            (21, Park, 2, None),
            (25, Ready, 2, None),
        ]);
        let found: Vec<_> = waits
            .iter()
            .map(|wait| {
                let waker = wait.end.map(|end| end.waker);
                (wait.goroutine.address, wait.blocked_ns(), wait.runnable_ns(), waker)
            })
            .collect();
        let by = |waker| Some(GoWaker::Ready(waker));
        let goroutine = GoroutineWaker::Goroutine(Goroutine { address: 9, number: None });
        assert_eq!(
            found,
            [
                (1, Some(10), Some(2), by(goroutine)),
                (2, Some(10), Some(0), Some(GoWaker::NoFunction)),
                (1, None, None, None),
                (2, Some(4), None, by(GoroutineWaker::Scheduler)),
            ]
        );
        assert_eq!(before, 1);
    }

    #[test]
    fn goroutines_of_two_processes_may_have_one_address() {
        let mut pairing = GoPairing::default();
        pairing.add(1, change(1, Change::Park, 1, None));
        pairing.add(2, change(2, Change::Run, 1, None));
        let (waits, _) = pairing.finish();
        assert_eq!(waits[0].end, None);
    }
}
