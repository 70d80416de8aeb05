//! Threads that are counted CPU by CPU.
//!
//! An event of a thread on one CPU is enabled wherever the thread runs, and runs on its CPU alone.
//! The kernel's times therefore look as if most had not been seen, though nothing was missed: all
//! CPUs together have seen the thread. Here the time enabled is dealt out to the CPUs by the time
//! that each has seen, so that only what no CPU has seen is estimated.

use std::collections::BTreeMap;

use whit_events::TYPE_SOFTWARE;

use crate::counter::Counter;
use crate::reading::Reading;
use crate::source::Slot;

/// The slots of one counter and one thread.
#[derive(Debug, PartialEq, Eq)]
struct Shared {
    slots: Vec<usize>,
    /// Software events are never counted in turn: all is seen.
    sees_all: bool,
}

/// All slots that share the time of a thread.
#[derive(Debug, Default)]
pub(super) struct SharedTime(Vec<Shared>);

impl SharedTime {
    pub(super) fn of(counters: &[Counter], slots: &[Slot]) -> SharedTime {
        let mut shared: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (index, slot) in slots.iter().enumerate() {
            if let (Some(_), Some(thread)) = (slot.cpu, slot.thread) {
                shared.entry((slot.counter, thread.index)).or_default().push(index);
            }
        }
        let of = |((counter, _), slots): ((usize, usize), Vec<usize>)| Shared {
            slots,
            sees_all: counters[counter].event.pmu_type == TYPE_SOFTWARE,
        };
        SharedTime(shared.into_iter().map(of).collect())
    }

    /// Deals out the times.
    pub(super) fn deal(&self, readings: &mut [Reading]) {
        for Shared { slots, sees_all } in &self.0 {
            let enabled = slots.iter().map(|&slot| readings[slot].enabled_ns).max().unwrap_or(0);
            let running: u128 = slots.iter().map(|&s| u128::from(readings[s].running_ns)).sum();
            for &slot in slots {
                let own = readings[slot].running_ns;
                readings[slot].enabled_ns = match (sees_all, running) {
                    (true, _) | (_, 0) => own,
                    // The clocks of CPUs may differ a little: never less than was seen.
                    _ => {
                        let part = u128::from(own) * u128::from(enabled) / running;
                        u64::try_from(part).unwrap_or(u64::MAX).max(own)
                    }
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use crate::source::ThreadSlot;
    use whit_types::{CpuId, Tid};

    fn dealt(list: &str, times: [(u64, u64); 2]) -> Vec<Reading> {
        let counters = counters(list);
        let thread = Some(ThreadSlot { index: 0, tid: Tid(7) });
        let slot = |cpu| Slot { counter: 0, cpu: Some(CpuId(cpu)), thread };
        let slots = [slot(0), slot(1)];
        let reading = |(enabled_ns, running_ns)| Reading {
            value: if running_ns == 0 { 0 } else { 100 },
            enabled_ns,
            running_ns,
        };
        let mut readings = times.map(reading).to_vec();
        SharedTime::of(&counters, &slots).deal(&mut readings);
        readings
    }

    #[test]
    fn a_thread_that_moved_was_seen_all_the_time() {
        for reading in dealt("page-faults", [(1000, 300), (1000, 690)]) {
            assert_eq!(reading.scaled(), 100);
        }
        for reading in dealt("cycles", [(1000, 300), (1000, 700)]) {
            assert_eq!(reading.scaled(), 100);
        }
        assert!(!dealt("cycles", [(1000, 1000), (1000, 0)])[1].is_counted());
    }

    #[test]
    fn unseen_time_is_estimated() {
        let readings = dealt("cycles", [(1000, 100), (1000, 400)]);
        assert_eq!(readings.iter().map(|r| r.scaled()).collect::<Vec<_>>(), [200, 200]);
        assert_eq!(readings.iter().map(|r| r.percent_running()).collect::<Vec<_>>(), [50.0, 50.0]);
    }
}
