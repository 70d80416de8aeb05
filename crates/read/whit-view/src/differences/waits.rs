//! Rows of waits and of wall time.

use super::compare::BlockRows;
use super::locks;
use super::sums::{quantities, values};
use super::what::{self, stable_name};
use super::{Kind, LockKey, Recorded, RowName, Unit};
use crate::diff::join_functions;
use crate::hists::{Filters, SortKey};
use crate::switches::{FlatSort, FlatSortKey, FlatTable, Stacks, SwitchViewOptions};
use whit_profile::model::Profile;
use whit_profile::switches::Switches;
use whit_types::OutsideText;

/// The choice of rows.
#[derive(Clone, Debug)]
pub struct WaitOptions {
    /// Waits, wall time or locks.
    pub kind: Kind,
    /// Which stacks.
    pub filters: Filters,
    /// The keys of rows of waits and wall time.
    pub sort: FlatSort,
    /// The key of rows of locks.
    pub lock_key: LockKey,
}

/// A key that has another value in each run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the numbers of threads and processes are others in each run: compare by comm, not by {0}")]
pub struct UnstableKey(&'static str);

impl WaitOptions {
    /// # Errors
    /// A key means nothing in another run.
    pub fn check(&self) -> Result<(), UnstableKey> {
        let unstable = self.sort.keys().iter().find_map(|key| match key {
            FlatSortKey::OfSamples(SortKey::Pid) => Some("pid"),
            FlatSortKey::OfSamples(SortKey::Tid) => Some("tid"),
            FlatSortKey::OfSamples(SortKey::Tgid) => Some("tgid"),
            _ => None,
        });
        unstable.map_or(Ok(()), |key| Err(UnstableKey(key)))
    }
}

/// Reduces the switches of a recording, which were loaded with blocks.
pub fn of_waits(mut profile: Profile, switches: &Switches, options: &WaitOptions) -> Recorded {
    join_functions(&mut profile);
    let (profile, kind) = (&profile, options.kind);
    let stacks = Stacks::new(profile, &options.filters, true);
    let (mut rows, mut whole) = (BlockRows::default(), BlockRows::default());
    let blocks = switches.block_ns.len();
    let all = RowName::new();
    let quantities = quantities(kind);
    let count = quantities.len();
    let keys = if kind == Kind::Locks {
        locks::enter(stacks, switches, options.lock_key, &mut rows, &mut whole);
        options.lock_key.parts().to_vec()
    } else {
        let view = SwitchViewOptions::default();
        let table = FlatTable::new(stacks, switches, &view, &options.sort);
        for row in &table.rows {
            let of_key = |key: &FlatSortKey| OutsideText::from(stable_name(&row.key.cell(*key)));
            let name: RowName = options.sort.keys().iter().map(of_key).collect();
            let block = (row.key.block.into(), blocks);
            for (quantity, value) in values(kind, &row.sums).into_iter().enumerate() {
                rows.add(&name, (quantity, count), block, value);
            }
        }
        for (_, row, _) in stacks.rows(switches) {
            let block = (row.block.into(), blocks);
            for (quantity, value) in values(kind, &row.sums).into_iter().enumerate() {
                whole.add(&all, (quantity, count), block, value);
            }
        }
        options.sort.keys().iter().map(|key| key_name(*key)).collect()
    };
    let seconds: Vec<f64> = switches.block_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    let uncertain = switches.rows.iter().fold((0u64, 0u64), |(waits, runs), row| {
        (waits + row.sums.lossy_wait_ns, runs + row.sums.lossy_cpu_ns)
    });
    let lost = profile.losses.lost_records.saturating_add(profile.losses.lost_samples);
    let missing = quantities.iter().map(|quantity| match quantity.unit {
        Unit::Count => lost as f64,
        Unit::Time => (uncertain.0 + uncertain.1) as f64,
    });
    Recorded {
        path: profile.recording.path.clone(),
        kind,
        machine: what::machine(&profile.recording),
        what: what::of_switches(profile, switches),
        notes: what::notes(profile),
        keys,
        missing: missing.collect(),
        rows: rows.into_rows(&seconds, &quantities),
        whole: whole.into_rows(&seconds, &quantities).remove(&all),
        seconds,
        quantities,
    }
}

fn key_name(key: FlatSortKey) -> &'static str {
    match key {
        FlatSortKey::WaitClass => "class",
        FlatSortKey::WaitObject => "object",
        FlatSortKey::OfSamples(SortKey::Comm) => "command",
        FlatSortKey::OfSamples(SortKey::Dso) => "binary",
        FlatSortKey::OfSamples(SortKey::Symbol) => "function",
        FlatSortKey::OfSamples(key) => key.name(),
    }
}
