//! Waits for locks of the kernel, where their tracepoints were recorded.

use super::keys::{SiteKey, WaiterKey};
use super::table::{Part, Parts, sorted};
use super::{By, LockViewOptions};
use crate::switches::Stacks;
use rustc_hash::FxHashMap;
use whit_profile::model::Profile;
use whit_profile::switches::{Durations, KernelLockWait, Switches, kernel_lock_caller};

/// A lock, or the locks of one type that a function wants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum KernelKey {
    /// Type and address.
    Lock(u32, u64),
    /// Type and function.
    CallSite(u32, SiteKey),
}

/// One row.
#[derive(Clone, Debug)]
pub(super) struct KernelRow {
    pub(super) key: KernelKey,
    pub(super) waits: Durations,
    pub(super) uncertain: u64,
    pub(super) waiters: Parts<WaiterKey>,
    pub(super) sites: Parts<SiteKey>,
}

/// The row with the longest sum of waits first; none where rows are holders, which nothing tells.
pub(super) fn rows(
    profile: &Profile,
    switches: &Switches,
    options: &LockViewOptions,
) -> Vec<KernelRow> {
    let stacks = Stacks::new(profile, &options.filters, true);
    let mut rows: FxHashMap<KernelKey, Vec<(SiteKey, &KernelLockWait)>> = FxHashMap::default();
    for wait in &switches.locks.kernel {
        if !stacks.wants(&profile.comms[wait.comm.index()], &stacks.frames(wait.node)) {
            continue;
        }
        let site = kernel_lock_caller(profile, wait.node);
        let key = match options.by {
            By::Lock => KernelKey::Lock(wait.flags, wait.address),
            By::CallSite => KernelKey::CallSite(wait.flags, site),
            By::Holder => continue,
        };
        rows.entry(key).or_default().push((site, wait));
    }
    let mut rows: Vec<_> =
        rows.into_iter().map(|(key, waits)| KernelRow::of(key, &waits)).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse((row.waits.total_ns, row.uncertain)), row.key));
    rows
}

impl KernelRow {
    fn of(key: KernelKey, all: &[(SiteKey, &KernelLockWait)]) -> KernelRow {
        let (mut waits, mut uncertain) = (Durations::default(), 0);
        let mut waiters: FxHashMap<_, Part> = FxHashMap::default();
        let mut sites: FxHashMap<_, Part> = FxHashMap::default();
        for (site, wait) in all {
            waits.merge(&wait.waits);
            uncertain += wait.uncertain;
            let Durations { count, total_ns, .. } = wait.waits;
            let part = Part { count, total_ns, uncertain: wait.uncertain };
            let waiter = WaiterKey { comm: wait.comm, thread: wait.thread };
            waiters.entry(waiter).or_default().merge(&part);
            sites.entry(*site).or_default().merge(&part);
        }
        KernelRow { key, waits, uncertain, waiters: sorted(waiters), sites: sorted(sites) }
    }
}

/// The type of a lock by `LCB_F_*` of the kernel's `include/trace/events/lock.h`, in the words of `perf lock contention`.
pub(super) fn type_name(flags: u32) -> String {
    const SPIN: u32 = 1;
    const READ: u32 = 1 << 1;
    const WRITE: u32 = 1 << 2;
    const RT: u32 = 1 << 3;
    const PERCPU: u32 = 1 << 4;
    const MUTEX: u32 = 1 << 5;
    let sides = flags & (READ | WRITE);
    let kind = match flags & !(READ | WRITE) {
        0 if sides == 0 => "semaphore",
        0 => "rwsem",
        SPIN if sides == 0 => "spinlock",
        SPIN => "rwlock",
        RT if sides == 0 => "rtmutex",
        RT => "rwlock-rt",
        PERCPU => "pcpu-sem",
        _ if flags & MUTEX != 0 => "mutex",
        _ => return format!("flags {flags:#x}"),
    };
    match sides {
        READ => format!("{kind}:R"),
        WRITE => format!("{kind}:W"),
        _ => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_perfs_names() {
        for (flags, name) in [
            (0, "semaphore"),
            (1, "spinlock"),
            (0b11, "rwlock:R"),
            (0b101, "rwlock:W"),
            (0b10, "rwsem:R"),
            (0b100, "rwsem:W"),
            (0b1000, "rtmutex"),
            (0b1010, "rwlock-rt:R"),
            (0b1_0100, "pcpu-sem:W"),
            (0b10_0000, "mutex"),
            (0b10_0001, "mutex"),
            (0b100_0000, "flags 0x40"),
        ] {
            assert_eq!(type_name(flags), name);
        }
    }
}
