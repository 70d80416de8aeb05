//! `--time` and `--request`: the parts of intervals that lie in ranges, of all threads or of each.
//!
//! The interval logic sees the whole recording, so that a thread which runs or waits through the range without a
//! switch is known there too. The results alone are cut.

use super::cpu_parts::CpuParts;
use super::interval::{Life, Run, Sink, Switch, Task, WaitEnd};
use super::intervals::RecordedTotals;
use crate::call_times::CallTimes;
use crate::time_filter::{TimeRange, TimeRanges};
use whit_types::{CpuId, TimestampNs};

/// The times that are wanted.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'s> {
    All,
    Of(&'s TimeRanges),
    OfThreads(&'s CallTimes),
}

/// Hands the parts of intervals that lie in ranges on.
pub(super) struct Cut<'s, S> {
    wanted: Wanted<'s>,
    sink: &'s mut S,
}

impl<'s, S: Sink> Cut<'s, S> {
    /// Without ranges, all of them.
    pub(super) fn to_ranges(ranges: Option<&'s TimeRanges>, sink: &'s mut S) -> Cut<'s, S> {
        Cut { wanted: ranges.map_or(Wanted::All, Wanted::Of), sink }
    }

    /// Without calls, all of them.
    pub(super) fn to_calls(calls: Option<&'s CallTimes>, sink: &'s mut S) -> Cut<'s, S> {
        Cut { wanted: calls.map_or(Wanted::All, Wanted::OfThreads), sink }
    }

    fn part_of_run(&mut self, range: TimeRange, run: &Run<'_>) {
        let Some((from, to)) = part(range, run.from, run.to) else { return };
        let first = run.samples.partition_point(|sample| sample.time < range.from);
        let end = run.samples.partition_point(|sample| sample.time <= range.to);
        let samples = run.samples.get(first..end).unwrap_or_default();
        let is_open = run.is_open || (from, to) != (run.from, run.to);
        let parts = run.parts.share(to.since(from), run.to.since(run.from));
        let parts = parts.within(to.since(from));
        self.sink.run(&Run { from, to, samples, is_open, parts, ..*run });
    }
}

impl<'s> Wanted<'s> {
    /// The wanted ranges of a thread, which are all where there is no inner value. `None` where it has none.
    fn of(self, task: Task) -> Option<Option<&'s TimeRanges>> {
        match self {
            Wanted::All => Some(None),
            Wanted::Of(ranges) => Some(Some(ranges)),
            Wanted::OfThreads(calls) => calls.of(task.tid).map(Some),
        }
    }
}

/// The part of a stretch of time that lies in a range.
fn part(
    range: TimeRange,
    from: TimestampNs,
    to: TimestampNs,
) -> Option<(TimestampNs, TimestampNs)> {
    let part = (from.max(range.from), to.min(range.to));
    (part.0 <= part.1).then_some(part)
}

/// The recorded time that lies in ranges.
pub(super) fn recorded_in(
    ranges: Option<&TimeRanges>,
    mut recorded: RecordedTotals,
) -> RecordedTotals {
    if let Some(ranges) = ranges {
        let parts = |&(from, to)| ranges.iter().filter_map(move |range| part(range, from, to));
        recorded.spans = recorded.spans.iter().flat_map(parts).collect();
    }
    recorded
}

/// The part of a wait that lies in a range which it meets. Its switch counts only where that lies there too; of a wait
/// without an end, the switch is all.
fn part_of_switch(range: TimeRange, switch: &Switch) -> Option<Switch> {
    let mut cut = *switch;
    let end = match &mut cut.end {
        WaitEnd::In { time, .. } | WaitEnd::Open { until: time, .. } => time,
        WaitEnd::Missing => return Some(cut),
    };
    let (from, to) = part(range, switch.out, *end)?;
    *end = to;
    cut.is_cut |= from > switch.out;
    cut.out = from;
    Some(cut)
}

impl<S: Sink> Sink for Cut<'_, S> {
    fn switch(&mut self, switch: &Switch) {
        let Some(ranges) = self.wanted.of(switch.task) else { return };
        let Some(ranges) = ranges else { return self.sink.switch(switch) };
        let end = match switch.end {
            WaitEnd::In { time, .. } | WaitEnd::Open { until: time, .. } => time,
            WaitEnd::Missing => switch.out,
        };
        let ranges = ranges.meeting(TimeRange { from: switch.out, to: end });
        let parts = ranges.filter_map(|range| part_of_switch(range, switch));
        parts.for_each(|part| self.sink.switch(&part));
    }

    fn run(&mut self, run: &Run<'_>) {
        let Some(ranges) = self.wanted.of(run.task) else { return };
        let Some(ranges) = ranges else { return self.sink.run(run) };
        let meeting = ranges.meeting(TimeRange { from: run.from, to: run.to });
        meeting.for_each(|range| self.part_of_run(range, run));
    }

    fn idle(&mut self, cpu: CpuId, parts: &CpuParts) {
        // No record has the moments of it.
        if matches!(self.wanted, Wanted::All) {
            self.sink.idle(cpu, parts);
        }
    }

    fn end(&mut self, task: Task) {
        self.sink.end(task);
    }

    fn life(&mut self, task: Task, life: Life) {
        if self.wanted.of(task).is_some() {
            self.sink.life(task, life);
        }
    }

    fn died(&mut self, task: Task, time: TimestampNs) {
        self.sink.died(task, time);
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::{TimedStack, Trust};
    use super::super::object_key::ObjectKey;
    use super::super::switch_event::{StackRef, WaitKind};
    use super::*;
    use proptest::prelude::*;
    use whit_types::{Pid, Tid};

    #[derive(Default)]
    struct Sums {
        ns: u64,
        switches: usize,
        samples: usize,
    }

    impl Sink for Sums {
        fn switch(&mut self, switch: &Switch) {
            if let WaitEnd::In { time, .. } = switch.end {
                self.ns += time.since(switch.out);
            }
            self.switches += usize::from(!switch.is_cut);
        }

        fn run(&mut self, run: &Run<'_>) {
            self.ns += run.to.since(run.from);
            self.samples += run.samples.len();
        }

        fn idle(&mut self, _: CpuId, _: &CpuParts) {}
        fn end(&mut self, _: Task) {}
        fn life(&mut self, _: Task, _: Life) {}
        fn died(&mut self, _: Task, _: TimestampNs) {}
    }

    const TASK: Task = Task { pid: Pid(1), tid: Tid(1) };

    fn wait(out: TimestampNs, to: TimestampNs) -> Switch {
        Switch {
            task: TASK,
            cpu: None,
            out,
            kind: WaitKind::Sync,
            state: None,
            stack: StackRef::NONE,
            object: ObjectKey::None,
            woken: None,
            end: WaitEnd::In { time: to, cpu: None, trust: Trust::Whole },
            found_blocked: None,
            is_cut: false,
        }
    }

    /// A thread that runs and waits in turn, with one sample in the middle of each run.
    fn run(sink: &mut impl Sink, lengths: &[u64]) -> Vec<(u64, u64)> {
        let (mut at, mut intervals) = (0, Vec::new());
        for (index, length) in lengths.iter().enumerate() {
            let (from, to) = (TimestampNs(at), TimestampNs(at + length));
            if index % 2 == 0 {
                let time = TimestampNs(at + length / 2);
                let samples = [TimedStack { time, stack: StackRef::NONE }];
                let trust = Trust::Whole;
                let is_open = false;
                sink.run(&Run {
                    task: TASK,
                    cpu: None,
                    from,
                    to,
                    samples: &samples,
                    trust,
                    is_open,
                    parts: CpuParts::default(),
                });
            } else {
                sink.switch(&wait(from, to));
            }
            intervals.push((at, at + length));
            at += length;
        }
        intervals
    }

    #[test]
    fn a_wait_without_an_end_is_in_the_range_of_its_switch() {
        let range = |from, to| TimeRange { from: TimestampNs(from), to: TimestampNs(to) };
        let ranges = TimeRanges::new([range(10, 20), range(30, 40)]);
        let of_thread = CallTimes::new([(TASK.tid, range(10, 20)), (TASK.tid, range(30, 40))]);
        for (out, kept) in [(9, 0), (10, 1), (20, 1), (25, 0), (40, 1), (41, 0)] {
            let switch = Switch { end: WaitEnd::Missing, ..wait(TimestampNs(out), TimestampNs(0)) };
            let (mut of_all, mut of_calls) = (Sums::default(), Sums::default());
            Cut::to_ranges(Some(&ranges), &mut of_all).switch(&switch);
            Cut::to_calls(Some(&of_thread), &mut of_calls).switch(&switch);
            assert_eq!((of_all.switches, of_calls.switches), (kept, kept), "{out}");
        }
    }

    proptest! {
        /// A thread without a gap covers the ranges without a gap, wherever they lie; switches and samples are those
        /// inside.
        #[test]
        fn the_parts_cover_the_ranges(
            lengths in prop::collection::vec(1u64..50, 1..30),
            spans in prop::collection::vec((0u64..900, 0u64..300), 1..4),
        ) {
            let range = |(from, length): (u64, u64)| {
                TimeRange { from: TimestampNs(from), to: TimestampNs(from + length) }
            };
            let ranges = TimeRanges::new(spans.into_iter().map(range));
            let mut sums = Sums::default();
            let all = run(&mut Cut::to_ranges(Some(&ranges), &mut sums), &lengths);
            let last = all.last().map_or(0, |interval| interval.1);
            let covered = |range: TimeRange| last.min(range.to.0).saturating_sub(range.from.0);
            prop_assert_eq!(sums.ns, ranges.iter().map(covered).sum::<u64>());
            let inside = |time: u64| ranges.contains(TimestampNs(time));
            let outs = all.iter().skip(1).step_by(2).filter(|interval| inside(interval.0));
            prop_assert_eq!(sums.switches, outs.count());
            let middles = all.iter().step_by(2).filter(|(at, end)| inside(at + (end - at) / 2));
            prop_assert_eq!(sums.samples, middles.count());
        }
    }
}
