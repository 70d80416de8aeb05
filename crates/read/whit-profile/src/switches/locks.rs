//! Single waits added up by futex, both stacks, and the thread that ended the wait.
//!
//! The class of a wait is known only when its stack has names, so that all voluntary waits are added up here, and
//! [`LockWait`]s of other classes are left out at the end.

use super::durations::Durations;
use super::futex_symbols;
use super::interval::{Switch, Trust, WaitEnd};
use super::model::{Futex, LockWait};
use super::switch_event::StackRef;
use super::switch_key::SwitchKey;
use crate::first_pass::prepare::Prepared;
use rustc_hash::FxHashMap;
use whit_types::{Pid, TimestampNs};

/// Different waits that are told apart.
pub(super) const MAX_LOCK_ROWS: usize = 1 << 18;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct LockKey {
    pub(super) row: SwitchKey,
    /// 0 for none.
    pub(super) futex: u64,
    /// The thread that a mutex there names as its holder, of a thread that was found blocked; 0 for none.
    pub(super) owner: u32,
    /// Thread, its stack, and whether an interrupt woke.
    pub(super) waker: Option<(u32, StackRef, bool)>,
}

#[derive(Clone, Debug)]
pub(super) struct LockSums {
    pub(super) waits: Durations,
    pub(super) blocked_ns: u64,
    pub(super) uncertain: u64,
    /// Time of the first wait: the process had the binary at the address then.
    pub(super) first: TimestampNs,
}

/// The sums with the names of their futexes.
pub(super) struct NamedWaits {
    pub(super) waits: Vec<(LockKey, LockSums, Option<Futex>)>,
    pub(super) left_off: u64,
}

/// Sums while a recording is read.
#[derive(Debug, Default)]
pub(super) struct LockTotals {
    pub(super) sums: FxHashMap<LockKey, LockSums>,
    pub(super) left_off: u64,
}

impl LockTotals {
    /// Adds a voluntary wait.
    pub(super) fn add(&mut self, key: LockKey, switch: &Switch, duration_ns: u64) {
        if self.sums.len() >= MAX_LOCK_ROWS && !self.sums.contains_key(&key) {
            self.left_off += 1;
            return;
        }
        let sums = self.sums.entry(key).or_insert_with(|| LockSums {
            waits: Durations::default(),
            blocked_ns: 0,
            uncertain: 0,
            first: switch.out,
        });
        let is_whole = switch.found_blocked.is_none()
            && matches!(switch.end, WaitEnd::In { trust: Trust::Whole, .. });
        if !is_whole {
            sums.uncertain += 1;
            return;
        }
        sums.waits.add(duration_ns);
        if let Some(woken) = switch.woken {
            let blocked_ns = woken.time.since(switch.out).min(duration_ns);
            sums.blocked_ns = sums.blocked_ns.saturating_add(blocked_ns);
        }
    }

    /// Looks the futexes up. `pid` gives the process of a thread by its number.
    pub(super) fn name(self, prepared: &Prepared, pid: &dyn Fn(u32) -> Pid) -> NamedWaits {
        let mut known: FxHashMap<(Pid, u64), Futex> = FxHashMap::default();
        let mut waits = Vec::with_capacity(self.sums.len());
        for (key, sums) in self.sums {
            let futex = (key.futex != 0).then(|| {
                let pid = pid(key.row.thread);
                let named = known.entry((pid, key.futex)).or_insert_with(|| Futex {
                    address: key.futex,
                    symbol: futex_symbols::find(prepared, pid, key.futex, sums.first),
                });
                named.clone()
            });
            waits.push((key, sums, futex));
        }
        NamedWaits { waits, left_off: self.left_off }
    }
}

/// Joins waits that differ only in which worker made their call chains.
pub(super) fn joined(mut waits: Vec<LockWait>) -> Vec<LockWait> {
    let key = |wait: &LockWait| {
        (
            wait.thread,
            wait.comm,
            wait.node,
            wait.futex.as_ref().map(|futex| futex.address),
            wait.waker,
            wait.owner,
        )
    };
    waits.sort_by_key(key);
    waits.dedup_by(|next, kept| {
        let is_same = key(next) == key(kept);
        if is_same {
            kept.waits.merge(&next.waits);
            kept.blocked_ns = kept.blocked_ns.saturating_add(next.blocked_ns);
            kept.uncertain += next.uncertain;
        }
        is_same
    });
    waits
}

#[cfg(test)]
mod tests {
    use super::super::interval::{FoundBlocked, Task, Woken};
    use super::super::object_key::ObjectKey;
    use super::super::switch_event::WaitKind;
    use super::*;
    use crate::ids::{CommId, NodeId, ThreadId};
    use whit_types::Tid;

    const TASK: Task = Task { pid: Pid(7), tid: Tid(8) };

    fn stack(node: u32) -> StackRef {
        StackRef { worker: 0, node }
    }

    fn key(node: u32, futex: u64, waker: Option<u32>) -> LockKey {
        let row = SwitchKey {
            thread: 1,
            comm: 2,
            stack: stack(node),
            object: ObjectKey::None,
            brings: Default::default(),
            block: 0,
        };
        LockKey { row, futex, owner: 0, waker: waker.map(|thread| (thread, stack(9), false)) }
    }

    fn switch(woken_at: Option<u64>, trust: Trust) -> Switch {
        let woken = woken_at.map(|time| Woken {
            time: TimestampNs(time),
            waker: TASK,
            stack: stack(9),
            from_interrupt: false,
            sends_to: ObjectKey::None,
        });
        Switch {
            task: TASK,
            cpu: None,
            out: TimestampNs(100),
            kind: WaitKind::Sync,
            state: None,
            stack: stack(1),
            object: ObjectKey::Futex(0x10),
            woken,
            end: WaitEnd::In { time: TimestampNs(150), cpu: None, trust },
            found_blocked: None,
            is_cut: false,
        }
    }

    #[test]
    fn waits_are_added_up_by_stack_futex_and_waker() {
        let mut totals = LockTotals::default();
        let woken = switch(Some(130), Trust::Whole);
        totals.add(key(1, 0x10, Some(3)), &woken, 50);
        totals.add(key(1, 0x10, Some(3)), &Switch { out: TimestampNs(110), ..woken }, 40);
        for other in [key(2, 0x10, Some(3)), key(1, 0x20, Some(3)), key(1, 0x10, Some(4))] {
            totals.add(other, &woken, 50);
        }
        totals.add(key(1, 0x10, None), &switch(None, Trust::Whole), 50);
        let sums = &totals.sums[&key(1, 0x10, Some(3))];
        assert_eq!((sums.waits.count, sums.waits.total_ns, sums.waits.max_ns), (2, 90, 50));
        assert_eq!((sums.blocked_ns, sums.first), (30 + 20, TimestampNs(100)));
        assert_eq!(totals.sums[&key(1, 0x10, None)].blocked_ns, 0);
        assert_eq!((totals.sums.len(), totals.left_off), (5, 0));
    }

    #[test]
    fn uncertain_waits_are_in_no_time() {
        let mut totals = LockTotals::default();
        let found = FoundBlocked { switches: 1, lasts_throughout: false, owner: 0 };
        let whole = switch(Some(130), Trust::Whole);
        let open = WaitEnd::Open { until: TimestampNs(150), trust: Trust::Whole };
        for uncertain in [
            switch(Some(130), Trust::Lossy),
            Switch { end: open, ..whole },
            Switch { end: WaitEnd::Missing, ..whole },
            Switch { found_blocked: Some(found), ..whole },
        ] {
            totals.add(key(1, 0x10, Some(3)), &uncertain, 50);
        }
        totals.add(key(1, 0x10, Some(3)), &whole, 50);
        let sums = &totals.sums[&key(1, 0x10, Some(3))];
        assert_eq!(
            (sums.uncertain, sums.waits.count, sums.waits.total_ns, sums.blocked_ns),
            (4, 1, 50, 30)
        );
    }

    #[test]
    fn beyond_the_bound_known_waits_still_count() {
        let mut totals = LockTotals::default();
        let whole = switch(None, Trust::Whole);
        for futex in 1..=MAX_LOCK_ROWS as u64 {
            totals.add(key(1, futex, None), &whole, 1);
        }
        totals.add(key(1, 0, None), &whole, 1);
        totals.add(key(1, 1, None), &whole, 1);
        assert_eq!((totals.sums.len(), totals.left_off), (MAX_LOCK_ROWS, 1));
        assert_eq!(totals.sums[&key(1, 1, None)].waits.count, 2);
    }

    #[test]
    fn waits_of_several_workers_are_joined() {
        let wait = |node: u32, ns: u64| {
            let mut waits = Durations::default();
            waits.add(ns);
            LockWait {
                thread: ThreadId(1),
                comm: CommId(0),
                node: NodeId(node),
                futex: None,
                waker: None,
                waits,
                blocked_ns: ns,
                uncertain: 1,
                owner: None,
            }
        };
        let joined = joined(vec![wait(1, 5), wait(2, 7), wait(1, 6)]);
        let sums: Vec<_> = joined
            .iter()
            .map(|wait| {
                (
                    wait.node.0,
                    wait.waits.count,
                    wait.waits.total_ns,
                    wait.blocked_ns,
                    wait.uncertain,
                )
            })
            .collect();
        assert_eq!(sums, [(1, 2, 11, 11, 2), (2, 1, 7, 7, 1)]);
    }
}
