//! The kernel's own cgroup events, side by side on the same load.

use crate::support::counting::{
    CLOCK, CLOCK_READ, Counting, Event, FAULTS, KernelEvents, SWITCHES, WAYS,
};
use crate::support::group::Hierarchy;
use crate::support::load::{busy, forks, shell};
use crate::support::{Skip, Slack, assert_close, check, undisturbed};

/// Name, whether it is a time, and the counts by BPF and by the kernel.
type Pairs = Vec<(String, bool, [whit_bpf::cgroup::Count; 2])>;

/// Counts a load in two siblings and their parent, both ways. Gives the number of unseen switches,
/// and the counts.
fn count_both_ways(events: &[Event; 6]) -> Result<(u64, Pairs), Skip> {
    let parent = Hierarchy::of_perf_events()?.make();
    let groups = [parent.child("one"), parent.child("other"), parent];
    let kernel = [
        KernelEvents::of(events, &groups[0])?,
        KernelEvents::of(events, &groups[1])?,
        KernelEvents::of(events, &groups[2])?,
    ];
    let watched: Vec<_> = groups.iter().map(|group| group.watched()).collect();
    let counting = Counting::of(events, &watched)?;
    counting.switch(true);
    kernel.iter().for_each(|events| events.switch(true));
    // Long enough that the time of switching events on and off does not matter.
    let scripts = [busy(150_000), forks(120)].map(|script| {
        groups[..2].iter().map(move |group| shell(group, &script)).collect::<Vec<_>>()
    });
    scripts.into_iter().flatten().for_each(|load| load.finish());
    kernel.iter().for_each(|events| events.switch(false));
    counting.switch(false);
    let totals = counting.read();
    let mut pairs = Vec::new();
    for (index, events) in kernel.iter().enumerate() {
        for event in [CLOCK, CLOCK_READ, FAULTS, SWITCHES] {
            let what = format!("cgroup {index}, event {event}");
            let is_time = [CLOCK, CLOCK_READ].contains(&event);
            pairs.push((what, is_time, [totals.cgroup(index, event), events.count(event)]));
        }
    }
    Ok((counting.unseen(), pairs))
}

#[test]
fn the_kernel_counts_the_same_in_siblings_and_their_parent() {
    check("the_kernel_counts_the_same", || {
        let in_each_way = |events| {
            undisturbed(|| {
                let (unseen, pairs) = count_both_ways(events)?;
                let compare = move |slack: Slack| {
                    for (what, is_time, [ours, theirs]) in &pairs {
                        assert!(theirs.value > 0, "{what}");
                        let values = if *is_time { slack.time_ns } else { slack.events };
                        assert_close(what, ours.value, theirs.value, 0.03, values + 4);
                        let times = slack.time_ns + 1_000_000;
                        assert_close(what, ours.enabled_ns, theirs.enabled_ns, 0.03, times);
                    }
                };
                Ok((unseen, compare))
            })
        };
        WAYS[..2].iter().try_for_each(in_each_way)
    });
}
