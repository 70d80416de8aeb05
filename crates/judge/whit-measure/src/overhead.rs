//! The cost of recording for a command: runs without and with it, in pairs.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Error;
use crate::measure::{self, Outcome};

/// Fewest pairs that give an interval.
pub const PAIRS_MIN: usize = 2;

/// How much slower a command runs with a recorder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// Number of pairs.
    pub pairs: usize,
    /// Run time with over run time without: the geometric mean over the pairs.
    pub factor: f64,
    /// Between these it lies with a confidence of 95 percent.
    pub interval: (f64, f64),
}

impl Slowdown {
    /// From pairs of run times without and with. The logarithms of the ratios are taken to be
    /// distributed normally, with Student's t for the few of them that there are. `None` for
    /// fewer than [`PAIRS_MIN`] pairs, or a time of zero.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Slowdown> {
        let count = pairs.len();
        if count < PAIRS_MIN || pairs.iter().any(|(a, b)| *a <= 0.0 || *b <= 0.0) {
            return None;
        }
        let logs: Vec<f64> = pairs.iter().map(|(without, with)| (with / without).ln()).collect();
        let mean = logs.iter().sum::<f64>() / count as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let error = (squares / (count - 1) as f64 / count as f64).sqrt();
        let reach = t_quantile(count - 1) * error;
        let interval = ((mean - reach).exp(), (mean + reach).exp());
        Some(Slowdown { pairs: count, factor: mean.exp(), interval })
    }

    /// Whether the difference is more than chance.
    pub fn is_certain(&self) -> bool {
        self.interval.0 > 1.0 || self.interval.1 < 1.0
    }
}

/// Two-sided 95 percent quantile of Student's t.
fn t_quantile(degrees_of_freedom: usize) -> f64 {
    const UPPER: f64 = 0.975;
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom as f64);
    // Fewer than one degree of freedom, which no two pairs have, would make no distribution.
    distribution.map_or(f64::INFINITY, |t| t.inverse_cdf(UPPER))
}

/// Runs a command without and with its recorder, `pairs` times, each pair in the other order than
/// the one before. `on_pair` hears of each. Gives the run times.
///
/// # Errors
/// Where a run cannot be started, fails or takes longer than `limit`: a command that fails is no
/// measure.
pub fn pairs(
    without: impl Fn() -> Command,
    with: impl Fn() -> Command,
    count: usize,
    limit: Duration,
    on_pair: &mut dyn FnMut(usize, f64, f64),
) -> Result<Vec<(f64, f64)>, Error> {
    let mut times = Vec::with_capacity(count);
    for pair in 0..count {
        let (first, second) = if pair % 2 == 0 {
            let first = wall_s(without(), limit)?;
            (first, wall_s(with(), limit)?)
        } else {
            let second = wall_s(with(), limit)?;
            (wall_s(without(), limit)?, second)
        };
        on_pair(pair, first, second);
        times.push((first, second));
    }
    Ok(times)
}

fn wall_s(command: Command, limit: Duration) -> Result<f64, Error> {
    let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
    let program = PathBuf::from(command.get_program());
    let shown = measure::command_line(&program, &arguments);
    let run = measure::run(command, limit).map_err(|source| Error::Run { program, source })?;
    let (outcome, stderr) = match run.outcome {
        Outcome::Success => return Ok(run.wall_s),
        Outcome::TimedOut { limit_s } => (format!("no end after {limit_s} s"), String::new()),
        Outcome::Failed { status, stderr } => (status, stderr),
    };
    Err(Error::Measured { command: shown, outcome, stderr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ratios_have_an_interval_of_no_width() {
        let slowdown = Slowdown::of(&[(1.0, 1.1), (2.0, 2.2), (10.0, 11.0)]).unwrap();
        assert!((slowdown.factor - 1.1).abs() < 1e-9);
        assert!((slowdown.interval.0 - 1.1).abs() < 1e-6 && slowdown.is_certain());
    }

    #[test]
    fn noise_widens_the_interval_around_the_mean() {
        let slowdown = Slowdown::of(&[(1.0, 0.9), (1.0, 1.2), (1.0, 1.0), (1.0, 1.05)]).unwrap();
        let (low, high) = slowdown.interval;
        assert!(low < 1.0 && high > 1.0 && !slowdown.is_certain());
        assert!(low < slowdown.factor && slowdown.factor < high);
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(Slowdown::of(&[(1.0, 1.0)]), None);
        assert_eq!(Slowdown::of(&[(0.0, 1.0), (1.0, 1.0)]), None);
    }

    #[test]
    fn quantiles_fall_towards_the_normal_distribution() {
        assert!((1..200).all(|df| t_quantile(df) >= t_quantile(df + 1)));
        assert!((t_quantile(10_000) - 1.96).abs() < 0.01);
        // Table 26.10 of Abramowitz and Stegun.
        assert!((t_quantile(1) - 12.706).abs() < 0.001 && (t_quantile(10) - 2.228).abs() < 0.001);
        assert!(t_quantile(0).is_infinite());
    }

    #[test]
    fn both_commands_run_in_every_pair() {
        let run = |script: &'static str| {
            move || {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                command
            }
        };
        let mut heard = 0;
        let limit = Duration::from_secs(60);
        let times = pairs(run("exit 0"), run("exit 0"), 3, limit, &mut |_, _, _| heard += 1);
        assert_eq!((times.unwrap().len(), heard), (3, 3));
        let failed = pairs(run("exit 0"), run("echo why >&2; exit 3"), 1, limit, &mut |_, _, _| ());
        assert!(failed.unwrap_err().to_string().contains("exit code 3"));
    }
}
