//! `--time`: the parts of intervals that lie in the range.
//!
//! The interval logic sees the whole recording, so that a thread which runs or waits through the range without a
//! switch is known there too. The results alone are cut.

use super::interval::{Life, Run, Sink, Switch, Task, WaitEnd};
use super::intervals::RecordedTotals;
use crate::time_filter::TimeRange;
use whit_types::TimestampNs;

/// Hands the parts of intervals that lie in a range on.
pub(super) struct Cut<'s, S> {
    range: Option<TimeRange>,
    sink: &'s mut S,
}

impl<'s, S: Sink> Cut<'s, S> {
    /// Without a range, all of them.
    pub(super) fn new(range: Option<TimeRange>, sink: &'s mut S) -> Cut<'s, S> {
        Cut { range, sink }
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

/// The recorded time that lies in a range.
pub(super) fn recorded_in(
    range: Option<TimeRange>,
    mut recorded: RecordedTotals,
) -> RecordedTotals {
    if let Some(range) = range {
        let spans = recorded.spans.iter();
        recorded.spans = spans.filter_map(|&(from, to)| part(range, from, to)).collect();
    }
    recorded
}

/// The part of a wait that lies in a range. Its switch counts only where that lies there too.
fn part_of_switch(range: TimeRange, switch: &Switch) -> Option<Switch> {
    let mut cut = *switch;
    let end = match &mut cut.end {
        WaitEnd::In { time, .. } | WaitEnd::Open { until: time, .. } => time,
        WaitEnd::Missing => return range.contains(switch.out).then_some(cut),
    };
    let (from, to) = part(range, switch.out, *end)?;
    *end = to;
    cut.is_cut |= from > switch.out;
    cut.out = from;
    Some(cut)
}

impl<S: Sink> Sink for Cut<'_, S> {
    fn switch(&mut self, switch: &Switch) {
        match self.range {
            None => self.sink.switch(switch),
            Some(range) => {
                part_of_switch(range, switch).iter().for_each(|part| self.sink.switch(part));
            }
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        let Some(range) = self.range else { return self.sink.run(run) };
        let Some((from, to)) = part(range, run.from, run.to) else { return };
        let first = run.samples.partition_point(|sample| sample.time < range.from);
        let end = run.samples.partition_point(|sample| sample.time <= range.to);
        let samples = run.samples.get(first..end).unwrap_or_default();
        let is_open = run.is_open || (from, to) != (run.from, run.to);
        self.sink.run(&Run { from, to, samples, is_open, ..*run });
    }

    fn end(&mut self, task: Task) {
        self.sink.end(task);
    }

    fn life(&mut self, task: Task, life: Life) {
        self.sink.life(task, life);
    }

    fn died(&mut self, task: Task, time: TimestampNs) {
        self.sink.died(task, time);
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::{TimedStack, Trust};
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

        fn end(&mut self, _: Task) {}
        fn life(&mut self, _: Task, _: Life) {}
        fn died(&mut self, _: Task, _: TimestampNs) {}
    }

    const TASK: Task = Task { pid: Pid(1), tid: Tid(1) };

    /// A thread that runs and waits in turn, with one sample in the middle of each run.
    fn tell(sink: &mut impl Sink, lengths: &[u64]) -> Vec<(u64, u64)> {
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
                });
            } else {
                sink.switch(&Switch {
                    task: TASK,
                    cpu: None,
                    out: from,
                    kind: WaitKind::Sync,
                    state: None,
                    stack: StackRef::NONE,
                    futex: 0,
                    woken: None,
                    end: WaitEnd::In { time: to, cpu: None, trust: Trust::Whole },
                    found_blocked: None,
                    is_cut: false,
                });
            }
            intervals.push((at, at + length));
            at += length;
        }
        intervals
    }

    proptest! {
        /// A thread without a gap covers the range without a gap, wherever the range lies; switches and samples are
        /// those inside.
        #[test]
        fn the_parts_cover_the_range(
            lengths in prop::collection::vec(1u64..50, 1..30),
            (from, length) in (0u64..900, 0u64..900),
        ) {
            let range = TimeRange { from: TimestampNs(from), to: TimestampNs(from + length) };
            let mut sums = Sums::default();
            let all = tell(&mut Cut::new(Some(range), &mut sums), &lengths);
            let last = all.last().map_or(0, |interval| interval.1);
            prop_assert_eq!(sums.ns, last.min(from + length).saturating_sub(from));
            let inside = |time: u64| range.contains(TimestampNs(time));
            let outs = all.iter().skip(1).step_by(2).filter(|interval| inside(interval.0));
            prop_assert_eq!(sums.switches, outs.count());
            let middles = all.iter().step_by(2).filter(|(at, end)| inside(at + (end - at) / 2));
            prop_assert_eq!(sums.samples, middles.count());
        }
    }
}
