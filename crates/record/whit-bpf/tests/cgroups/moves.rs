//! Cgroups that come and go, and tasks that change them.

use crate::support::counting::{ALL, CLOCK, Counting, FAULTS, KernelEvents};
use crate::support::group::{Group, Hierarchy};
use crate::support::load::{busy, forks, shell, wait_for_member};
use crate::support::{Skip, Slack, assert_close, check, probe, undisturbed};

#[test]
fn a_cgroup_that_is_made_while_counting_counts_for_its_parent() {
    check("a_cgroup_made_while_counting", || {
        undisturbed(|| {
            let parent = Hierarchy::of_perf_events()?.make();
            let counting = Counting::of(&ALL, &[parent.watched()])?;
            let kernel = KernelEvents::of(&ALL, &parent)?;
            counting.switch(true);
            kernel.switch(true);
            for round in 0..5 {
                let child = parent.child(&format!("c{round}"));
                let grandchild = child.child("g");
                shell(&grandchild, &forks(30)).finish();
                // Removed at once; its counts stay.
            }
            kernel.switch(false);
            counting.switch(false);
            let totals = counting.read();
            let pairs = [CLOCK, FAULTS]
                .map(|event| (totals.cgroup(0, event).value, kernel.count(event).value));
            let compare = move |slack: Slack| {
                let [(clock, kernel_clock), (faults, kernel_faults)] = pairs;
                assert!(kernel_clock > 0 && kernel_faults > 0);
                assert_close("parent's clock", clock, kernel_clock, 0.03, slack.time_ns);
                assert_close("parent's faults", faults, kernel_faults, 0.03, slack.events);
            };
            Ok((counting.unseen(), compare))
        })
    });
}

#[test]
fn a_cgroup_that_is_removed_keeps_its_count() {
    check("a_removed_cgroup_keeps_its_count", || {
        let parent = Hierarchy::of_perf_events()?.make();
        let child = parent.child("c");
        let counting = Counting::of(&ALL, &[parent.watched(), child.watched()])?;
        counting.switch(true);
        shell(&child, &forks(50)).finish();
        let before = counting.read();
        drop(child);
        // Another one of the same name is another one.
        let again = parent.child("c");
        shell(&again, &forks(50)).finish();
        counting.switch(false);
        let after = counting.read();
        let faults = |totals: &crate::support::counting::Totals<'_>, cgroup| {
            totals.cgroup(cgroup, FAULTS).value
        };
        assert!(faults(&before, 1) > 0);
        assert_eq!(faults(&after, 1), faults(&before, 1));
        assert!(faults(&after, 0) > faults(&before, 0));
        Ok(())
    });
}

/// The kernel's memory for a cgroup may be where it had that of a removed one.
#[test]
fn a_cgroup_in_the_place_of_another_counts_for_its_own_parent() {
    check("a_cgroup_in_the_place_of_another", || {
        let hierarchy = Hierarchy::of_perf_events()?;
        let parents = [hierarchy.make(), hierarchy.make()];
        let watched: Vec<_> = parents.iter().map(Group::watched).collect();
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        let faults = || {
            let totals = counting.read();
            [0, 1].map(|parent| totals.cgroup(parent, FAULTS).value)
        };
        for round in 0..20 {
            let (this, other) = (round % 2, 1 - round % 2);
            let children: Vec<_> = (0..16).map(|n| parents[this].child(&format!("c{n}"))).collect();
            let before = faults();
            for child in &children {
                shell(child, "/bin/true").finish();
            }
            let after = faults();
            assert!(after[this] > before[this], "round {round}");
            assert_eq!(after[other], before[other], "round {round}");
            drop(children);
            // The kernel frees the memory a while later.
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        Ok(())
    });
}

/// A task in two cgroups, one after the other: counts the clock both ways in each of them. `act` has
/// the task moved.
fn clock_of_a_moving_task(
    act: impl Fn(&[Group; 2], &dyn Fn() -> u64),
) -> Result<(u64, [(u64, u64); 2]), Skip> {
    let hierarchy = Hierarchy::of_perf_events()?;
    let groups = [hierarchy.make(), hierarchy.make()];
    let kernel = [KernelEvents::of(&ALL, &groups[0])?, KernelEvents::of(&ALL, &groups[1])?];
    let watched: Vec<_> = groups.iter().map(Group::watched).collect();
    let counting = Counting::of(&ALL, &watched)?;
    probe::bpf_moves_of_running_tasks()?;
    assert!(counting.counter.sees_moves());
    counting.switch(true);
    kernel.iter().for_each(|events| events.switch(true));
    act(&groups, &|| kernel.iter().map(|events| events.count(CLOCK).value).sum());
    kernel.iter().for_each(|events| events.switch(false));
    counting.switch(false);
    let totals = counting.read();
    let pair = |index: usize| (totals.cgroup(index, CLOCK).value, kernel[index].count(CLOCK).value);
    Ok((counting.unseen(), [pair(0), pair(1)]))
}

fn assert_same_clocks(pairs: [(u64, u64); 2], slack: Slack) {
    for (index, (ours, theirs)) in pairs.into_iter().enumerate() {
        assert!(theirs > 0);
        assert_close(&format!("cgroup {index}"), ours, theirs, 0.03, slack.time_ns);
    }
}

#[test]
fn a_task_that_is_moved_while_it_runs_counts_where_it_is() {
    check("a_task_moved_while_it_runs", || {
        undisturbed(|| {
            let (unseen, pairs) = clock_of_a_moving_task(|groups, clock| {
                let load = shell(&groups[0], "while :; do :; done");
                wait_for_member(&groups[0], load.id());
                for round in 1..20 {
                    // It runs on another CPU most of the time while this one moves it.
                    let begin = clock();
                    while clock() < begin + 5_000_000 {
                        std::thread::yield_now();
                    }
                    groups[round % 2].take(load.id());
                }
            })?;
            Ok((unseen, move |slack| assert_same_clocks(pairs, slack)))
        })
    });
}

#[test]
fn a_task_that_moves_itself_counts_where_it_is() {
    check("a_task_that_moves_itself", || {
        undisturbed(|| {
            let (unseen, pairs) = clock_of_a_moving_task(|groups, _| {
                let there = format!("echo $$ > {}", groups[1].procs().display());
                let back = format!("echo $$ > {}", groups[0].procs().display());
                let (long, short) = (busy(60_000), busy(20_000));
                let script = format!("{long}; {there}; {short}; {back}; {long}; {there}; {short}");
                shell(&groups[0], &script).finish();
            })?;
            let compare = move |slack| {
                assert_same_clocks(pairs, slack);
                assert!(pairs[0].0 > pairs[1].0, "{pairs:?}");
            };
            Ok((unseen, compare))
        })
    });
}
