//! `whit bench pmi`, `whit bench lbr` and `whit bench sched`.

use std::ffi::OsString;

use anyhow::Result;
use clap::{ArgGroup, Args};
use whit_bench::core_pmu;
use whit_bench::pmu::{host, lbr, pmi, sched};

use super::setup::SetupArgs;
use super::{Results, heading};

/// Context switches of each trace.
const SWITCHES: u64 = 100_000;

const PMI_EXAMPLES: &str = "\
Examples:
  whit bench pmi --interrupts 10000
  whit bench pmi --host --rounds 3 -- ./server --bench";

#[derive(Args, Debug)]
#[command(
    after_help = PMI_EXAMPLES,
    group = ArgGroup::new("setup").args(SetupArgs::IDS).multiple(true).requires("host")
)]
pub(super) struct PmiArgs {
    /// Interrupts of each protocol
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    interrupts: u64,

    /// Measure the NMI handlers of this machine instead, with perf and with whit; needs a hardware
    /// PMU and root
    #[arg(long, help_heading = heading::COMPARED)]
    host: bool,

    /// With --host: runs of each recorder with each set of options
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), requires = "host",
          help_heading = heading::RUNS)]
    rounds: u32,

    /// With --host: the command to profile [default: 5 seconds of the workload `deep`]
    #[arg(last = true, value_name = "COMMAND", requires = "host", help_heading = heading::COMPARED)]
    command: Vec<OsString>,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,

    #[command(flatten, next_help_heading = heading::SETUP_OF_HOST)]
    setup: SetupArgs,
}

const LBR_EXAMPLES: &str = "\
Example:
  whit bench lbr --switches 1000000";

#[derive(Args, Debug)]
#[command(after_help = LBR_EXAMPLES)]
pub(super) struct LbrArgs {
    /// Context switches of each trace
    #[arg(long, value_name = "N", default_value_t = SWITCHES,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000),
          help_heading = heading::RUNS)]
    switches: u64,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

const SCHED_EXAMPLES: &str = "\
Example:
  whit bench sched --switches 1000000 --json result.json";

#[derive(Args, Debug)]
#[command(after_help = SCHED_EXAMPLES)]
pub(super) struct SchedArgs {
    /// Context switches of each way
    #[arg(long, value_name = "N", default_value_t = SWITCHES,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000),
          help_heading = heading::RUNS)]
    switches: u64,

    #[command(flatten, next_help_heading = heading::RESULTS)]
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
    core_pmu::require()?;
    let needed: &[&str] = if args.command.is_empty() { &["deep"] } else { &[] };
    let setup = args.setup.with_workloads(needed)?;
    let mut workload = args.command.clone();
    if workload.is_empty() {
        let program = setup.workloads.join("deep");
        workload = [program.into(), "--seconds".into(), "5".into()].to_vec();
    }
    Ok(host::Options { rounds: args.rounds as usize, workload, setup })
}
