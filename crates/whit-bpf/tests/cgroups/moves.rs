//! Cgroups that come and go, and tasks that change them.

use crate::support::counting::{ALL, CLOCK, Counting, FAULTS, KernelEvents};
use crate::support::group::Hierarchy;
use crate::support::load::{busy, forks, shell, wait_for_member};
use crate::support::{assert_close, check};

#[test]
fn a_cgroup_that_is_made_while_counting_counts_for_its_parent() {
    check("a_cgroup_made_while_counting", || {
        let parent = Hierarchy::of_perf_events()?.make()?;
        let counting = Counting::of(&ALL, &[parent.watched()])?;
        let kernel = KernelEvents::of(&ALL, &parent)?;
        counting.switch(true);
        kernel.switch(true);
        for round in 0..5 {
            let child = parent.child(&format!("c{round}"));
            let grandchild = child.child("g");
            shell(&grandchild, &forks(50)).finish();
            // Removed at once; what it counted stays.
        }
        kernel.switch(false);
        counting.switch(false);
        let totals = counting.read();
        for event in [CLOCK, FAULTS] {
            let (ours, theirs) = (totals.cgroup(0, event).value, kernel.count(event).value);
            assert!(theirs > 0);
            assert_close("parent", ours, theirs, 0.03, 0);
        }
        Ok(())
    });
}

#[test]
fn a_cgroup_that_is_removed_keeps_its_count() {
    check("a_removed_cgroup_keeps_its_count", || {
        let parent = Hierarchy::of_perf_events()?.make()?;
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

#[test]
fn a_task_that_is_moved_while_it_runs_counts_where_it_is() {
    check("a_task_moved_while_it_runs", || {
        let hierarchy = Hierarchy::of_perf_events()?;
        let groups = [hierarchy.make()?, hierarchy.make()?];
        let kernel = [KernelEvents::of(&ALL, &groups[0])?, KernelEvents::of(&ALL, &groups[1])?];
        let watched: Vec<_> = groups.iter().map(|group| group.watched()).collect();
        let counting = Counting::of(&ALL, &watched)?;
        if !counting.counter.sees_moves() {
            let what = "this kernel does not show calls between CPUs (csd_function_exit)";
            return Err(crate::support::Skip(what.into()));
        }
        counting.switch(true);
        kernel.iter().for_each(|events| events.switch(true));
        let load = shell(&groups[0], "while :; do :; done");
        wait_for_member(&groups[0], load.id());
        for round in 1..40 {
            // It runs on another CPU most of the time while this one moves it.
            let begin = kernel[0].count(CLOCK).value + kernel[1].count(CLOCK).value;
            while kernel[0].count(CLOCK).value + kernel[1].count(CLOCK).value < begin + 5_000_000 {
                std::thread::yield_now();
            }
            groups[round % 2].take(load.id());
        }
        drop(load);
        kernel.iter().for_each(|events| events.switch(false));
        counting.switch(false);
        let totals = counting.read();
        for (index, events) in kernel.iter().enumerate() {
            let (ours, theirs) = (totals.cgroup(index, CLOCK).value, events.count(CLOCK).value);
            assert!(theirs > 0);
            assert_close(&format!("cgroup {index}"), ours, theirs, 0.03, 0);
        }
        Ok(())
    });
}

#[test]
fn a_task_that_moves_itself_counts_where_it_is() {
    check("a_task_that_moves_itself", || {
        let hierarchy = Hierarchy::of_perf_events()?;
        let groups = [hierarchy.make()?, hierarchy.make()?];
        let kernel = [KernelEvents::of(&ALL, &groups[0])?, KernelEvents::of(&ALL, &groups[1])?];
        let watched: Vec<_> = groups.iter().map(|group| group.watched()).collect();
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        kernel.iter().for_each(|events| events.switch(true));
        let there = format!("echo $$ > {}", groups[1].procs().display());
        let back = format!("echo $$ > {}", groups[0].procs().display());
        let (long, short) = (busy(60_000), busy(20_000));
        let script = format!("{long}; {there}; {short}; {back}; {long}; {there}; {short}");
        shell(&groups[0], &script).finish();
        kernel.iter().for_each(|events| events.switch(false));
        counting.switch(false);
        let totals = counting.read();
        for (index, events) in kernel.iter().enumerate() {
            let (ours, theirs) = (totals.cgroup(index, CLOCK).value, events.count(CLOCK).value);
            assert_close(&format!("cgroup {index}"), ours, theirs, 0.03, 0);
        }
        let [first, second] = [0, 1].map(|cgroup| totals.cgroup(cgroup, CLOCK).value);
        assert!(first > second, "{first} in the first, {second} in the second");
        Ok(())
    });
}
