//! The kernel's own cgroup events, side by side on the same load.

use crate::support::counting::{ALL, CLOCK, CLOCK_READ, Counting, FAULTS, KernelEvents, SWITCHES};
use crate::support::group::Hierarchy;
use crate::support::load::{busy, forks, shell};
use crate::support::{assert_close, check};

#[test]
fn the_kernel_counts_the_same_in_siblings_and_their_parent() {
    check("the_kernel_counts_the_same", || {
        let parent = Hierarchy::of_perf_events()?.make()?;
        let groups = [parent.child("one"), parent.child("other"), parent];
        let kernel = [
            KernelEvents::of(&ALL, &groups[0])?,
            KernelEvents::of(&ALL, &groups[1])?,
            KernelEvents::of(&ALL, &groups[2])?,
        ];
        let watched: Vec<_> = groups.iter().map(|group| group.watched()).collect();
        let counting = Counting::of(&ALL, &watched)?;
        counting.switch(true);
        kernel.iter().for_each(|events| events.switch(true));
        // Long enough for what is spent on switching events on and off not to count.
        let scripts = [busy(400_000), forks(300)].map(|script| {
            groups[..2].iter().map(move |group| shell(group, &script)).collect::<Vec<_>>()
        });
        scripts.into_iter().flatten().for_each(|load| load.finish());
        kernel.iter().for_each(|events| events.switch(false));
        counting.switch(false);
        let totals = counting.read();
        for (index, events) in kernel.iter().enumerate() {
            for event in [CLOCK, CLOCK_READ, FAULTS, SWITCHES] {
                let what = format!("cgroup {index}, event {event}");
                let (ours, theirs) = (totals.cgroup(index, event), events.count(event));
                assert!(theirs.value > 0, "{what}");
                assert_close(&what, ours.value, theirs.value, 0.03, 4);
                assert_close(&what, ours.enabled_ns, theirs.enabled_ns, 0.03, 1_000_000);
            }
        }
        Ok(())
    });
}
