//! How long events are enabled, with each choice of clock.

use std::time::Instant;

use crate::support::counting::{ALL, Counting, Event, FAULTS, TIMED_CLOCK, WAYS, in_memory};
use crate::support::group::Hierarchy;
use crate::support::load::{busy, forks, shell};
use crate::support::{Skip, assert_close, check};

/// Time that a hypervisor may take between two reads of a clock, and counts of events on other CPUs
/// while those of one are switched off.
const SLACK_NS: u64 = 10_000_000;

/// The CPUs that count, for as long as it takes.
fn time_of_all_cpus(counting: &Counting, since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64 * counting.events.len() as u64
}

fn times_follow_the_events(events: &[Event; 6]) -> Result<(), Skip> {
    let group = Hierarchy::of_perf_events()?.make();
    let counting = Counting::of(events, &[group.watched()])?;
    let mut on_ns = 0;
    for round in 0..4 {
        let begin = Instant::now();
        counting.switch(true);
        shell(&group, &forks(30)).finish();
        counting.switch(false);
        on_ns += time_of_all_cpus(&counting, begin);
        // In half of the rounds nobody reads before others switch.
        let stopped = (round % 2 == 0).then(|| counting.read());
        shell(&group, &forks(30)).finish();
        let totals = counting.read();
        if let Some(stopped) = stopped {
            assert_eq!(totals.everything(FAULTS), stopped.everything(FAULTS), "round {round}");
        }
        let (ours, shown) = (totals.everything(0), counting.shown_with_times(0));
        assert!(shown.enabled_ns > 0);
        assert_close("enabled", ours.enabled_ns, shown.enabled_ns, 0.01, SLACK_NS);
        assert!(ours.enabled_ns <= on_ns + SLACK_NS, "{} of {on_ns} ns", ours.enabled_ns);
        assert_eq!(ours.running_ns, ours.enabled_ns);
        assert_eq!(totals.everything(FAULTS).value, counting.shown(FAULTS));
    }
    Ok(())
}

#[test]
fn times_follow_events_that_are_switched_off_and_on() {
    check("times_follow_events", || WAYS.iter().try_for_each(times_follow_the_events));
}

#[test]
fn a_clock_alone_counts_the_time_that_it_is_on() {
    check("a_clock_alone", || {
        let parent = Hierarchy::of_perf_events()?.make();
        let groups = [parent.child("one"), parent.child("other")];
        let watched = [&groups[0], &groups[1], &parent].map(|group| group.watched());
        let events = [in_memory(TIMED_CLOCK)];
        let counting = Counting::of(&events, &watched)?;
        let begin = Instant::now();
        counting.switch(true);
        let loads =
            groups.each_ref().map(|group| [shell(group, &busy(100_000)), shell(group, &forks(60))]);
        loads.into_iter().flatten().for_each(|load| load.finish());
        counting.switch(false);
        let on_ns = time_of_all_cpus(&counting, begin);
        let totals = counting.read();
        let [one, other, both] = [0, 1, 2].map(|cgroup| totals.cgroup(cgroup, 0));
        assert!(one.value > 0 && other.value > 0);
        assert_close("parent", both.value, one.value + other.value, 0.01, 0);
        let everything = totals.everything(0);
        assert_close("everything", everything.value, counting.shown(0), 0.01, SLACK_NS);
        assert!(everything.value <= on_ns + SLACK_NS, "{} of {on_ns} ns", everything.value);
        for count in [one, other, both, everything] {
            assert_eq!([count.value; 2], [count.enabled_ns, count.running_ns]);
        }
        Ok(())
    });
}

#[test]
fn events_in_memory_cause_no_failed_read() {
    check("no_failed_reads_in_memory", || {
        let group = Hierarchy::of_perf_events()?.make();
        let counting = Counting::of(&ALL, &[group.watched()])?;
        counting.switch(true);
        for _ in 0..50 {
            // A reader of the events themselves changes when their times were brought up to date.
            let _ = counting.shown(0);
            shell(&group, "/bin/true").finish();
        }
        counting.switch(false);
        let (totals, health) = (counting.read(), counting.counter.health().unwrap());
        assert_eq!(health.failed_reads, 0);
        assert!(health.changes > 50);
        let (ours, shown) = (totals.everything(0).enabled_ns, counting.shown_with_times(0));
        assert_close("enabled", ours, shown.enabled_ns, 0.01, SLACK_NS);
        Ok(())
    });
}
