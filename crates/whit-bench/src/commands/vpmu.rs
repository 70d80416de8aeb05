//! `whit bench vpmu`.

use anyhow::Result;
use clap::Args;
use whit_bench::vpmu::{Options, compare, markdown};

use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench vpmu --interrupts 1000
  whit bench vpmu --kvm";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct VpmuArgs {
    /// Interrupts of each session
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    interrupts: u64,

    /// Stops and starts of each counting session
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000),
          help_heading = heading::RUNS)]
    switches: u64,

    /// Sessions of each way
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Events between two interrupts; nanoseconds for a clock
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(20_000..=1 << 40),
          help_heading = heading::EVENTS)]
    period: u64,

    /// Boot a small guest through /dev/kvm instead, which samples its vCPU's task clock
    #[arg(long, help_heading = heading::COMPARED)]
    kvm: bool,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &VpmuArgs) -> Result<i32> {
    let options = Options {
        interrupts: args.interrupts,
        switches: args.switches,
        rounds: args.rounds as usize,
        period: args.period,
    };
    if args.kvm {
        return kvm(args, &options);
    }
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(0)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn kvm(args: &VpmuArgs, options: &Options) -> Result<i32> {
    use whit_bench::vpmu::kvm;
    let comparison = kvm::compare(options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&kvm::markdown(&comparison), &comparison)?;
    Ok(if comparison.agrees() { 0 } else { 1 })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn kvm(_: &VpmuArgs, _: &Options) -> Result<i32> {
    anyhow::bail!("--kvm boots a guest for x86-64 on Linux, and this is another machine")
}
