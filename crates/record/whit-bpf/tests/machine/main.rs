//! Counting per cgroup while the whole machine changes: a CPU goes offline, the `perf_event` controller
//! moves to a hierarchy of version 1. Runs only if `WHIT_TEST_MACHINE` is set: it would spoil
//! measurements by others.

#[path = "../cgroups/support/mod.rs"]
#[allow(dead_code)]
mod support;

use std::time::Duration;

use whit_testing::cgroups::{OldHierarchy, perf_event_controller};
use whit_testing::hotplug::Offline;
use whit_types::CpuId;

use crate::support::counting::{
    ALL, CLOCK, Counting, FAULTS, KernelEvents, Totals, cpu_list, read,
};
use crate::support::group::Hierarchy;
use crate::support::load::{busy, forks, shell};
use crate::support::{Skip, Slack, assert_close, check, probe, undisturbed};

#[test]
fn a_cpu_that_leaves_and_returns_loses_nothing() {
    check("a_cpu_that_goes_and_comes_back", || {
        let _alone = probe::may_change_the_machine()?;
        let cpu = *cpu_list("online")
            .last()
            .filter(|cpu| **cpu > 0)
            .ok_or_else(|| Skip("there is one CPU only".into()))?;
        let group = Hierarchy::of_perf_events()?.make();
        let mut counting = Counting::of(&ALL, &[group.watched()])?;
        counting.switch(true);
        let load = || [shell(&group, &forks(100)), shell(&group, &busy(100_000))];
        load().into_iter().for_each(|load| load.finish());
        let offline = Offline::take(cpu)?;
        let place = counting.events.iter().position(|(other, _)| *other == cpu).unwrap();
        let (_, gone) = counting.events.remove(place);
        let last: Vec<_> = gone.iter().map(read).collect();
        counting.counter.retire_cpu(CpuId(cpu), &last).unwrap();
        load().into_iter().for_each(|load| load.finish());
        drop(offline);
        counting.add_cpu(&ALL, cpu);
        counting.switch(true);
        load().into_iter().for_each(|load| load.finish());
        counting.switch(false);
        let totals = counting.read();
        for event in [CLOCK, FAULTS] {
            let shown = counting.shown(event) + last[event].value;
            assert_close("everything", totals.everything(event).value, shown, 0.001, 0);
            assert!(totals.cgroup(0, event).value > 0);
        }
        Ok(())
    });
}

#[test]
fn the_old_hierarchy_counts_alike() {
    check("the_old_hierarchy_counts_alike", || {
        let _alone = probe::may_change_the_machine()?;
        let old = OldHierarchy::of_perf_event()?;
        undisturbed(|| {
            let hierarchy = Hierarchy(old.mount.clone());
            let groups = [hierarchy.make(), hierarchy.make()];
            let kernel = KernelEvents::of(&ALL, &groups[0])?;
            let watched = [groups[0].watched(), groups[1].watched()];
            let counting = Counting::of(&ALL, &watched)?;
            counting.switch(true);
            kernel.switch(true);
            let loads = [shell(&groups[0], &forks(60)), shell(&groups[1], &busy(60_000))];
            loads.into_iter().for_each(|load| load.finish());
            kernel.switch(false);
            counting.switch(false);
            let totals = counting.read();
            assert_ne!(perf_event_controller().0, 0, "this is about version 1");
            let pairs = [CLOCK, FAULTS]
                .map(|event| (totals.cgroup(0, event).value, kernel.count(event).value));
            let other = totals.cgroup(1, CLOCK).value;
            let compare = move |slack: Slack| {
                let [(clock, kernel_clock), (faults, kernel_faults)] = pairs;
                assert!(kernel_clock > 0 && kernel_faults > 0 && other > 0);
                assert_close("clock", clock, kernel_clock, 0.03, slack.time_ns);
                assert_close("faults", faults, kernel_faults, 0.03, slack.events);
            };
            Ok((counting.unseen(), compare))
        })
    });
}

/// On its way to another hierarchy and back, the controller makes its state of each cgroup anew.
#[test]
fn cgroups_are_known_again_after_another_hierarchy_was_mounted() {
    check("cgroups_are_known_again", || {
        let _alone = probe::may_change_the_machine()?;
        let parent = Hierarchy::of_perf_events()?.make();
        let groups: Vec<_> = (0..40).map(|n| parent.child(&format!("c{n}"))).collect();
        let watched: Vec<_> = groups.iter().map(|group| group.watched()).collect();
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        let each_counts_alone = |when: &str| {
            for (index, group) in groups.iter().enumerate() {
                let faults = |totals: &Totals<'_>| -> Vec<u64> {
                    (0..groups.len()).map(|other| totals.cgroup(other, FAULTS).value).collect()
                };
                let before = faults(&counting.read());
                shell(group, "/bin/true").finish();
                let after = faults(&counting.read());
                let grown: Vec<_> = (0..groups.len()).filter(|&n| after[n] > before[n]).collect();
                assert_eq!(grown, [index], "{when}");
            }
        };
        // Memory is used again a while after it was given back, so not on the first way.
        for round in 0..4 {
            each_counts_alone(&format!("after {round} ways"));
            drop(OldHierarchy::of_perf_event()?);
            assert_eq!(perf_event_controller().0, 0, "this is about version 2");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
}
