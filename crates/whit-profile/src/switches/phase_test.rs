//! Whether samples keep step with the threads that they are of.
//!
//! A sample that comes at a moment of its own falls on any point of a run, from its switch-in to its switch-out, with the
//! same probability, however long runs are. Where a thread wakes up at a multiple of the distance of samples, they fall on
//! the same point of each run: then shares are those of that point.

use super::interval::{Run, Trust};
use crate::warning::Warning;
use whit_types::TimestampNs;

/// Parts of a run that are told apart.
const PARTS: usize = 16;
/// Runs with more samples say nothing of one moment.
const SAMPLES_MAX: usize = 16;
/// Fewer samples than this are not judged.
const SAMPLES_MIN: u64 = 200;
/// χ² with [`PARTS`] - 1 degrees of freedom goes beyond this once in a million times.
const CHI_SQUARE_MAX: f64 = 56.5;
/// The part of the samples that is in wrong places, from which on the result is said: a small one does no harm.
const MISPLACED_MIN: f64 = 0.15;

/// Samples by the part of the run that they fall on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PhaseTest {
    parts: [u64; PARTS],
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
        for time in times {
            let at = u128::from(time.since(from));
            let part = (at * PARTS as u128 / u128::from(length)) as usize;
            if let Some(count) = self.parts.get_mut(part.min(PARTS - 1)) {
                *count += 1;
            }
        }
    }

    /// Adds what another one has seen.
    pub(crate) fn merge(&mut self, other: &PhaseTest) {
        self.parts.iter_mut().zip(other.parts).for_each(|(sum, count)| *sum += count);
    }

    pub(crate) fn warning(&self) -> Option<Warning> {
        self.misplaced().map(|misplaced| Warning::SamplesInStep { misplaced })
    }

    /// The share of the samples that is not where it would be without step; `None` where there is none to speak of.
    pub(super) fn misplaced(&self) -> Option<f64> {
        let all: u64 = self.parts.iter().sum();
        if all < SAMPLES_MIN {
            return None;
        }
        let expected = all as f64 / PARTS as f64;
        let off = |count: &u64| *count as f64 - expected;
        let chi_square: f64 = self.parts.iter().map(|count| off(count).powi(2) / expected).sum();
        let misplaced =
            self.parts.iter().map(|count| off(count).abs()).sum::<f64>() / 2.0 / all as f64;
        (chi_square > CHI_SQUARE_MAX && misplaced >= MISPLACED_MIN).then_some(misplaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(judged(100, 1_000_000, 400_000, 1_000_000, 300_000), None, "too few");
    }

    proptest! {
        #[test]
        fn runs_that_are_not_in_step_are_not(first in 0u64..900_000, length in 50_000u64..3_000_000) {
            // The golden ratio is in step with nothing.
            prop_assert_eq!(judged(5000, 3_618_033, length, 1_000_000, first), None);
        }
    }
}
