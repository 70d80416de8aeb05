//! A history in one line.

use std::fmt;

use super::{BudgetHistory, SettingsChange};
use crate::budget::{CostCause, RecordedWaits};

/// Parts of a time, in millionths, in which less was recorded than was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReducedShares {
    /// Fewer samples, while not paused.
    pub fewer_samples_ppm: u32,
    /// Waits as samples in place of every switch.
    pub sampled_waits_ppm: u32,
    /// Neither switches nor samples of waits.
    pub no_waits_ppm: u32,
    /// Stacks were cut.
    pub short_stacks_ppm: u32,
    /// Neither samples nor waits.
    pub paused_ppm: u32,
}

impl BudgetHistory {
    /// The shares of the time of the output.
    pub fn shares(&self) -> ReducedShares {
        let (begin, end) = (self.begin, self.end);
        let mut shares = ReducedShares::default();
        let add = |sum: &mut u32, share: u32| *sum = sum.saturating_add(share).min(1_000_000);
        let whole = end.0.saturating_sub(begin.0);
        if whole == 0 {
            return shares;
        }
        let ends = self.changes.iter().skip(1).map(|change| change.from).chain([end]);
        for (change, until) in self.changes.iter().zip(ends) {
            let (from, to) = (change.from.max(begin), until.min(end));
            let share = (to.0.saturating_sub(from.0) as f64 / whole as f64 * 1e6) as u32;
            let settings = &change.settings;
            if settings.is_paused {
                add(&mut shares.paused_ppm, share);
                continue;
            }
            if settings.stretch > 1 {
                add(&mut shares.fewer_samples_ppm, share);
            }
            if settings.stack_divisor > 1 {
                add(&mut shares.short_stacks_ppm, share);
            }
            match settings.waits {
                RecordedWaits::AsAsked => {}
                RecordedWaits::Sampled => add(&mut shares.sampled_waits_ppm, share),
                RecordedWaits::None => add(&mut shares.no_waits_ppm, share),
            }
        }
        shares
    }

    /// How many times longer than asked for the distance between samples was at most.
    pub fn largest_stretch(&self) -> u32 {
        self.changes.iter().map(|change| change.settings.stretch).max().unwrap_or(1)
    }

    /// The largest divisor of the depth of stacks.
    pub fn largest_stack_divisor(&self) -> u32 {
        self.changes.iter().map(|change| change.settings.stack_divisor).max().unwrap_or(1)
    }

    /// The first change by which less was recorded.
    pub fn first_reduction(&self) -> Option<&SettingsChange> {
        self.changes.iter().find(|change| change.settings.is_reduced())
    }

    /// Its reductions in sum; `None` where nothing was left out.
    pub fn reduction(&self) -> Option<Reduction> {
        let first = self.first_reduction()?;
        Some(Reduction {
            budget_ppm: self.budget_ppm,
            capacity_millicpus: self.capacity_millicpus,
            stretch: self.largest_stretch(),
            stack_divisor: self.largest_stack_divisor(),
            shares: self.shares(),
            first_after_ns: first.from.0.saturating_sub(self.begin.0),
            cause: first.settings.cause,
            cost_ppm: first.settings.cost_ppm,
        })
    }
}

/// Less was recorded than was asked for; prints as one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reduction {
    /// The cost that was allowed, in millionths of the capacity.
    pub budget_ppm: u32,
    /// The capacity in thousandths of a CPU.
    pub capacity_millicpus: u32,
    /// The largest distance between samples, in times of the one that was asked for.
    pub stretch: u32,
    /// The least depth of stacks, as one part in so many of the one that was asked for.
    pub stack_divisor: u32,
    /// For which shares of the time.
    pub shares: ReducedShares,
    /// The time from the begin of the recording to the first reduction.
    pub first_after_ns: u64,
    /// Why that was made.
    pub cause: CostCause,
    /// The cost that was measured before it, in millionths of the capacity.
    pub cost_ppm: u32,
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ppm: u32| f64::from(ppm) / 1e4;
        let shares = &self.shares;
        let fewer = format!("samples at down to 1/{} of their frequency", self.stretch);
        let shorter = format!("stacks of down to 1/{} of their depth", self.stack_divisor);
        let parts = [
            (shares.fewer_samples_ppm, fewer.as_str()),
            (shares.sampled_waits_ppm, "samples of waits in place of every context switch"),
            (shares.no_waits_ppm, "no waits"),
            (shares.short_stacks_ppm, shorter.as_str()),
            (shares.paused_ppm, "nothing at all"),
        ];
        let parts: Vec<_> = parts
            .iter()
            .filter(|(share, _)| *share > 0)
            .map(|(share, what)| format!("{what} for {:.1}% of the time", percent(*share)))
            .collect();
        let cause = match self.cause {
            CostCause::Samples => "samples",
            CostCause::Switches => "context switches",
            CostCause::Other => "new processes and code",
        };
        write!(
            f,
            "less was recorded, to cost no more than {:.2}% of {:.1} CPUs (--max-overhead): {}; first after {:.1} s, \
             when the recording cost {:.2}%, most of it for {cause}",
            percent(self.budget_ppm),
            f64::from(self.capacity_millicpus) / 1e3,
            parts.join(", "),
            self.first_after_ns as f64 / 1e9,
            percent(self.cost_ppm),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::RecordedSettings;
    use whit_types::TimestampNs;

    fn change(from: u64, stretch: u32, waits: RecordedWaits, stacks: u32) -> SettingsChange {
        let (cause, cost_ppm) = (CostCause::Switches, 12_345);
        let is_paused = waits == RecordedWaits::None && stretch > 1;
        let settings =
            RecordedSettings { stretch, waits, stack_divisor: stacks, is_paused, cause, cost_ppm };
        SettingsChange { from: TimestampNs(from), settings }
    }

    fn history() -> BudgetHistory {
        use RecordedWaits::{AsAsked, None, Sampled};
        let changes = vec![
            change(100, 1, AsAsked, 1),
            change(200, 8, Sampled, 1),
            change(300, 8, None, 4),
            change(400, 1, None, 4),
        ];
        BudgetHistory {
            budget_ppm: 10_000,
            capacity_millicpus: 2000,
            begin: TimestampNs(100),
            end: TimestampNs(500),
            changes,
            ..BudgetHistory::default()
        }
    }

    #[test]
    fn shares_are_those_of_the_time_that_is_asked_for() {
        let shares = history().shares();
        let wanted = ReducedShares {
            fewer_samples_ppm: 250_000,
            sampled_waits_ppm: 250_000,
            no_waits_ppm: 250_000,
            short_stacks_ppm: 250_000,
            paused_ppm: 250_000,
        };
        assert_eq!(shares, wanted);
        let empty = BudgetHistory { end: TimestampNs(100), ..history() };
        assert_eq!(empty.shares(), ReducedShares::default());
        assert_eq!(history().first_reduction().unwrap().from, TimestampNs(200));
        assert_eq!(history().largest_stretch(), 8);
    }

    #[test]
    fn a_reduction_is_stated_in_one_line() {
        let text = history().reduction().unwrap().to_string();
        assert_eq!(
            text,
            "less was recorded, to cost no more than 1.00% of 2.0 CPUs (--max-overhead): samples at down to 1/8 of \
             their frequency for 25.0% of the time, samples of waits in place of every context switch for 25.0% of \
             the time, no waits for 25.0% of the time, stacks of down to 1/4 of their depth for 25.0% of the time, \
             nothing at all for 25.0% of the time; first after 0.0 s, when the recording cost 1.23%, most of it for \
             context switches"
        );
        assert_eq!(BudgetHistory::default().reduction(), Option::None);
    }
}
