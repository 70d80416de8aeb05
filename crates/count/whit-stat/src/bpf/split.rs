//! Which counters share an event, and which are left to the kernel.

use rustc_hash::FxHashMap;
use whit_bpf::cgroup::EVENTS_MAX;
use whit_types::CpuId;

use crate::counter::Counter;
use crate::perf::shared_attr;
use crate::unserved::{DUMMIES, Unserved};

/// Counters, dealt out to those who count them.
#[derive(Debug, Default)]
pub(super) struct Split {
    /// Each different event once, in no cgroup, in its group.
    pub(super) distinct: Vec<Counter>,
    /// For each counter, the index of the unit that counts it; `None` if the kernel's own event
    /// counts it.
    pub(super) counted_by: Vec<Option<usize>>,
    /// Events in cgroups that are the kernel's, by name.
    pub(super) unserved: Vec<(Unserved, Vec<String>)>,
}

/// The properties that two events share if they count the same: attributes, filter, CPUs, and
/// whether the group may be broken up.
type Identity = (Vec<u8>, Option<String>, Option<Vec<CpuId>>, bool);

fn identity(counter: &Counter) -> Identity {
    let event = &counter.event;
    (shared_attr(event), counter.filter.clone(), event.cpus.clone(), event.weak_group)
}

impl Split {
    pub(super) fn of(counters: &[Counter]) -> Split {
        let mut split = Split { counted_by: vec![None; counters.len()], ..Split::default() };
        let mut known: FxHashMap<(bool, Vec<Identity>), usize> = FxHashMap::default();
        for unit in units(counters) {
            let is_group = counters[unit[0]].leader.is_some();
            let members = || unit.iter().map(|&index| &counters[index]);
            if let Some(why) = members().find_map(unserved) {
                split.leave(members(), why);
                continue;
            }
            let key = (is_group, members().map(identity).collect());
            let first = *known.entry(key).or_insert(split.distinct.len());
            if first == split.distinct.len() {
                if first + unit.len() > EVENTS_MAX - DUMMIES {
                    split.leave(members(), Unserved::TooMany);
                    continue;
                }
                split.distinct.extend(members().map(|counter| Counter {
                    leader: is_group.then_some(first),
                    cgroup: None,
                    ..counter.clone()
                }));
            }
            for (number, &index) in unit.iter().enumerate() {
                split.counted_by[index] = Some(first + number);
            }
        }
        split
    }

    fn leave<'a>(&mut self, members: impl Iterator<Item = &'a Counter>, why: Unserved) {
        for name in members.filter(|c| c.cgroup.is_some()).map(|counter| &counter.event.name) {
            let at = self.unserved.iter().position(|(other, _)| *other == why);
            let at = at.unwrap_or_else(|| {
                self.unserved.push((why, Vec::new()));
                self.unserved.len() - 1
            });
            let names = &mut self.unserved[at].1;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }

    /// Whether anything of a cgroup is counted by BPF.
    pub(super) fn serves_cgroups(&self, counters: &[Counter]) -> bool {
        let mut pairs = counters.iter().zip(&self.counted_by);
        pairs.any(|(counter, by)| counter.cgroup.is_some() && by.is_some())
    }

    /// The counters that are the kernel's, in their groups.
    pub(super) fn rest(&self, counters: &[Counter]) -> Vec<Counter> {
        let is_rest = |index: &usize| self.counted_by[*index].is_none();
        let indices: Vec<usize> = (0..counters.len()).filter(is_rest).collect();
        let place = |leader: usize| indices.binary_search(&leader).ok();
        let rest = indices.iter().map(|&index| {
            let counter = &counters[index];
            Counter { leader: counter.leader.and_then(place), ..counter.clone() }
        });
        rest.collect()
    }
}

fn unserved(counter: &Counter) -> Option<Unserved> {
    match &counter.event {
        event if event.uncore => Some(Unserved::Uncore),
        event if event.pinned => Some(Unserved::Pinned),
        _ => None,
    }
}

/// The indices of each group and of each event in none. Absent counters and the tool's own
/// measurements stay with the kernel's source.
fn units(counters: &[Counter]) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    let mut led: FxHashMap<usize, usize> = FxHashMap::default();
    for (index, counter) in counters.iter().enumerate() {
        if counter.event.tool.is_some() || counter.absence.is_some() {
            continue;
        }
        match counter.leader.map(|leader| *led.entry(leader).or_insert(units.len())) {
            Some(unit) if unit < units.len() => units[unit].push(index),
            _ => units.push(vec![index]),
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;
    use whit_types::OutsideText;

    /// The counters of a list in each of these cgroups, and then everywhere.
    fn in_cgroups(text: &str, cgroups: &[&str]) -> Vec<Counter> {
        let mut all = Vec::new();
        for cgroup in cgroups.iter().copied().map(Some).chain([None]) {
            let offset = all.len();
            all.extend(counters(text).into_iter().map(|counter| Counter {
                cgroup: cgroup.map(|name| OutsideText::new(name.into())),
                leader: counter.leader.map(|leader| leader + offset),
                ..counter
            }));
        }
        all
    }

    #[test]
    fn each_event_is_counted_once_for_all_cgroups() {
        let all = in_cgroups("cycles,{cs,faults},cycles:u,cycles/name=Cycles/", &["a", "b"]);
        let split = Split::of(&all);
        let names: Vec<_> = split.distinct.iter().map(|c| c.event.name.as_str()).collect();
        assert_eq!(names, ["cycles", "cs", "faults", "cycles:u"]);
        let leaders: Vec<_> = split.distinct.iter().map(|c| c.leader).collect();
        assert_eq!(leaders, [None, Some(1), Some(1), None]);
        let of_one: [_; 5] = [Some(0), Some(1), Some(2), Some(3), Some(0)];
        assert_eq!(split.counted_by, [of_one; 3].concat());
        assert!(split.serves_cgroups(&all) && split.unserved.is_empty());
        assert!(split.rest(&all).is_empty());
    }

    #[test]
    fn a_group_is_another_event_than_its_members_alone() {
        let split = Split::of(&in_cgroups("cs,{cs,faults},{cs,cs},{cs,faults}", &[]));
        assert_eq!(split.counted_by, [0, 1, 2, 3, 4, 1, 2].map(Some));
    }

    #[test]
    fn events_that_cannot_be_shared_stay_with_the_kernel() {
        let mut all = in_cgroups("cs,duration_time,{faults,cycles},cycles:D", &["a"]);
        all[2].event.uncore = true;
        let split = Split::of(&all);
        assert_eq!(split.counted_by[..5], [Some(0), None, None, None, None]);
        assert_eq!(split.counted_by[5..], [Some(0), None, Some(1), Some(2), None]);
        let wanted = [
            (Unserved::Uncore, vec!["faults".to_owned(), "cycles".to_owned()]),
            (Unserved::Pinned, vec!["cycles:D".to_owned()]),
        ];
        assert_eq!(split.unserved, wanted);
        let rest: Vec<_> = split.rest(&all).into_iter().map(|c| (c.event.name, c.leader)).collect();
        let wanted = [
            ("duration_time", None),
            ("faults", Some(1)),
            ("cycles", Some(1)),
            ("cycles:D", None),
            ("duration_time", None),
            ("cycles:D", None),
        ];
        assert_eq!(rest, wanted.map(|(name, leader)| (name.to_owned(), leader)));
    }

    #[test]
    fn the_pmu_counts_each_event_once_and_the_rest() {
        let all = in_cgroups("cycles,{r1:D,r2}", &["a"]);
        let shared = crate::bpf::shared(&all).unwrap();
        let of = |c: &Counter| (c.event.name.clone(), c.leader, c.cgroup.is_some());
        let wanted = [
            ("cycles", None, false),
            ("r1:D", Some(1), true),
            ("r2", Some(1), true),
            ("r1:D", Some(3), false),
            ("r2", Some(3), false),
        ];
        let wanted = wanted.map(|(name, leader, is_in)| (name.to_owned(), leader, is_in));
        assert_eq!(shared.iter().map(of).collect::<Vec<_>>(), wanted);
        assert_eq!(crate::bpf::shared(&in_cgroups("cycles", &[])), None);
    }

    #[test]
    fn events_beyond_the_limit_stay_with_the_kernel() {
        let text: Vec<_> = (0..EVENTS_MAX + 8).map(|n| format!("r{n:x}")).collect();
        let all = in_cgroups(&text.join(","), &["a"]);
        let split = Split::of(&all);
        assert_eq!(split.distinct.len(), EVENTS_MAX - DUMMIES);
        let served = split.counted_by.iter().filter(|by| by.is_some()).count();
        assert_eq!(served, 2 * (EVENTS_MAX - DUMMIES));
        let [(Unserved::TooMany, names)] = &split.unserved[..] else { panic!("{split:?}") };
        assert_eq!(names.len(), 8 + DUMMIES);
    }
}
