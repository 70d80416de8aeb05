//! Single waits added up by futex, both stacks, and the thread that ended the wait.
//!
//! The class of a wait is known only when its stack has names, so that all voluntary waits are added up here, and
//! [`LockWait`]s of other classes are left out at the end.

use super::durations::Durations;
use super::futex_symbols;
use super::interval::{Switch, Trust, WaitEnd};
use super::model::Futex;
use super::switch_event::StackRef;
use super::switch_key::SwitchKey;
use crate::prepare::Prepared;
use rustc_hash::FxHashMap;
use whit_types::{Pid, TimestampNs};

/// Different waits that are told apart.
const MAX_LOCK_ROWS: usize = 1 << 18;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct LockKey {
    pub(super) row: SwitchKey,
    /// 0 for none.
    pub(super) futex: u64,
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
