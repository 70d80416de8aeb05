//! Which counters are opened, switched and read together.
//!
//! Groups that the user wrote are sets; so are, unasked, software events of one cgroup. Those are
//! never counted in turn, so that being one group changes nothing for them but that one system
//! call reads them all. A set of ours is led by an event that counts nothing, so that each of its
//! members can also be read by itself.

use std::sync::Arc;

use whit_events::TYPE_SOFTWARE;
use whit_types::OutsideText;

use crate::counter::Counter;

/// Most events of a set of ours. The kernel takes groups whose counts fit into 16 KiB
/// (`perf_event_validate_size` in `kernel/events/core.c`).
const TOGETHER_MAX: usize = 512;

/// Counters that share a leader in each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Set {
    /// Indices, in order.
    pub(super) counters: Vec<usize>,
    /// Whether it is we who put them together.
    pub(super) is_ours: bool,
}

impl Set {
    pub(super) fn alone(counter: usize) -> Set {
        Set { counters: vec![counter], is_ours: false }
    }

    /// Descriptors in each place.
    pub(super) fn descriptors(&self) -> usize {
        self.counters.len() + usize::from(self.is_ours)
    }
}

/// Puts every counter that the kernel has to open into one set. Absent counters and the tool's own
/// measurements are in no set.
pub(super) fn partition(counters: &[Counter]) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    let mut ours: Vec<(Key, usize)> = Vec::new();
    let mut led: Vec<(usize, usize)> = Vec::new();
    for (index, counter) in counters.iter().enumerate() {
        if counter.absence.is_some() || counter.event.tool.is_some() {
            continue;
        }
        let known = match (counter.leader, key(counter)) {
            (Some(leader), _) => led.iter().find(|(l, _)| *l == leader).map(|(_, set)| *set),
            (None, Some(key)) => ours.iter().rev().find(|(k, _)| *k == key).map(|(_, set)| *set),
            (None, None) => None,
        };
        let room =
            |set: &usize| counter.leader.is_some() || sets[*set].counters.len() < TOGETHER_MAX;
        if let Some(set) = known.filter(room) {
            sets[set].counters.push(index);
            continue;
        }
        match (counter.leader, key(counter)) {
            (Some(leader), _) => led.push((leader, sets.len())),
            (None, Some(key)) => ours.push((key, sets.len())),
            (None, None) => {}
        }
        sets.push(Set::alone(index));
    }
    for (_, set) in ours {
        sets[set].is_ours = sets[set].counters.len() > 1;
    }
    sets
}

type Key = (Option<OutsideText<Arc<str>>>, Option<bool>);

/// Software events with equal keys share a set; `None` for all other events.
fn key(counter: &Counter) -> Option<Key> {
    let event = &counter.event;
    let is_free = event.pmu_type == TYPE_SOFTWARE
        && !event.pinned
        && !event.exclusive
        && event.cpus.is_none();
    is_free.then(|| (counter.cgroup.clone(), event.terms.inherit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;

    fn sets(text: &str) -> Vec<(Vec<usize>, bool)> {
        partition(&counters(text)).into_iter().map(|set| (set.counters, set.is_ours)).collect()
    }

    #[test]
    fn groups_stay_and_software_events_are_put_together() {
        assert_eq!(
            sets("task-clock,cycles,page-faults,{cs,migrations},instructions,cpu-clock"),
            [(vec![0, 2, 6], true), (vec![1], false), (vec![3, 4], false), (vec![5], false)]
        );
        assert_eq!(sets("cs"), [(vec![0], false)]);
        assert_eq!(sets("cs:D,faults"), [(vec![0], false), (vec![1], false)]);
    }

    #[test]
    fn cgroups_are_not_mixed_and_tool_events_are_in_no_set() {
        let mut two = counters("cs,faults,cs,faults,duration_time");
        two[2].cgroup = Some(OutsideText::new("a".into()));
        two[3].cgroup = Some(OutsideText::new("a".into()));
        let sets: Vec<_> = partition(&two).into_iter().map(|set| set.counters).collect();
        assert_eq!(sets, [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn sets_of_ours_are_bounded() {
        let many = vec!["cs"; TOGETHER_MAX + 2].join(",");
        let sizes: Vec<_> = partition(&counters(&many)).iter().map(|s| s.counters.len()).collect();
        assert_eq!(sizes, [TOGETHER_MAX, 2]);
    }
}
