use super::*;
use crate::sched::FlatList;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PARENT: CgroupId = CgroupId(1_000_000);

/// A parent with so many children.
fn family(children: u64) -> Hierarchy {
    let mut hierarchy = Hierarchy::new();
    hierarchy.add(PARENT, None).unwrap();
    for child in 0..children {
        hierarchy.add(CgroupId(child), Some(PARENT)).unwrap();
    }
    hierarchy
}

fn spec(cgroup: Option<CgroupId>, pinned: bool, events: &[u64]) -> GroupSpec {
    let events = events.iter().map(|bits| CounterMask::from_bits(*bits)).collect();
    GroupSpec { cgroup, pinned, events }
}

fn scheduler(counters: u8, children: u64) -> CpuScheduler {
    CpuScheduler::new(CounterMask::first_general(counters), family(children))
}

fn child(number: u64) -> Option<CgroupId> {
    Some(CgroupId(number))
}

#[test]
fn common_groups_stay_on_their_counters() {
    let mut cpu = scheduler(8, 3);
    let (everywhere, _) = cpu.add(spec(None, false, &[0xff, 0xff]), 0);
    let (parent, _) = cpu.add(spec(Some(PARENT), false, &[0xff]), 0);
    let (first, _) = cpu.add(spec(child(0), false, &[0xff]), 0);
    let (second, _) = cpu.add(spec(child(1), false, &[0xff]), 0);
    let groups = |moves: &[Move]| moves.iter().map(|m| m.event.group).collect::<Vec<_>>();
    let changes = cpu.switch(child(0), 10);
    assert_eq!((groups(&changes.stop), groups(&changes.start)), (vec![], vec![parent, first]));
    // Siblings: the parent and the whole machine go on counting.
    let changes = cpu.switch(child(1), 20);
    assert_eq!((groups(&changes.stop), groups(&changes.start)), (vec![first], vec![second]));
    let changes = cpu.switch(child(2), 30);
    assert_eq!((groups(&changes.stop), groups(&changes.start)), (vec![second], vec![]));
    assert_eq!(cpu.switch(child(2), 40), Changes::default());
    cpu.switch(None, 50);
    let times = |id| cpu.times(id).map(|times| (times.enabled_ns, times.running_ns));
    assert_eq!(times(everywhere), Some((50, 50)));
    assert_eq!(times(parent), Some((40, 40)));
    assert_eq!((times(first), times(second)), (Some((10, 10)), Some((10, 10))));
}

#[test]
fn a_pinned_group_takes_the_place_of_flexible_ones() {
    let mut cpu = scheduler(2, 2);
    let (flexible, _) = cpu.add(spec(None, false, &[3, 3]), 0);
    let (pinned, _) = cpu.add(spec(child(0), true, &[1]), 0);
    cpu.switch(child(0), 1);
    assert_eq!(cpu.state(pinned), Some(GroupState::Active));
    assert_eq!(cpu.state(flexible), Some(GroupState::Waiting));
    assert!(cpu.rotation_needed());
    cpu.switch(child(1), 2);
    assert_eq!(cpu.state(flexible), Some(GroupState::Active));
    assert!(!cpu.rotation_needed());
}

#[test]
fn a_pinned_group_that_does_not_fit_is_in_error_until_it_is_enabled() {
    let mut cpu = scheduler(1, 1);
    let (first, _) = cpu.add(spec(None, true, &[1]), 0);
    let (second, _) = cpu.add(spec(None, true, &[1]), 0);
    assert_eq!(cpu.state(second), Some(GroupState::Error));
    cpu.remove(first, 1);
    assert_eq!(cpu.state(second), Some(GroupState::Error));
    cpu.enable(second, 2);
    assert_eq!(cpu.state(second), Some(GroupState::Active));
    assert_eq!(cpu.state(first), None);
}

#[test]
fn counters_that_become_free_are_used() {
    let mut cpu = scheduler(1, 1);
    let (first, _) = cpu.add(spec(None, false, &[1]), 0);
    let (second, _) = cpu.add(spec(None, false, &[1]), 0);
    assert_eq!(cpu.state(second), Some(GroupState::Waiting));
    cpu.remove(first, 1);
    assert_eq!((cpu.state(second), cpu.rotation_needed()), (Some(GroupState::Active), false));
}

#[test]
fn visits_grow_with_the_cgroups_own_events_alone() {
    let mut per_switch = Vec::new();
    // Under Miri the flat list of many takes minutes.
    let most = if cfg!(miri) { 20 } else { 1000 };
    for cgroups in [1, 10, most / 10, most] {
        let mut cpu = scheduler(8, cgroups + 1);
        let mut flat = FlatList::new();
        for cgroup in 0..=cgroups {
            for _ in 0..6 {
                let (id, _) = cpu.add(spec(child(cgroup), false, &[0xff]), 0);
                flat.push(child(cgroup), id);
            }
        }
        cpu.switch(child(0), 0);
        let before = cpu.statistics().visits;
        cpu.switch(child(1), 1);
        let visits = cpu.statistics().visits - before;
        let (found, flat_visits) = flat.matching(&cpu.hierarchy.lineage(child(1)));
        assert_eq!((found.len(), flat_visits), (6, 6 * (cgroups + 1)));
        per_switch.push(visits);
    }
    assert_eq!(per_switch, [12, 12, 12, 12], "6 that leave and 6 that come");
}

#[test]
fn those_that_were_there_first_do_not_stay_for_ever() {
    let mut cpu = scheduler(1, 2);
    let (everywhere, _) = cpu.add(spec(None, false, &[1]), 0);
    let (own, _) = cpu.add(spec(child(0), false, &[1]), 0);
    let mut ran = [0, 0];
    for turn in 0..20 {
        cpu.switch(child(turn % 2), 2 * turn);
        ran[0] += u64::from(cpu.state(everywhere) == Some(GroupState::Active));
        ran[1] += u64::from(cpu.state(own) == Some(GroupState::Active));
        cpu.rotate(2 * turn + 1);
    }
    assert!(ran[0] >= 10 && ran[1] >= 4, "{ran:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Switch(Option<u64>),
    Rotate,
    Add(Option<u64>, bool, Vec<u64>),
    Remove(usize),
    Enable(usize),
}

fn cgroup() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(prop_oneof![0..4_u64, Just(PARENT.0)])
}

fn step() -> impl Strategy<Value = Step> {
    let events = prop::collection::vec(1..16_u64, 1..4);
    prop_oneof![
        6 => cgroup().prop_map(Step::Switch),
        3 => Just(Step::Rotate),
        3 => (cgroup(), prop::bool::weighted(0.2), events)
            .prop_map(|(cgroup, pinned, events)| Step::Add(cgroup, pinned, events)),
        1 => (0..20_usize).prop_map(Step::Remove),
        1 => (0..20_usize).prop_map(Step::Enable),
    ]
}

/// The hardware's side: what changes say is on which counter.
#[derive(Default)]
struct Hardware(BTreeMap<CounterIndex, EventId>);

impl Hardware {
    fn take(&mut self, changes: &Changes) {
        for Move { event, counter } in &changes.stop {
            assert_eq!(self.0.remove(counter), Some(*event), "it was there");
        }
        for Move { event, counter } in &changes.start {
            assert_eq!(self.0.insert(*counter, *event), None, "the counter was free");
        }
    }
}

fn check(cpu: &CpuScheduler, hardware: &Hardware) {
    let lineage = cpu.hierarchy.lineage(cpu.current);
    for (id, group) in &cpu.groups {
        let runs = group.spec.cgroup.is_none_or(|cgroup| lineage.contains(&cgroup));
        let on: Vec<_> = hardware.0.iter().filter(|(_, event)| event.group == *id).collect();
        let expected = if group.state == GroupState::Active { group.spec.events.len() } else { 0 };
        assert_eq!(on.len(), expected, "all of a group or nothing");
        for (counter, event) in on {
            assert!(
                group.spec.events[event.event].contains(*counter),
                "a counter that can count it"
            );
        }
        match group.state {
            GroupState::Off => assert!(!runs),
            GroupState::Error => assert!(group.spec.pinned),
            GroupState::Waiting => assert!(runs && !group.spec.pinned && cpu.rotation_needed),
            GroupState::Active => assert!(runs),
        }
    }
    assert!(!cpu.rotation_needed || cpu.groups.values().any(|g| g.state == GroupState::Waiting));
}

fn take(cpu: &mut CpuScheduler, ids: &mut Vec<GroupId>, step: &Step, now: u64) -> Changes {
    let nth = |ids: &[GroupId], n: usize| ids.get(n).copied();
    match step {
        Step::Switch(to) => cpu.switch(to.map(CgroupId), now),
        Step::Rotate => cpu.rotate(now),
        Step::Add(cgroup, pinned, events) => {
            let (id, changes) = cpu.add(spec(cgroup.map(CgroupId), *pinned, events), now);
            ids.push(id);
            changes
        }
        Step::Remove(n) => nth(ids, *n).map(|id| cpu.remove(id, now)).unwrap_or_default(),
        Step::Enable(n) => nth(ids, *n).map(|id| cpu.enable(id, now)).unwrap_or_default(),
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(300))]

    /// The writes to the hardware add up; groups are whole; nothing that may run and fits waits
    /// without a rotation to come.
    #[test]
    fn states_are_consistent(steps in prop::collection::vec(step(), 1..60)) {
        let mut cpu = scheduler(4, 4);
        let (mut hardware, mut ids) = (Hardware::default(), Vec::new());
        for (now, step) in (0..).zip(&steps) {
            hardware.take(&take(&mut cpu, &mut ids, step, now));
            check(&cpu, &hardware);
        }
    }

    /// Pinned before flexible: a pinned group is only in error where the pinned ones alone did not fit.
    #[test]
    fn pinned_groups_come_first(
        groups in prop::collection::vec((any::<bool>(), prop::collection::vec(1..16_u64, 1..3)), 1..8),
    ) {
        let mut cpu = scheduler(4, 0);
        let mut alone = scheduler(4, 0);
        for (pinned, events) in &groups {
            let (id, _) = cpu.add(spec(None, *pinned, events), 0);
            if *pinned {
                let (same, _) = alone.add(spec(None, true, events), 0);
                prop_assert_eq!(cpu.state(id), alone.state(same));
            }
        }
    }

    /// Where everything fits, siblings and the remainder add up to the whole, no event of the whole
    /// machine is interrupted, and running is enabled.
    #[test]
    fn parts_add_up_to_the_whole(
        trace in prop::collection::vec((prop::option::of(0..4_u64), 1..50_u64), 1..100),
    ) {
        let mut cpu = scheduler(8, 4);
        let (whole, _) = cpu.add(spec(None, false, &[0xff]), 0);
        let (parent, _) = cpu.add(spec(Some(PARENT), false, &[0xff]), 0);
        let parts: Vec<_> = (0..4).map(|n| cpu.add(spec(child(n), false, &[0xff]), 0).0).collect();
        let (mut counts, mut outside, mut now) = (BTreeMap::new(), 0, 0);
        for (to, events) in trace {
            let changes = cpu.switch(to.map(CgroupId), now);
            prop_assert!(changes.stop.iter().chain(&changes.start).all(|m| m.event.group != whole));
            for id in cpu.on.iter().flatten().map(|event| event.group) {
                *counts.entry(id).or_insert(0) += events;
            }
            outside += if to.is_none() { events } else { 0 };
            now += events;
        }
        cpu.switch(None, now);
        let count = |id: &GroupId| counts.get(id).copied().unwrap_or(0);
        let sum: u64 = parts.iter().map(count).sum();
        prop_assert_eq!(count(&whole), now);
        prop_assert_eq!(sum, count(&parent));
        prop_assert_eq!(sum + outside, now);
        for id in parts.iter().chain([&whole, &parent]) {
            let times = cpu.times(*id).unwrap();
            prop_assert_eq!(times.enabled_ns, times.running_ns);
            prop_assert_eq!(times.running_ns, count(id));
        }
        prop_assert_eq!(cpu.statistics().full_merges, 0);
    }

    /// Each flexible group that fits beside the pinned ones runs within as many rotations as there are.
    #[test]
    fn everybody_has_a_turn(
        pinned in prop::collection::vec(1..16_u64, 0..3),
        groups in prop::collection::vec(prop::collection::vec(1..16_u64, 1..4), 1..10),
    ) {
        let mut cpu = scheduler(4, 0);
        for bits in &pinned {
            cpu.add(spec(None, true, &[*bits]), 0);
        }
        let ids: Vec<_> = groups.iter().map(|events| cpu.add(spec(None, false, events), 0).0).collect();
        let fits: Vec<_> = groups.iter().map(|events| {
            let mut alone = scheduler(4, 0);
            for bits in &pinned {
                alone.add(spec(None, true, &[*bits]), 0);
            }
            let (id, _) = alone.add(spec(None, false, events), 0);
            alone.state(id) == Some(GroupState::Active)
        }).collect();
        let mut ran = vec![false; ids.len()];
        for now in 0..=groups.len() as u64 {
            for (ran, id) in ran.iter_mut().zip(&ids) {
                *ran |= cpu.state(*id) == Some(GroupState::Active);
            }
            cpu.rotate(now);
        }
        prop_assert_eq!(ran, fits);
    }
}
