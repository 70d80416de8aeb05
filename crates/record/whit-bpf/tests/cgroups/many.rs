//! Deep, many, and as many events as there may be.

use whit_bpf::cgroup::{EVENTS_MAX, How};

use crate::support::counting::{
    ALL, CLOCK, CONTEXT_SWITCHES, Counting, DUMMY, FAULTS, PAGE_FAULTS, SWITCHES, in_memory,
};
use crate::support::group::{Group, Hierarchy};
use crate::support::load::{forks, shell};
use crate::support::{assert_close, check};

/// More than a perf with a fixed depth can take, and more than the specification asks for.
const CGROUPS: usize = 1000;
/// `DEPTH_MAX` in `bpf/cgroup_maps.h`.
const DEPTH_MAX: usize = 256;

#[test]
fn any_level_of_a_deep_hierarchy_counts_its_subtree() {
    check("any_level_of_a_deep_hierarchy", || {
        let top = Hierarchy::of_perf_events()?.make();
        let nested = top.nest(20);
        let watched = [&top, &nested[9], &nested[19]].map(Group::watched);
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        shell(&nested[19], &forks(60)).finish();
        shell(&nested[14], &forks(60)).finish();
        counting.switch(false);
        let totals = counting.read();
        let [above, middle, leaf] = [0, 1, 2].map(|cgroup| totals.cgroup(cgroup, FAULTS).value);
        assert!(leaf > 0 && leaf < middle, "{leaf}, {middle}");
        // Two of the same load; and nothing ran between top and middle.
        assert_close("half", 2 * leaf, middle, 0.1, 0);
        assert_eq!(above, middle);
        Ok(())
    });
}

#[test]
fn a_cgroup_that_is_too_deep_is_reported() {
    check("what_is_too_deep_is_told", || {
        let top = Hierarchy::of_perf_events()?.make();
        let nested = top.nest(DEPTH_MAX + 8);
        let counting = Counting::of(&ALL, &[top.watched()])?;
        counting.switch(true);
        shell(&nested[DEPTH_MAX - 4], &forks(5)).finish();
        let found = counting.read().cgroup(0, FAULTS).value;
        assert!(found > 0);
        assert_eq!(counting.counter.health().unwrap().too_deep, 0);
        shell(&nested[DEPTH_MAX + 4], &forks(5)).finish();
        let totals = counting.read();
        assert!(counting.counter.health().unwrap().too_deep > 0);
        // The shell moves itself there; before that it is in none of them.
        assert_eq!(totals.cgroup(0, FAULTS).value, found);
        Ok(())
    });
}

#[test]
fn a_thousand_cgroups_are_distinguished() {
    check("a_thousand_cgroups", || {
        let parent = Hierarchy::of_perf_events()?.make();
        let children: Vec<_> = (0..CGROUPS).map(|n| parent.child(&format!("c{n}"))).collect();
        let watched: Vec<_> = children.iter().chain([&parent]).map(Group::watched).collect();
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        // Some kernels do not show that a running task moves, so the shell may end before its move is known. Its child
        // begins in the cgroup.
        for part in children.chunks(50) {
            let loads: Vec<_> = part.iter().map(|group| shell(group, &forks(1))).collect();
            loads.into_iter().for_each(|load| load.finish());
        }
        counting.switch(false);
        let totals = counting.read();
        for event in [CLOCK, FAULTS, SWITCHES] {
            let of = |child| totals.cgroup(child, event).value;
            let silent = (0..CGROUPS).filter(|&child| of(child) == 0).count();
            assert_eq!(silent, 0, "cgroups without event {event}");
            let sum = (0..CGROUPS).map(of).sum();
            assert_close("parent", totals.cgroup(CGROUPS, event).value, sum, 0.01, 0);
        }
        Ok(())
    });
}

#[test]
fn as_many_events_as_there_may_be_are_counted_alike() {
    check("as_many_events_as_there_may_be", || {
        let group = Hierarchy::of_perf_events()?.make();
        let mut events = vec![DUMMY];
        while events.len() < EVENTS_MAX {
            let timed = (PAGE_FAULTS.0, PAGE_FAULTS.1, How::TIMED);
            let next = [PAGE_FAULTS, timed, CONTEXT_SWITCHES][events.len() % 3];
            events.push(if events.len() % 2 == 0 { next } else { in_memory(next) });
        }
        let counting = Counting::of(&events, &[group.watched()])?;
        counting.switch(true);
        shell(&group, &forks(60)).finish();
        counting.switch(false);
        let totals = counting.read();
        let of = |kind: u64| {
            let alike = (1..events.len()).filter(|&event| events[event].1 == kind);
            alike.map(|event| totals.cgroup(0, event).value).collect::<Vec<_>>()
        };
        let (faults, switches) = (of(PAGE_FAULTS.1), of(CONTEXT_SWITCHES.1));
        assert!(faults[0] > 0 && faults.iter().all(|&count| count == faults[0]), "{faults:?}");
        assert!(switches[0] > 0 && switches.iter().all(|&n| n == switches[0]), "{switches:?}");
        Ok(())
    });
}

#[test]
fn too_many_events_are_refused_by_name() {
    use whit_bpf::cgroup::{CgroupCounter, Plan};
    let too_many = vec![How::TIMED; EVENTS_MAX + 1];
    let plan = Plan { events: &too_many, cgroups: &[], possible_cpus: &[0] };
    let error = CgroupCounter::load(&plan).unwrap_err().to_string();
    assert!(error.contains("65 are wanted") && error.contains("room for 64"), "{error}");
}
