//! The locks that threads waited for longest, for views that show them among other facts.

use super::LockViewOptions;
use super::held;
use super::keys::HolderKey;
use super::table::{LockRow, LockTable, RowKey};
use whit_profile::model::{FunctionId, Profile};
use whit_profile::switches::Switches;

/// Waits for one lock.
pub(crate) struct TopLock {
    /// As the table of locks prints it.
    pub(crate) name: String,
    /// Certain waits.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) total_ns: u64,
    /// The longest of them.
    pub(crate) longest_ns: u64,
    /// Share of the known wall time.
    pub(crate) wall_percent: Option<f64>,
    /// The function whose waits for it are longest.
    pub(crate) call_site: Option<FunctionId>,
    /// The threads that ended the longest sum of waits.
    pub(crate) holder: Option<String>,
}

/// The locks of a recording.
pub(crate) struct TopLocks {
    /// All with certain waits, the one with the longest sum first.
    pub(crate) locks: Vec<TopLock>,
    /// Deadlocks, and threads that waited all the time for a lock with a known holder, a line each.
    pub(crate) held: Vec<String>,
}

/// Needs switches that were loaded with locks.
pub(crate) fn top_locks(profile: &Profile, switches: &Switches) -> TopLocks {
    let table = LockTable::new(profile, switches, &LockViewOptions::default());
    let with_waits = table.rows.iter().filter(|row| row.waits.count > 0);
    TopLocks {
        locks: with_waits.filter_map(|row| top_lock(profile, &table, row)).collect(),
        held: held::lines(profile, &table),
    }
}

fn top_lock(profile: &Profile, table: &LockTable<'_>, row: &LockRow<'_>) -> Option<TopLock> {
    let RowKey::Lock(lock) = &row.key else { return None };
    let known = row.holders.iter().map(|(holder, _)| holder);
    let holder = known.clone().find(|holder| **holder != HolderKey::Unknown);
    Some(TopLock {
        name: lock.name(profile),
        count: row.waits.count,
        total_ns: row.waits.total_ns,
        longest_ns: row.waits.max_ns,
        wall_percent: table.share(row.waits.total_ns),
        call_site: row.sites.first().and_then(|(site, _)| *site),
        holder: holder.map(|holder| holder.name(profile, "")),
    })
}
