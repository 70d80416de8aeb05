//! Rows of waits for locks, and the parts of each row.

use super::keys::{HolderKey, LockKey, SiteKey, WaiterKey};
use super::{By, LockViewOptions};
use crate::switches::Stacks;
use crate::wall::WallTable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::hash::Hash;
use whit_profile::model::{NodeId, Profile, ThreadId};
use whit_profile::switches::{
    Durations, LockSites, LockWait, NodeClasses, SwitchSums, Switches, WaitClass,
};

/// The property that a row stands for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum RowKey {
    /// One lock.
    Lock(LockKey),
    /// A function that wants locks.
    CallSite(SiteKey),
    /// Threads that end waits.
    Holder(HolderKey),
}

/// Waits that share one more property.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    /// Certain waits.
    pub(super) count: u64,
    /// Their sum, in nanoseconds.
    pub(super) total_ns: u64,
    /// Waits of uncertain length.
    pub(super) uncertain: u64,
}

impl Part {
    pub(super) fn merge(&mut self, other: &Part) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.uncertain += other.uncertain;
    }

    fn add(&mut self, wait: &LockWait) {
        let Durations { count, total_ns, .. } = wait.waits;
        self.merge(&Part { count, total_ns, uncertain: wait.uncertain });
    }
}

/// Parts by a property, the longest first.
pub(super) type Parts<K> = Vec<(K, Part)>;

/// One row of the table.
#[derive(Clone, Debug)]
pub(super) struct LockRow<'a> {
    /// The property that its waits share.
    pub(super) key: RowKey,
    /// Certain waits.
    pub(super) waits: Durations,
    /// The part of them until the wake-up, in nanoseconds.
    pub(super) blocked_ns: u64,
    /// Waits of uncertain length.
    pub(super) uncertain: u64,
    /// Waiting threads.
    pub(super) waiters: Parts<WaiterKey>,
    /// Functions that wanted the locks.
    pub(super) sites: Parts<SiteKey>,
    /// Locks that were waited for.
    pub(super) locks: Parts<LockKey>,
    /// Threads that ended the waits.
    pub(super) holders: Parts<HolderKey>,
    /// Threads of each holder.
    pub(super) holder_threads: FxHashMap<HolderKey, FxHashSet<ThreadId>>,
    /// Pairs of call chains: of the waits, and of the threads that ended them.
    pub(super) chains: Parts<(NodeId, Option<NodeId>)>,
    /// All waits of the row.
    pub(super) of: Vec<&'a LockWait>,
}

/// All rows, with sums over them.
#[derive(Clone, Debug)]
pub(super) struct LockTable<'a> {
    /// The row with the longest sum of waits first.
    pub(super) rows: Vec<LockRow<'a>>,
    /// All rows together.
    pub(super) total: Durations,
    /// Waits of uncertain length.
    pub(super) uncertain: u64,
    /// Certain and uncertain waits for user-space locks that are told apart by address, and those that could be.
    pub(super) addressed: (u64, u64),
    /// Certain waits with a wake-up.
    pub(super) woken: u64,
    /// Sums of the waits for locks, with the uncertain ones by cause.
    pub(super) sums: SwitchSums,
    /// Waits of parked threads that are in no row, since nothing tells whether they were for locks.
    pub(super) parked: SwitchSums,
    /// Wall time of the threads that is known, in nanoseconds.
    pub(super) known_ns: u64,
    /// Where each wait lies.
    pub(super) sites: LockSites,
}

impl<'a> LockTable<'a> {
    /// Adds up the waits that the filters let pass.
    pub(super) fn new(
        profile: &'a Profile,
        switches: &'a Switches,
        options: &LockViewOptions,
    ) -> LockTable<'a> {
        let stacks = Stacks::new(profile, &options.filters, true);
        let all = &switches.locks.waits;
        let wakers = all.iter().filter_map(|wait| Some(wait.waker?.node));
        let sites = LockSites::of(profile, all.iter().map(|wait| wait.node), wakers);
        let mut rows: FxHashMap<RowKey, Vec<(Named, &LockWait)>> = FxHashMap::default();
        let (mut total, mut uncertain) = (Durations::default(), 0);
        let (mut addressed, mut woken) = ((0, 0), 0);
        for wait in all {
            let Some(named) = Named::of(profile, wait, &sites) else { continue };
            let comm = &profile.comms[wait.comm.index()];
            if !stacks.wants(comm, &stacks.frames(wait.node)) {
                continue;
            }
            total.merge(&wait.waits);
            uncertain += wait.uncertain;
            let count = wait.waits.count + wait.uncertain;
            match named.lock {
                LockKey::Data(..) | LockKey::Address(..) => {
                    addressed = (addressed.0 + count, addressed.1 + count);
                }
                LockKey::Unaddressed(_) => addressed.1 += count,
                LockKey::Parked(_) | LockKey::Kernel(_) => {}
            }
            woken += wait.waker.map_or(0, |_| wait.waits.count);
            rows.entry(named.key(options.by)).or_default().push((named, wait));
        }
        let rows = rows.into_iter().map(|(key, waits)| LockRow::of(key, waits));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| {
            let weight = |row: &LockRow<'_>| Reverse((row.waits.total_ns, row.uncertain));
            weight(a).cmp(&weight(b)).then_with(|| a.key.cmp(&b.key))
        });
        let (sums, parked) = lock_sums(stacks, switches);
        let known_ns = known_ns(profile, switches, options);
        LockTable { rows, total, uncertain, addressed, woken, sums, parked, known_ns, sites }
    }

    /// The share of the known wall time, in percent; `None` where switches were not recorded.
    pub(super) fn share(&self, ns: u64) -> Option<f64> {
        (self.known_ns > 0).then(|| 100.0 * ns as f64 / self.known_ns as f64)
    }
}

/// Sums of voluntary waits for locks, as the views of switches have them, and of those of parked threads.
fn lock_sums(stacks: Stacks<'_>, switches: &Switches) -> (SwitchSums, SwitchSums) {
    let nodes = switches.rows.iter().map(|row| row.node);
    let classes = NodeClasses::of(stacks.profile(), nodes);
    let (mut sums, mut parked) = (SwitchSums::default(), SwitchSums::default());
    for (_, row, _) in stacks.rows(switches) {
        for (class, part) in classes.split(row) {
            match class {
                Some(WaitClass::Lock) => sums.add(&part),
                Some(WaitClass::Queue) if classes.is_parked(row.node) => parked.add(&part),
                _ => {}
            }
        }
    }
    (sums, parked)
}

/// The life of the threads with a chosen name, without the parts that nothing tells or the user left out.
fn known_ns(profile: &Profile, switches: &Switches, options: &LockViewOptions) -> u64 {
    let filters = crate::hists::Filters {
        comms: options.filters.comms.clone(),
        ..crate::hists::Filters::default()
    };
    let table = WallTable::new(Stacks::new(profile, &filters, true), switches);
    let known = table.threads.iter().map(|thread| {
        let left_out_ns = thread.times.left_out_ns.saturating_add(thread.times.unknown_ns());
        thread.times.elapsed_ns.saturating_sub(left_out_ns)
    });
    known.fold(0, u64::saturating_add)
}

/// The properties of a wait.
struct Named {
    lock: LockKey,
    site: SiteKey,
    holder: HolderKey,
}

impl Named {
    /// `None` for waits that are not for locks.
    fn of(profile: &Profile, wait: &LockWait, sites: &LockSites) -> Option<Named> {
        let site = sites.wait(wait.node)?;
        let release = wait.waker.and_then(|waker| sites.release(waker.node));
        Some(Named {
            lock: LockKey::of(profile, wait, site),
            site: site.caller,
            holder: HolderKey::of(profile, wait, release),
        })
    }

    fn key(&self, by: By) -> RowKey {
        match by {
            By::Lock => RowKey::Lock(self.lock.clone()),
            By::CallSite => RowKey::CallSite(self.site),
            By::Holder => RowKey::Holder(self.holder),
        }
    }
}

impl<'a> LockRow<'a> {
    fn of(key: RowKey, waits: Vec<(Named, &'a LockWait)>) -> LockRow<'a> {
        let (mut sum, mut blocked_ns, mut uncertain) = (Durations::default(), 0u64, 0);
        let mut holder_threads: FxHashMap<_, FxHashSet<_>> = FxHashMap::default();
        for (named, wait) in &waits {
            sum.merge(&wait.waits);
            blocked_ns = blocked_ns.saturating_add(wait.blocked_ns);
            uncertain += wait.uncertain;
            let threads = holder_threads.entry(named.holder).or_default();
            threads.extend(wait.waker.map(|waker| waker.thread));
        }
        LockRow {
            key,
            waits: sum,
            blocked_ns,
            uncertain,
            waiters: parts(&waits, |_, wait| WaiterKey { comm: wait.comm, thread: wait.thread }),
            sites: parts(&waits, |named, _| named.site),
            locks: parts(&waits, |named, _| named.lock.clone()),
            holders: parts(&waits, |named, _| named.holder),
            holder_threads,
            chains: parts(&waits, |_, wait| (wait.node, wait.waker.map(|waker| waker.node))),
            of: waits.into_iter().map(|(_, wait)| wait).collect(),
        }
    }
}

fn parts<K: Hash + Ord + Clone>(
    waits: &[(Named, &LockWait)],
    key: impl Fn(&Named, &LockWait) -> K,
) -> Parts<K> {
    let mut sums: FxHashMap<K, Part> = FxHashMap::default();
    for (named, wait) in waits {
        sums.entry(key(named, wait)).or_default().add(wait);
    }
    sorted(sums)
}

/// The longest first.
pub(super) fn sorted<K: Ord>(sums: FxHashMap<K, Part>) -> Parts<K> {
    let mut parts: Vec<_> = sums.into_iter().collect();
    parts.sort_by(|a, b| {
        let weight = |part: &Part| Reverse((part.total_ns, part.count, part.uncertain));
        weight(&a.1).cmp(&weight(&b.1)).then_with(|| a.0.cmp(&b.0))
    });
    parts
}
