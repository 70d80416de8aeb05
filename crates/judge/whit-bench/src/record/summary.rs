//! Medians and spread over the rounds of one row.

use serde::Serialize;

use super::run::{Ended, Figures, Run};
use whit_measure::summary::Spread;

/// Results of all runs of one recorder with one setting.
pub(crate) type RowSummary = Ended<RowFigures>;

/// Each figure over all rounds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct RowFigures {
    pub(crate) runs: usize,
    /// See [`Figures::run_overhead`].
    pub(crate) run_overhead: Spread,
    /// See [`Figures::wall_overhead`].
    pub(crate) wall_overhead: Spread,
    /// See [`Figures::recorder_cpu_s`].
    pub(crate) recorder_cpu_s: Spread,
    /// Paused over elapsed time, between 0 and 1; absent where a recording does not tell.
    pub(crate) data_loss: Option<Spread>,
    /// Records dropped.
    pub(crate) lost: Spread,
    /// Records dropped as a share of all, between 0 and 1.
    pub(crate) lost_share: Spread,
    pub(crate) samples: Spread,
    pub(crate) size_bytes: Spread,
    /// Bytes before over bytes after compression.
    pub(crate) compression_ratio: Spread,
    /// Most bytes of a recording that could not be read.
    pub(crate) unreadable_bytes: u64,
    /// The first crash after a complete recording.
    pub(crate) crash: Option<String>,
}

impl RowSummary {
    /// Sums up the runs; one that is no measurement decides, since medians over the rest would
    /// hide it.
    pub(crate) fn of(runs: &[Run]) -> RowSummary {
        let figures: Vec<&Figures> = runs.iter().filter_map(Run::figures).collect();
        match runs.iter().find(|run| run.figures().is_none()) {
            Some(run) => run.without_figures(),
            None => RowFigures::of(&figures)
                .map_or(RowSummary::NotRun, |figures| RowSummary::Measured(Box::new(figures))),
        }
    }
}

impl RowFigures {
    fn of(runs: &[&Figures]) -> Option<RowFigures> {
        let spread = |of: fn(&Figures) -> f64| Spread::of(runs.iter().map(|run| of(run)));
        let losses: Option<Vec<f64>> = runs.iter().map(|run| run.recorded.data_loss()).collect();
        Some(RowFigures {
            runs: runs.len(),
            run_overhead: spread(|run| run.run_overhead)?,
            wall_overhead: spread(|run| run.wall_overhead)?,
            recorder_cpu_s: spread(|run| run.recorder_cpu_s)?,
            data_loss: losses.and_then(Spread::of),
            lost: spread(|run| run.recorded.lost as f64)?,
            lost_share: spread(|run| run.recorded.lost_share())?,
            samples: spread(|run| run.recorded.samples as f64)?,
            size_bytes: spread(|run| run.recorded.size_bytes as f64)?,
            compression_ratio: spread(|run| run.recorded.compression_ratio())?,
            unreadable_bytes: runs.iter().map(|run| run.recorded.unreadable_bytes).max()?,
            crash: runs.iter().find_map(|run| run.crash.clone()),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::record::recorded::Recorded;
    use crate::record::workload::WorkloadResult;
    use whit_measure::measure::{Measurement, Outcome};

    /// A run with this overhead and this loss (in percent of the elapsed time).
    pub(in crate::record) fn run(run_overhead: f64, loss_percent: u64) -> Run {
        let result =
            WorkloadResult { seconds: 1.0, operations_per_s: 1.0, user_s: 1.0, sys_s: 0.0 };
        let outcome = Outcome::Success;
        Run::Measured(Box::new(Figures {
            run_overhead,
            wall_overhead: 2.0 * run_overhead,
            recorder_cpu_s: 0.25,
            measurement: Measurement {
                outcome,
                wall_s: 2.0,
                user_s: 1.0,
                sys_s: 0.0,
                max_rss_bytes: 1,
            },
            workload: result,
            recorded: Recorded {
                size_bytes: 3 << 20,
                records: 2000,
                samples: 1500,
                lost: loss_percent * 10,
                paused_ns: Some(loss_percent),
                elapsed_ns: Some(100),
                compressed_bytes: 10,
                decompressed_bytes: 80,
                ..Recorded::default()
            },
            crash: None,
        }))
    }

    #[test]
    fn medians_and_spread() {
        let summary = RowSummary::of(&[run(0.1, 5), run(0.3, 1), run(0.2, 9)]);
        let figures = summary.figures().unwrap();
        assert_eq!(figures.run_overhead, Spread { median: 0.2, min: 0.1, max: 0.3 });
        assert_eq!(figures.data_loss, Some(Spread { median: 0.05, min: 0.01, max: 0.09 }));
        assert_eq!((figures.runs, figures.compression_ratio.median), (3, 8.0));
    }

    #[test]
    fn a_run_that_is_no_measurement_decides() {
        let refused = Run::Refused { message: "no".into() };
        assert_eq!(
            RowSummary::of(&[run(0.1, 5), refused]),
            RowSummary::Refused { message: "no".into() }
        );
        let timed_out = RowSummary::of(&[Run::TimedOut { limit_s: 9 }, run(0.1, 5)]);
        assert_eq!(timed_out, RowSummary::TimedOut { limit_s: 9 });
        assert_eq!(RowSummary::of(&[]), RowSummary::NotRun);
    }

    #[test]
    fn a_loss_that_one_run_does_not_report_has_no_median() {
        let mut silent = run(0.1, 5);
        if let Run::Measured(figures) = &mut silent {
            figures.recorded.paused_ns = None;
        }
        let summary = RowSummary::of(&[run(0.1, 5), silent]);
        assert_eq!(summary.figures().unwrap().data_loss, None);
    }
}
