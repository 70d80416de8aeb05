//! Sums that must agree.

use crate::support::counting::{
    ALL, CLOCK, CLOCK_READ, CONTEXT_SWITCHES, Counting, Event, FAULTS, SWITCHES, TIMED_SWITCHES,
    WAYS, in_memory,
};
use crate::support::group::{Group, Hierarchy};
use crate::support::load::{busy, forks, shell};
use crate::support::{Skip, assert_close, check};

/// Runs two kinds of load in each of these cgroups, to their end.
fn work_in(groups: &[Group]) {
    let start = |group| [shell(group, &busy(100_000)), shell(group, &forks(60))];
    let loads: Vec<_> = groups.iter().flat_map(start).collect();
    loads.into_iter().for_each(|load| load.finish());
}

#[test]
fn children_make_up_their_parent_and_all_makes_up_the_machine() {
    check("children_make_up_their_parent", || WAYS.iter().try_for_each(sums_are_right));
}

fn sums_are_right(events: &[Event; 6]) -> Result<(), Skip> {
    let parent = Hierarchy::of_perf_events()?.make();
    let children: Vec<_> = (0..3).map(|n| parent.child(&format!("c{n}"))).collect();
    let all = children.iter().chain([&parent]).map(Group::watched).collect::<Vec<_>>();
    let counting = Counting::of(events, &all)?;
    counting.switch(true);
    work_in(&children);
    counting.switch(false);
    let totals = counting.read();
    for event in [CLOCK, CLOCK_READ, FAULTS, SWITCHES] {
        let of_children = (0..3).map(|child| totals.cgroup(child, event).value);
        assert!(of_children.clone().all(|value| value > 0), "event {event}");
        assert_close("parent", totals.cgroup(3, event).value, of_children.sum(), 0.01, 0);
        let parts = totals.cgroup(3, event).value + totals.remainder(event).value;
        assert_eq!(parts, totals.everything(event).value);
        // Events are switched off one after the other.
        assert_close("everything", parts, counting.shown(event), 0.01, 0);
    }
    assert_eq!(counting.counter.health().unwrap().failed_reads, 0);
    Ok(())
}

#[test]
fn software_events_run_while_they_are_enabled() {
    check("what_never_waits_runs_while_enabled", || WAYS.iter().try_for_each(nothing_waits));
}

fn nothing_waits(events: &[Event; 6]) -> Result<(), Skip> {
    let group = Hierarchy::of_perf_events()?.make();
    let counting = Counting::of(events, &[group.watched()])?;
    counting.switch(true);
    let load = shell(&group, &forks(200));
    // Read while it switches: never does a reader see one of the times without the other.
    while std::fs::read_to_string(group.procs()).is_ok_and(|members| members.is_empty()) {
        std::thread::yield_now();
    }
    for _ in 0..200 {
        let totals = counting.read();
        for event in 0..ALL.len() {
            for count in [totals.cgroup(0, event), totals.remainder(event)] {
                assert_eq!(count.enabled_ns, count.running_ns, "event {event}");
            }
        }
    }
    load.finish();
    let totals = counting.read();
    assert!(totals.cgroup(0, FAULTS).enabled_ns > 0);
    Ok(())
}

#[test]
fn counts_never_step_back_and_stop_when_events_do() {
    check("counts_never_step_back", || WAYS.iter().try_for_each(counts_go_up));
}

fn counts_go_up(events: &[Event; 6]) -> Result<(), Skip> {
    let group = Hierarchy::of_perf_events()?.make();
    let counting = Counting::of(events, &[group.watched()])?;
    let before = counting.read();
    assert_eq!(before.everything(CLOCK).value, 0, "events are off");
    counting.switch(true);
    let load = shell(&group, &busy(200_000));
    let mut last = 0;
    for _ in 0..50 {
        let now = counting.read().cgroup(0, CLOCK_READ).value;
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    load.finish();
    counting.switch(false);
    let (one, other) = (counting.read(), counting.read());
    for event in [CLOCK, CLOCK_READ, FAULTS, SWITCHES] {
        assert_eq!(one.everything(event), other.everything(event));
    }
    Ok(())
}

#[test]
fn one_read_serves_any_number_of_switches_within_a_cgroup() {
    check("one_read_serves_many_switches", || -> Result<(), Skip> {
        let parent = Hierarchy::of_perf_events()?.make();
        let (one, other) = (parent.child("one"), parent.child("other"));
        // Only the parent is watched: switches between its children change nothing.
        let counting = Counting::of(&ALL, &[parent.watched()])?;
        counting.switch(true);
        let loads = [&one, &other].map(|group| shell(group, &forks(150)));
        loads.into_iter().for_each(|load| load.finish());
        counting.switch(false);
        let totals = counting.read();
        let changes = counting.counter.health().unwrap().changes;
        assert!(changes > 0 && totals.cgroup(0, FAULTS).value > 0);
        assert!(
            changes <= totals.everything(SWITCHES).value + 64,
            "{changes} changes, {} switches",
            totals.everything(SWITCHES).value
        );
        Ok(())
    });
}

#[test]
fn switches_are_nobodys_while_events_are_off() {
    check("switches_while_events_are_off", || {
        let group = Hierarchy::of_perf_events()?.make();
        let alike = [TIMED_SWITCHES, CONTEXT_SWITCHES];
        let events = [alike, alike.map(in_memory)].concat();
        let counting = Counting::of(&events, &[group.watched()])?;
        for round in 0..10 {
            shell(&group, &forks(20)).finish();
            let totals = counting.read();
            for event in 0..events.len() {
                assert_eq!(totals.cgroup(0, event).value, 0, "event {event} in round {round}");
                assert_eq!(totals.remainder(event).value, 0, "event {event} in round {round}");
            }
        }
        assert!(counting.counter.health().unwrap().changes > 0);
        counting.switch(true);
        shell(&group, &forks(20)).finish();
        counting.switch(false);
        let totals = counting.read();
        for event in 0..events.len() {
            assert!(totals.cgroup(0, event).value > 20);
            assert_eq!(totals.everything(event).value, counting.shown(event));
        }
        Ok(())
    });
}
