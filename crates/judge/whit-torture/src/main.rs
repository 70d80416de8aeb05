//! Attacks on a built whit (`make torture`): damaged recordings, recorders that are killed, stopped and starved, full
//! disks, forced losses, storms of processes and mappings, hostile binaries and paths.
//!
//! The judges are outside of whit: exit codes and signals, time and memory by `wait4(2)`, raw bytes of the output,
//! a counter of the same event, and stock perf where it is installed. Each attack is repeatable by the seed that it
//! prints, and leaves the inputs of its failures in a directory.
#![forbid(unsafe_code)]

mod accounting;
mod disk;
mod faces;
mod hostile;
mod kill;
mod late;
mod mutants;
mod mutate;
mod paths;
mod recorders;
mod soak;
mod storms;
mod trouble;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use verdict::Verdict;

/// Attack whit, and count the attacks that it does not survive
#[derive(Parser)]
#[command(name = "whit-torture")]
struct Cli {
    /// Attacks to run [default: all]
    #[arg(value_enum)]
    attacks: Vec<Attack>,

    /// The whit to attack [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,

    /// Seed of the random numbers [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// How often each attack is made, in percent of its usual number
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    effort: u64,

    /// Length of the soak of `whit watch`, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    soak: u64,

    /// Directory of the built workloads (`make -C bench/workloads`)
    #[arg(long, value_name = "DIR", default_value = "target/workloads")]
    workloads: PathBuf,

    /// Directory for the inputs of failures
    #[arg(long, value_name = "DIR", default_value = "target/torture")]
    failures: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Attack {
    /// Forced losses in every way of streaming: recorded + lost = produced
    Accounting,
    /// Recorders killed at random moments: reports read the rest, and perf reads its export
    Kill,
    /// Disks of fifty sizes that fill up: a clear error, an undisturbed command, a readable rest
    Disk,
    /// Recorders stopped at random moments, and starved: accounts close, and no wait is false
    Late,
    /// Storms of processes, threads, mappings and libraries: all of them are recorded, or counted as lost
    Storms,
    /// Binaries that ask for more than they are: reports end in time, in bounded memory
    Hostile,
    /// Pipes, devices, directories, loops and damaged files at paths that a process chooses: none is obeyed or waited for
    Paths,
    /// Damaged recordings in every face: no crash, no control characters, bounds of time and memory
    Mutants,
    /// `whit watch` in 128 MiB for long beside storms: it is not ended, does not grow, and its accounts close
    Soak,
}

/// The conditions of an attack.
struct Setting {
    whit: PathBuf,
    workloads: PathBuf,
    failures: PathBuf,
    effort: u64,
    soak: Duration,
    random: fastrand::Rng,
}

impl Setting {
    /// A number of repetitions, at the effort that was asked for.
    fn times(&self, usual: u64) -> u64 {
        (usual * self.effort).div_ceil(100)
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("whit-torture: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<bool> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let whit = cli.whit.clone().unwrap_or_else(|| own.with_file_name("whit"));
    ensure!(whit.is_file(), "there is no {}: build it, or name one with --whit", whit.display());
    std::fs::create_dir_all(&cli.failures)
        .with_context(|| format!("cannot make {}", cli.failures.display()))?;
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let attacks = match &cli.attacks[..] {
        [] => Attack::value_variants(),
        chosen => chosen,
    };
    let mut passed = true;
    for attack in attacks {
        let mut setting = Setting {
            whit: whit.canonicalize().context("cannot find whit")?,
            workloads: cli.workloads.clone(),
            failures: cli.failures.clone(),
            effort: cli.effort,
            soak: Duration::from_secs(cli.soak),
            // Each attack is repeatable without the others.
            random: fastrand::Rng::with_seed(seed ^ *attack as u64),
        };
        let verdict: Verdict = match attack {
            Attack::Accounting => accounting::run(&mut setting)?,
            Attack::Kill => kill::run(&mut setting)?,
            Attack::Disk => disk::run(&mut setting)?,
            Attack::Late => late::run(&mut setting)?,
            Attack::Storms => storms::run(&mut setting)?,
            Attack::Hostile => hostile::run(&mut setting)?,
            Attack::Paths => paths::run(&mut setting)?,
            Attack::Mutants => mutants::run(&mut setting)?,
            Attack::Soak => soak::run(&mut setting)?,
        };
        println!("{attack:?}: {verdict}");
        passed &= verdict.failures.is_empty();
    }
    Ok(passed)
}
