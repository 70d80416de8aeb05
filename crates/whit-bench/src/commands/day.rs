//! `whit bench day`.

use anyhow::Result;
use clap::Args;
use whit_bench::day::{Options, markdown, simulate};
use whit_live::Bounds;
use whit_types::ByteSize;

use super::{Results, heading};

const EXAMPLES: &str = "\
Examples:
  whit bench day --hours 3
  whit bench day --windows --picture 30";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct DayArgs {
    /// Simulated hours
    #[arg(long, value_name = "N", default_value_t = 24,
          value_parser = clap::value_parser!(u64).range(1..=1000), help_heading = heading::RUNS)]
    hours: u64,

    /// Simulated seconds between two pictures, or of a window
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = heading::RUNS)]
    picture: u64,

    /// Cut windows, as whit watch does, in place of pictures
    #[arg(long, help_heading = heading::COMPARED)]
    windows: bool,

    /// Samples of each simulated second
    #[arg(long, value_name = "N", default_value_t = 198,
          value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = heading::COMPARED)]
    samples: u32,

    /// Processes that begin in each simulated second
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(0..=1000), help_heading = heading::COMPARED)]
    processes: u32,

    /// Seconds that the window keeps
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = heading::COMPARED)]
    keep: u64,

    /// Bytes that the window keeps
    #[arg(long, value_name = "SIZE", default_value = "32M", help_heading = heading::COMPARED)]
    window: ByteSize,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &DayArgs) -> Result<i32> {
    let options = Options {
        hours: args.hours,
        picture_s: args.picture,
        cuts_windows: args.windows,
        bounds: Bounds { keep_ns: args.keep * 1_000_000_000, bytes_max: args.window.0 as usize },
        samples: args.samples as usize,
        processes: args.processes as usize,
    };
    let day = simulate(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&day), &day)?;
    Ok(0)
}
