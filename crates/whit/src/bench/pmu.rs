//! `whit bench pmi`, `whit bench lbr` and `whit bench sched`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::pmu::{host, lbr, pmi, sched};

use super::{Results, WORKLOADS, default_cache, this_program};

/// Context switches of each trace.
const SWITCHES: u64 = 100_000;

#[derive(Args, Debug)]
pub(super) struct PmiArgs {
    /// Interrupts of each protocol
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    interrupts: u64,

    /// Measure the NMI handlers of this machine instead, with perf and with whit; needs a hardware
    /// PMU and root
    #[arg(long)]
    host: bool,

    /// With --host: runs of each recorder with each set of options
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "host")]
    rounds: u32,

    /// With --host: seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400), requires = "host")]
    timeout: u64,

    /// With --host: directory in which recordings are written and removed [default: whit/bench in the
    /// user's cache]
    #[arg(long, value_name = "DIR", requires = "host")]
    dir: Option<PathBuf>,

    /// With --host: the command to profile [default: the workload `deep`, 5 seconds of it]
    #[arg(last = true, value_name = "COMMAND", requires = "host")]
    command: Vec<OsString>,

    #[command(flatten)]
    results: Results,
}

#[derive(Args, Debug)]
pub(super) struct LbrArgs {
    /// Context switches of each trace
    #[arg(long, value_name = "N", default_value_t = SWITCHES, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    switches: u64,

    #[command(flatten)]
    results: Results,
}

#[derive(Args, Debug)]
pub(super) struct SchedArgs {
    /// Context switches of each way
    #[arg(long, value_name = "N", default_value_t = SWITCHES, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    switches: u64,

    #[command(flatten)]
    results: Results,
}

/// Runs `whit bench pmi`.
pub(super) fn pmi(args: &PmiArgs) -> Result<i32> {
    if args.host {
        let comparison = host::compare(&host_options(args)?, &mut |text| eprintln!("{text}"))?;
        args.results.publish(&host::markdown(&comparison), &comparison)?;
    } else {
        let comparison = pmi::compare(args.interrupts);
        args.results.publish(&pmi::markdown(&comparison), &comparison)?;
    }
    Ok(0)
}

/// Runs `whit bench lbr`.
pub(super) fn lbr(args: &LbrArgs) -> Result<i32> {
    let comparison = lbr::compare(args.switches);
    args.results.publish(&lbr::markdown(&comparison), &comparison)?;
    Ok(0)
}

/// Runs `whit bench sched`.
pub(super) fn sched(args: &SchedArgs) -> Result<i32> {
    let comparison = sched::compare(args.switches);
    args.results.publish(&sched::markdown(&comparison), &comparison)?;
    Ok(0)
}

fn host_options(args: &PmiArgs) -> Result<host::Options> {
    host::require_pmu()?;
    let mut workload = args.command.clone();
    if workload.is_empty() {
        let program = PathBuf::from(WORKLOADS).join("deep");
        if !program.exists() {
            bail!(
                "there is no {} to profile: build it with `make -C bench/workloads` in whit's \
                 repository, or name a command behind --",
                program.display()
            );
        }
        workload = [program.into(), "--seconds".into(), "5".into()].to_vec();
    }
    Ok(host::Options {
        rounds: args.rounds as usize,
        workload,
        whit: this_program()?,
        directory: args.dir.clone().map_or_else(default_cache, Ok)?,
        limit: Duration::from_secs(args.timeout),
    })
}
