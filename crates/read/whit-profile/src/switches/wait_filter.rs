//! Waits that the user leaves out: by their length or class, and those of idle threads.

use super::classify::NodeClasses;
use super::model::{NamedObject, SwitchRow, SwitchSums, Switches};
use super::wait_class::WaitClassSet;
use crate::handle::WaitId;
use crate::model::{Profile, ThreadId};
use crate::warning::Warning;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use whit_types::{Tid, TimestampNs};

/// Which waits to keep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WaitFilter {
    /// Only waits that are at least this long, in nanoseconds.
    pub min_ns: Option<u64>,
    /// Only waits that are at most this long.
    pub max_ns: Option<u64>,
    /// No waits of threads that took less CPU time than this.
    pub idle_below_ns: Option<u64>,
    /// Only waits of these classes.
    pub classes: Option<WaitClassSet>,
    /// Only voluntary waits for objects that one of these is a part of the name of; all where empty.
    pub objects: Vec<String>,
    /// Only this wait.
    pub only: Option<WaitId>,
}

impl WaitFilter {
    /// True for a wait of a wanted length.
    pub(super) fn has_length(&self, duration_ns: u64) -> bool {
        self.min_ns.is_none_or(|min| duration_ns >= min)
            && self.max_ns.is_none_or(|max| duration_ns <= max)
    }

    /// True for the wait of a thread from `start` on, where a single one is wanted only for that.
    pub(super) fn is_chosen(&self, tid: Tid, start: TimestampNs) -> bool {
        self.only.is_none_or(|only| only == WaitId { tid, start })
    }

    /// Takes the waits of other classes out of the sums, the single waits and the wakers.
    pub(super) fn leave_out_classes(&self, profile: &Profile, switches: &mut Switches) {
        let Some(wanted) = self.classes else { return };
        let classes = NodeClasses::of(profile, switches.rows.iter().map(|row| row.node));
        let mut left_out: FxHashMap<ThreadId, u64> = FxHashMap::default();
        for row in &mut switches.rows {
            let sum = left_out.entry(row.thread).or_default();
            let mut kept = SwitchSums::default();
            for (class, part) in classes.split(row) {
                match class {
                    Some(class) if !wanted.has(class) => *sum = sum.saturating_add(waits_ns(&part)),
                    _ => kept.add(&part),
                }
            }
            row.sums = kept;
        }
        add_left_out(&left_out, switches);
        let rows = &switches.rows;
        // Only voluntary waits have a waker.
        switches.wakers.retain(|waker| {
            rows.get(waker.row as usize).is_some_and(|row| wanted.has(classes.get(row)))
        });
        let worst = NodeClasses::of(profile, switches.worst.iter().map(|wait| wait.node));
        switches.worst.retain(|wait| wanted.has(worst.of_wait(wait)));
    }

    /// Takes the waits for other objects out of the sums, the single waits and the wakers. A warning where a part of a
    /// name is that of no object.
    pub(super) fn leave_out_objects(&self, switches: &mut Switches) -> Option<Warning> {
        if self.objects.is_empty() {
            return None;
        }
        let names: Vec<_> = switches.objects.iter().map(ToString::to_string).collect();
        let longest = longest_objects(switches);
        let has_part = |name: &String| self.objects.iter().any(|part| name.contains(&**part));
        let is_wanted: Vec<_> = names.iter().map(has_part).collect();
        let wanted = |object: Option<u32>| object.is_some_and(|object| is_wanted[object as usize]);
        let mut left_out: FxHashMap<ThreadId, u64> = FxHashMap::default();
        for row in switches.rows.iter_mut().filter(|row| !wanted(row.object)) {
            let sum = left_out.entry(row.thread).or_default();
            *sum = sum.saturating_add(waits_ns(&row.sums));
            row.sums = row.sums.cpu_only();
        }
        add_left_out(&left_out, switches);
        let rows = &switches.rows;
        switches
            .wakers
            .retain(|waker| rows.get(waker.row as usize).is_some_and(|row| wanted(row.object)));
        switches.worst.retain(|wait| wanted(wait.object));
        let is_of_none = |part: &&String| !names.iter().any(|name| name.contains(&***part));
        let parts: Vec<_> = self.objects.iter().filter(is_of_none).cloned().collect();
        let recorded = switches.objects.iter().any(NamedObject::is_known);
        (!parts.is_empty()).then_some(Warning::NoSuchWaitObject { parts, recorded, longest })
    }

    /// Takes the waits of idle threads out of the sums, the single waits and the wakers.
    pub(super) fn leave_out_idle(&self, switches: &mut Switches) {
        let Some(limit) = self.idle_below_ns else { return };
        let idle = idle_threads(&switches.rows, limit);
        let mut left_out: FxHashMap<ThreadId, u64> = FxHashMap::default();
        for row in switches.rows.iter_mut().filter(|row| idle.contains(&row.thread)) {
            let sum = left_out.entry(row.thread).or_default();
            *sum = sum.saturating_add(waits_ns(&row.sums));
            row.sums = row.sums.cpu_only();
        }
        add_left_out(&left_out, switches);
        let rows = &switches.rows;
        switches.wakers.retain(|waker| {
            rows.get(waker.row as usize).is_some_and(|row| !idle.contains(&row.thread))
        });
        switches.worst.retain(|wait| !idle.contains(&wait.thread));
        switches.run_queue.retain(|delays| !idle.contains(&delays.thread));
        switches.locks.waits.retain(|wait| !idle.contains(&wait.thread));
        switches.locks.kernel.retain(|wait| !idle.contains(&wait.thread));
    }
}

/// The names of the objects that threads waited for longest.
fn longest_objects(switches: &Switches) -> Vec<String> {
    const SHOWN: usize = 3;
    let mut waits: FxHashMap<u32, u64> = FxHashMap::default();
    for row in &switches.rows {
        let Some(object) = row.object else { continue };
        let sum = waits.entry(object).or_default();
        *sum = sum.saturating_add(waits_ns(&row.sums));
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|(object, ns)| (Reverse(*ns), *object));
    let objects = waits.iter().filter_map(|(object, _)| switches.objects.get(*object as usize));
    objects.filter(|object| object.is_known()).take(SHOWN).map(ToString::to_string).collect()
}

fn add_left_out(left_out: &FxHashMap<ThreadId, u64>, switches: &mut Switches) {
    for life in &mut switches.lives {
        let more = left_out.get(&life.thread).copied().unwrap_or_default();
        life.left_out_ns = life.left_out_ns.saturating_add(more);
    }
}

/// All waits of a row, certain or not.
fn waits_ns(sums: &SwitchSums) -> u64 {
    let uncertain = [sums.lossy_wait_ns, sums.open_wait_ns, sums.throughout_wait_ns];
    uncertain.into_iter().fold(sums.wait_ns(), u64::saturating_add)
}

/// Threads with less CPU time than a limit.
fn idle_threads(rows: &[SwitchRow], limit_ns: u64) -> FxHashSet<ThreadId> {
    let mut cpu: FxHashMap<ThreadId, u64> = FxHashMap::default();
    for row in rows {
        let sum = cpu.entry(row.thread).or_default();
        *sum = sum.saturating_add(row.sums.cpu_ns).saturating_add(row.sums.lossy_cpu_ns);
    }
    cpu.into_iter().filter(|(_, ns)| *ns < limit_ns).map(|(thread, _)| thread).collect()
}

#[cfg(test)]
mod tests {
    use super::super::model::ThreadLife;
    use super::*;
    use crate::model::{CommId, NodeId};
    use crate::switches::CpuParts;

    #[test]
    fn lengths_include_both_limits() {
        let filter = WaitFilter { min_ns: Some(5), max_ns: Some(7), ..WaitFilter::default() };
        let kept: Vec<_> = (3..10).filter(|ns| filter.has_length(*ns)).collect();
        assert_eq!(kept, [5, 6, 7]);
        assert!(WaitFilter::default().has_length(0));
    }

    #[test]
    fn waits_of_idle_threads_are_left_out_and_their_cpu_time_stays() {
        let row = |thread, cpu_ns| SwitchRow {
            thread: ThreadId(thread),
            comm: CommId(0),
            node: NodeId::NONE,
            object: None,
            brings: Default::default(),
            block: 0,
            sums: SwitchSums { cpu_ns, sync_count: 1, sync_wait_ns: 70, ..SwitchSums::default() },
        };
        let life = |thread| ThreadLife {
            thread: ThreadId(thread),
            elapsed_ns: 1000,
            left_out_ns: 1,
            parts: CpuParts::default(),
        };
        let mut switches = Switches {
            rows: vec![row(0, 9), row(1, 10), row(0, 0)],
            lives: vec![life(0), life(1)],
            ..Switches::default()
        };
        let filter = WaitFilter { idle_below_ns: Some(10), ..WaitFilter::default() };
        filter.leave_out_idle(&mut switches);
        let waits: Vec<_> = switches.rows.iter().map(|row| row.sums.sync_wait_ns).collect();
        assert_eq!(waits, [0, 70, 0]);
        assert_eq!(switches.rows[0].sums.cpu_ns, 9);
        assert_eq!(
            switches.lives.iter().map(|life| life.left_out_ns).collect::<Vec<_>>(),
            [141, 1]
        );
    }
}
