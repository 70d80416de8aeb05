//! `whit bench serve`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::recording::{Recorder, RecorderKind};
use whit_bench::serve::{Options, markdown, measure};
use whit_types::ByteSize;

use super::{Results, WORKLOADS, default_cache, heading, installed_whit};

/// The size of the published table.
const SIZE: ByteSize = ByteSize(2 << 30);

const EXAMPLES: &str = "\
Examples:
  whit bench serve --sizes 50M --rounds 1
  whit bench serve --file my.data --ranges 200";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeArgs {
    /// Sizes of the recordings to make: K, M, G, separated by commas [default: 2G; none with --file]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = heading::COMPARED)]
    sizes: Option<Vec<ByteSize>>,

    /// A recording to serve, as it is; may be repeated
    #[arg(long = "file", value_name = "FILE", help_heading = heading::COMPARED)]
    files: Vec<PathBuf>,

    /// Ranges of time that each server is asked for
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = heading::RUNS)]
    ranges: u32,

    /// Servers that are started for each recording
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Program to record; it takes --seconds S
    #[arg(long, value_name = "PROGRAM", default_value_os_t = PathBuf::from(WORKLOADS).join("deep"),
          help_heading = heading::SETUP)]
    workload: PathBuf,

    /// Directory in which recordings are kept [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR", help_heading = heading::SETUP)]
    cache: Option<PathBuf>,

    /// Event to record [default: the recorder's]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Another whit to measure [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM", help_heading = heading::SETUP)]
    whit: Option<PathBuf>,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

/// Runs the command.
pub(super) fn run(args: &ServeArgs) -> Result<i32> {
    let sizes = match &args.sizes {
        Some(sizes) => sizes.clone(),
        None if args.files.is_empty() => vec![SIZE],
        None => Vec::new(),
    };
    if !sizes.is_empty() && !args.workload.exists() {
        bail!(
            "there is no {} to record: build it with `make -C bench/workloads deep` in whit's \
             repository, or name another program with --workload or recordings with --file",
            args.workload.display()
        );
    }
    let whit = args.whit.clone().map_or_else(installed_whit, Ok)?;
    let options = Options {
        sizes,
        files: args.files.clone(),
        workload: args.workload.clone(),
        cache: args.cache.clone().map_or_else(default_cache, Ok)?,
        recorder: Recorder { kind: RecorderKind::Whit, whit, event: args.event.clone() },
        rounds: args.rounds as usize,
        ranges: args.ranges as usize,
    };
    let comparison = measure(&options, &mut |text| eprintln!("{text}"))?;
    args.results.publish(&markdown(&comparison), &comparison)?;
    Ok(0)
}
