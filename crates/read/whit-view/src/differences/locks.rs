//! Rows of locks: waits for them, and CPU time in functions that take them.

use super::RowName;
use super::compare::BlockRows;
use super::sums::{waiting_ns, waits, whole_ns};
use super::what::stable_name;
use crate::locks::{lock_name, site_name};
use crate::switches::Stacks;
use rustc_hash::FxHashMap;
use std::str::FromStr;
use whit_profile::model::{FunctionId, NodeId};
use whit_profile::switches::{LockSites, NodeClasses, Switches, WaitClass, lock_taken_at};
use whit_types::OutsideText;

/// Waiting, waits, their length, spinning.
const QUANTITIES: usize = 4;

/// The key of rows of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LockKey {
    /// The lock, by its name. Only waits say which lock it is, so that no row has time of spinning.
    Lock,
    /// The function that wants locks.
    #[default]
    CallSite,
    /// Threads of one name.
    Comm,
}

/// A word that is no key of locks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("locks are not compared by `{0}`: the keys are callsite, lock and comm")]
pub struct UnknownLockKey(String);

impl FromStr for LockKey {
    type Err = UnknownLockKey;

    fn from_str(word: &str) -> Result<LockKey, UnknownLockKey> {
        match word {
            "lock" => Ok(LockKey::Lock),
            "callsite" => Ok(LockKey::CallSite),
            "comm" => Ok(LockKey::Comm),
            other => Err(UnknownLockKey(other.to_owned())),
        }
    }
}

impl LockKey {
    pub(super) fn parts(self) -> &'static [&'static str] {
        match self {
            LockKey::Lock => &["lock"],
            LockKey::CallSite => &["call site"],
            LockKey::Comm => &["command"],
        }
    }
}

/// Adds the waits for locks up, and the time that threads spent in functions that take them.
pub(super) fn enter(
    stacks: Stacks<'_>,
    switches: &Switches,
    key: LockKey,
    rows: &mut BlockRows,
    whole: &mut BlockRows,
) {
    let profile = stacks.profile();
    let nodes = || switches.rows.iter().map(|row| row.node);
    let classes = NodeClasses::of(profile, nodes());
    let sites = LockSites::of(profile, nodes(), std::iter::empty());
    let mut taken: FxHashMap<NodeId, Option<FunctionId>> = FxHashMap::default();
    let (all, blocks) = (RowName::new(), switches.block_ns.len());
    let name = |text: String| vec![OutsideText::from(stable_name(&text))];
    for (_, row, _) in stacks.rows(switches) {
        let comm = || profile.comms[row.comm.index()].exact().to_owned();
        let block = (row.block.into(), blocks);
        let mut add = |name: &RowName, quantity: usize, value: u64, events: u64| {
            let value = (value as f64, events);
            rows.add(name, (quantity, QUANTITIES), block, value);
            whole.add(&all, (quantity, QUANTITIES), block, value);
        };
        if let Some(site) = sites.wait(row.node) {
            let of_lock = classes.split(row);
            for (_, sums) in of_lock.filter(|(class, _)| *class == Some(WaitClass::Lock)) {
                let of_row = name(match key {
                    LockKey::Lock => lock_name(profile, switches, row, site),
                    LockKey::CallSite => site_name(profile, site.caller),
                    LockKey::Comm => comm(),
                });
                add(&of_row, 0, waiting_ns(&sums), waits(&sums));
                add(&of_row, 1, waits(&sums), waits(&sums));
                add(&of_row, 2, whole_ns(&sums), waits(&sums));
            }
        }
        if row.sums.cpu_ns > 0
            && let Some(caller) =
                *taken.entry(row.node).or_insert_with(|| lock_taken_at(profile, row.node))
        {
            let of_row = match key {
                LockKey::Lock => continue,
                LockKey::CallSite => name(site_name(profile, Some(caller))),
                LockKey::Comm => name(comm()),
            };
            add(&of_row, 3, row.sums.cpu_ns, 1);
        }
    }
}
