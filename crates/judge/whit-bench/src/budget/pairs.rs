//! Runs of a program in pairs, alone and beside a recording, which goes on all the time and is switched off for the runs
//! alone. So a pair takes no longer than its two runs, and the budget is that of a recorder that has settled.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use whit_measure::overhead::Slowdown;
use whit_perfdata::budget_history::BudgetHistory;

use super::loads::Work;
use super::{Options, Paired, history_of, percent, recorder};
use crate::error::{self, Error};
use crate::running::Running;

/// The answer to a command.
const ACK: &[u8] = b"ack\n";
/// Runs of both kinds that only warm caches and settings up.
const WARM_UP_PAIRS: usize = 2;

/// A recorder that waits for commands.
struct Switched {
    running: Running,
    command: String,
}

impl Switched {
    fn start(options: &Options, path: &Path) -> Result<Switched, Error> {
        let mut recorder = recorder(options, path);
        // The first command begins the recording.
        recorder.args(["--delay=-1", "--control=fd:0,1"]);
        let command = format!("{recorder:?}");
        recorder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Switched { running: Running::spawn(&mut recorder)?, command })
    }

    /// Waits until the command has been carried out.
    fn send(&mut self, command: &str) -> Result<(), Error> {
        let answered = |child: &mut Child| {
            writeln!(child.stdin.as_mut()?, "{command}").ok()?;
            let mut answer = [0; ACK.len()];
            child.stdout.as_mut()?.read_exact(&mut answer).ok()?;
            (answer == *ACK).then_some(())
        };
        answered(&mut self.running.child).ok_or_else(|| {
            error::recording(&self.command, format_args!("does not answer to '{command}'"), "")
        })
    }

    fn end(mut self) -> Result<(), Error> {
        self.send("stop")?;
        self.running.used().map(drop)
    }
}

/// Runs all pairs of a program.
pub(super) fn run(
    options: &Options,
    work: &Work,
    path: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Paired, Error> {
    let program: PathBuf = options.setup.workloads.join(work.program);
    let run = || {
        let output = Command::new(&program).args(work.arguments.split_whitespace()).output();
        let output = output.map_err(error::run(&program))?;
        seconds(&String::from_utf8_lossy(&output.stdout), work)
    };
    let mut recorder = Switched::start(options, path)?;
    let mut times = Vec::new();
    for pair in 0..WARM_UP_PAIRS + options.pairs {
        say(&format!("{}: pair {} of {}", work.program, pair + 1, WARM_UP_PAIRS + options.pairs));
        let mut recorded = || {
            recorder.send("enable")?;
            let seconds = run()?;
            recorder.send("disable").map(|()| seconds)
        };
        times.push(if pair % 2 == 0 {
            let alone = run()?;
            (alone, recorded()?)
        } else {
            let with = recorded()?;
            (run()?, with)
        });
    }
    recorder.end()?;
    let history = history_of(path)?;
    let measured = Slowdown::of(&times[WARM_UP_PAIRS..]);
    Ok(paired(work, &history, &times[..WARM_UP_PAIRS], measured))
}

/// The cost is that of the time behind the runs that warm up.
fn paired(
    work: &Work,
    history: &BudgetHistory,
    warm_up: &[(f64, f64)],
    measured: Option<Slowdown>,
) -> Paired {
    let skipped_ms = warm_up.iter().map(|(_, recorded)| recorded * 1e3).sum::<f64>();
    let (mut time_ms, mut sum, mut sum_ms) = (0.0, 0.0, 0.0);
    for cost in &history.costs {
        let length_ms = f64::from(cost.length_ms);
        time_ms += length_ms;
        if time_ms > skipped_ms {
            sum += percent(cost.mean_ppm) * length_ms;
            sum_ms += length_ms;
        }
    }
    let stated_percent = if sum_ms > 0.0 { sum / sum_ms } else { 0.0 };
    let change = |factor: f64| 100.0 * (factor - 1.0);
    Paired {
        work: work.line(),
        stated_percent,
        predicted_percent: predicted(stated_percent),
        measured_percent: measured
            .map(|it| (change(it.factor), change(it.interval.0), change(it.interval.1))),
    }
}

/// How much longer a program takes that keeps all CPUs busy, where the recording takes this part of them.
fn predicted(stated_percent: f64) -> f64 {
    let share = (stated_percent / 100.0).clamp(0.0, 0.99);
    100.0 * share / (1.0 - share)
}

/// The time that a workload says it took.
fn seconds(said: &str, work: &Work) -> Result<f64, Error> {
    let found =
        said.split_whitespace().find_map(|word| word.strip_prefix("seconds=")?.parse().ok());
    found.ok_or_else(|| error::workload(&work.line(), "did not say how long it took"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::budget_history::CostInterval;

    #[test]
    fn a_program_that_gets_less_of_the_cpus_takes_longer() {
        assert!((predicted(50.0) - 100.0).abs() < 1e-9 && predicted(0.0) == 0.0);
        assert!((predicted(1.0) - 1.0101).abs() < 1e-4);
    }

    #[test]
    fn the_cost_of_the_warm_up_does_not_count() {
        let cost =
            |length_ms, mean_ppm| CostInterval { length_ms, mean_ppm, ..CostInterval::default() };
        let costs =
            vec![cost(900, 90_000), cost(100, 90_000), cost(1000, 10_000), cost(500, 40_000)];
        let history = BudgetHistory { costs, ..BudgetHistory::default() };
        let measured = Slowdown::of(&[(1.0, 1.02), (1.0, 1.02)]);
        let found = paired(&Work::ALL[0], &history, &[(0.4, 0.5), (0.4, 0.5)], measured);
        assert!((found.stated_percent - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.measured_percent.is_some_and(|(mean, ..)| (mean - 2.0).abs() < 1e-9));
    }
}
