//! Medians and spread of repeated runs.

use serde::Serialize;

use crate::measure::{Measurement, Outcome};

/// Median, minimum and maximum of one figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Median; of an even number of runs the mean of the middle two.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Summary of a set of values; `None` where there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        let median = whit_types::median(&mut values)?;
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Spread { median, min, max })
    }
}

/// Result of all runs of one peer on one file.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Summary {
    /// Every run succeeded.
    Measured {
        /// Number of runs.
        runs: usize,
        /// Wall time in seconds.
        wall_s: Spread,
        /// CPU time in user mode, in seconds.
        user_s: Spread,
        /// CPU time in kernel mode, in seconds.
        sys_s: Spread,
        /// Peak memory in bytes.
        max_rss_bytes: Spread,
    },
    /// A run exceeded the limit.
    TimedOut {
        /// The limit in seconds.
        limit_s: u64,
        /// Peak memory until then.
        max_rss_bytes: u64,
    },
    /// A run failed.
    Failed {
        /// The reason, and the program's output.
        reason: String,
    },
    /// It was not run.
    NotRun {
        /// The program or right that is missing.
        reason: String,
    },
}

impl Summary {
    /// Sums up the runs: one that failed or timed out decides, since medians over the rest would
    /// hide it.
    pub fn of(runs: &[Measurement]) -> Summary {
        for run in runs {
            match &run.outcome {
                Outcome::Success => {}
                Outcome::TimedOut { limit_s } => {
                    let max_rss_bytes = run.max_rss_bytes;
                    return Summary::TimedOut { limit_s: *limit_s, max_rss_bytes };
                }
                Outcome::Failed { status, stderr } => {
                    return Summary::Failed { reason: format!("{status}: {stderr}") };
                }
            }
        }
        let spread = |of: fn(&Measurement) -> f64| Spread::of(runs.iter().map(of));
        match (
            spread(|run| run.wall_s),
            spread(|run| run.user_s),
            spread(|run| run.sys_s),
            spread(|run| run.max_rss_bytes as f64),
        ) {
            (Some(wall_s), Some(user_s), Some(sys_s), Some(max_rss_bytes)) => {
                Summary::Measured { runs: runs.len(), wall_s, user_s, sys_s, max_rss_bytes }
            }
            _ => Summary::NotRun { reason: "no run was made".to_owned() },
        }
    }

    /// Median wall time; for a peer that was killed the limit, which it exceeds.
    pub fn wall_s_at_least(&self) -> Option<f64> {
        match self {
            Summary::Measured { wall_s, .. } => Some(wall_s.median),
            Summary::TimedOut { limit_s, .. } => Some(*limit_s as f64),
            Summary::Failed { .. } | Summary::NotRun { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(wall_s: f64, outcome: Outcome) -> Measurement {
        Measurement { outcome, wall_s, user_s: wall_s / 2.0, sys_s: 0.0, max_rss_bytes: 7 }
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn one_bad_run_decides() {
        let timed_out = Outcome::TimedOut { limit_s: 9 };
        let runs = [run(1.0, Outcome::Success), run(9.0, timed_out)];
        assert_eq!(Summary::of(&runs), Summary::TimedOut { limit_s: 9, max_rss_bytes: 7 });
        let failed = Outcome::Failed { status: "exit code 1".into(), stderr: "no".into() };
        let runs = [run(1.0, failed), run(1.0, Outcome::Success)];
        assert_eq!(Summary::of(&runs), Summary::Failed { reason: "exit code 1: no".into() });
        assert!(matches!(Summary::of(&[]), Summary::NotRun { .. }));
    }

    proptest! {
        #[test]
        fn the_median_lies_within_and_splits_in_half(
            values in prop::collection::vec(0.0f64..1e6, 1..40)
        ) {
            let spread = Spread::of(values.iter().copied()).unwrap();
            prop_assert!(spread.min <= spread.median && spread.median <= spread.max);
            let below = values.iter().filter(|v| **v < spread.median).count();
            let above = values.iter().filter(|v| **v > spread.median).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2);
        }
    }
}
