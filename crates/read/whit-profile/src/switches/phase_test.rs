//! Whether samples keep step with the threads that they are of.
//!
//! A sample that comes at a moment of its own falls on any point of a run, from its switch-in to its switch-out, with the
//! same probability, however long runs are. Where a thread wakes up at a multiple of the distance of samples, they fall on
//! the same point of each run: then shares are those of that point.
//!
//! Both ends of a run count as one place. A thread is on its way through the scheduler there, with interrupts off: a timer's
//! sample comes when they are on again, in that run or the next one.

use super::interval::{Run, Trust};
use crate::warning::Warning;
use whit_types::TimestampNs;

/// Parts of a run that are told apart.
const PARTS: usize = 16;
/// Each end of a run. Samples of processes that switch every 60 µs, in a busy virtual machine: 15 % were in the wrong one
/// of sixteen parts of whole runs, and 3 % are with these ends.
const END_NS: u64 = 40_000;
/// Runs with more samples say nothing of one moment.
const SAMPLES_MAX: usize = 16;
/// Fewer samples than this are not judged.
const SAMPLES_MIN: u64 = 200;
/// χ² with [`PARTS`] degrees of freedom goes beyond this once in a million times.
const CHI_SQUARE_MAX: f64 = 58.4;
/// The part of the samples that is in wrong places, from which on the result is said: a small one does no harm.
const MISPLACED_MIN: f64 = 0.15;

/// Samples by the place in the run that they fall on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PhaseTest {
    /// Between the ends.
    parts: [u64; PARTS],
    at_ends: u64,
    /// Without step.
    expected_at_ends: f64,
}

impl PhaseTest {
    pub(super) fn add(&mut self, run: &Run<'_>) {
        if !run.is_open && run.trust == Trust::Whole {
            self.add_times(run.from, run.to, run.samples.iter().map(|sample| sample.time));
        }
    }

    /// Adds the samples of a whole run.
    pub(crate) fn add_times(
        &mut self,
        from: TimestampNs,
        to: TimestampNs,
        times: impl ExactSizeIterator<Item = TimestampNs>,
    ) {
        let length = to.since(from);
        if times.len() > SAMPLES_MAX || length == 0 {
            return;
        }
        let between = length.saturating_sub(2 * END_NS);
        for time in times {
            let at = time.since(from).checked_sub(END_NS).filter(|at| *at < between);
            match at.map(|at| u128::from(at) * PARTS as u128 / u128::from(between)) {
                Some(part) => self.parts[part as usize] += 1,
                None => self.at_ends += 1,
            }
            self.expected_at_ends += 1.0 - between as f64 / length as f64;
        }
    }

    /// Adds what another one has seen.
    pub(crate) fn merge(&mut self, other: &PhaseTest) {
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, count)| *sum += count);
        self.at_ends += other.at_ends;
        self.expected_at_ends += other.expected_at_ends;
    }

    pub(crate) fn warning(&self) -> Option<Warning> {
        self.misplaced().map(|misplaced| Warning::SamplesInStep { misplaced })
    }

    /// The share of the samples that is not where it would be without step; `None` where there is none to speak of.
    pub(super) fn misplaced(&self) -> Option<f64> {
        let all = self.parts.iter().sum::<u64>() + self.at_ends;
        if all < SAMPLES_MIN {
            return None;
        }
        let expected = (all as f64 - self.expected_at_ends) / PARTS as f64;
        let parts = self.parts.iter().map(|count| (*count, expected));
        let places = parts.chain([(self.at_ends, self.expected_at_ends)]);
        let (mut chi_square, mut off) = (0.0, 0.0);
        for (count, expected) in places.filter(|(_, expected)| *expected > 0.0) {
            let more = count as f64 - expected;
            chi_square += more.powi(2) / expected;
            off += more.abs();
        }
        let misplaced = off / 2.0 / all as f64;
        (chi_square > CHI_SQUARE_MAX && misplaced >= MISPLACED_MIN).then_some(misplaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switches::CpuParts;
    use crate::switches::interval::{Task, TimedStack};
    use crate::switches::switch_event::StackRef;
    use proptest::prelude::*;
    use whit_types::{Pid, Tid};

    /// Runs of a length that come back after a time, with samples at a distance of their own.
    fn judged(
        runs: u64,
        every_ns: u64,
        length_ns: u64,
        distance_ns: u64,
        first_ns: u64,
    ) -> Option<f64> {
        let mut test = PhaseTest::default();
        for number in 0..runs {
            let from = 1_000_000 + number * every_ns;
            let first = (from - first_ns).div_ceil(distance_ns) * distance_ns + first_ns;
            let times =
                (0..).map(|n| first + n * distance_ns).take_while(|time| *time < from + length_ns);
            let samples: Vec<_> = times
                .map(|time| TimedStack { time: TimestampNs(time), stack: StackRef::NONE })
                .collect();
            test.add(&Run {
                parts: CpuParts::default(),
                task: Task { pid: Pid(1), tid: Tid(1) },
                cpu: None,
                from: TimestampNs(from),
                to: TimestampNs(from + length_ns),
                samples: &samples,
                trust: Trust::Whole,
                is_open: false,
            });
        }
        test.misplaced()
    }

    #[test]
    fn runs_in_step_with_samples_are_noticed() {
        let misplaced = judged(1000, 1_000_000, 400_000, 1_000_000, 300_000).unwrap();
        assert!(misplaced > 0.9, "{misplaced}");
        // Each fourth run is hit.
        assert!(judged(1000, 250_000, 100_000, 1_000_000, 50_000).is_some());
        // The samples come with the switch-in.
        assert!(judged(1000, 1_000_000, 400_000, 1_000_000, 0).unwrap() > 0.7);
        assert_eq!(judged(100, 1_000_000, 400_000, 1_000_000, 300_000), None, "too few");
    }

    #[test]
    fn samples_that_wait_for_the_scheduler_are_in_no_step() {
        const DISTANCE_NS: u64 = 251_327;
        let (mut test, mut due, mut from) = (PhaseTest::default(), 0, 0);
        for number in 0..20_000 {
            let to = from + 60_000 + number % 7 * 10_000;
            let mut times = Vec::new();
            // The last 10 µs of a run and the first 15 µs of the next one have interrupts off.
            while due < to - 10_000 {
                times.push(TimestampNs(due.max(from + 15_000)));
                due += DISTANCE_NS;
            }
            test.add_times(TimestampNs(from), TimestampNs(to), times.into_iter());
            from = to;
        }
        assert!(test.at_ends > SAMPLES_MIN, "{test:?}");
        assert_eq!(test.misplaced(), None, "{test:?}");
    }

    proptest! {
        #[test]
        fn runs_that_are_not_in_step_are_not(first in 0u64..900_000, length in 50_000u64..3_000_000) {
            // The golden ratio is in step with nothing.
            prop_assert_eq!(judged(5000, 3_618_033, length, 1_000_000, first), None);
        }
    }
}
