//! The options of comparisons in which programs read the same recordings.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use whit_bench::peer::PeerKind;
use whit_bench::recording::{Recorder, RecorderKind};
use whit_bench::report::{Options, compare};
use whit_types::ByteSize;

use super::{Results, WORKLOADS, default_cache, heading, installed_whit};

/// Recordings, runs and results.
#[derive(Args, Clone, Debug)]
pub(super) struct ReaderArgs {
    /// Sizes of the recordings to make: K, M, G, separated by commas [default: 50M,500M,2G, for
    /// exports 1G; none with --file]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = heading::COMPARED)]
    sizes: Option<Vec<ByteSize>>,

    /// A recording to compare on, as it is; may be repeated
    #[arg(long = "file", value_name = "FILE", help_heading = heading::COMPARED)]
    pub(super) files: Vec<PathBuf>,

    /// Runs of each peer on each recording
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = heading::RUNS)]
    rounds: u32,

    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 600,
          value_parser = clap::value_parser!(u64).range(1..=86_400),
          help_heading = heading::SETUP)]
    timeout: u64,

    /// Program to record; it takes --seconds S
    #[arg(long, value_name = "PROGRAM", default_value_os_t = PathBuf::from(WORKLOADS).join("deep"),
          help_heading = heading::SETUP)]
    workload: PathBuf,

    /// Directory in which recordings are kept [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR", help_heading = heading::SETUP)]
    cache: Option<PathBuf>,

    /// Recorder that makes the recordings
    #[arg(long, value_name = "perf|whit", default_value = "perf", help_heading = heading::COMPARED)]
    recorder: RecorderKind,

    /// Event to record [default: the recorder's]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Another whit to compare [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM", help_heading = heading::SETUP)]
    whit: Option<PathBuf>,

    #[command(flatten, next_help_heading = heading::RESULTS)]
    results: Results,
}

impl ReaderArgs {
    /// Where recordings are kept.
    pub(super) fn cache(&self) -> Result<PathBuf> {
        self.cache.clone().map_or_else(default_cache, Ok)
    }

    /// Runs the comparison; the exit code is 1 where whit itself did not get through.
    pub(super) fn run(
        &self,
        default_sizes: &[ByteSize],
        peers: &[PeerKind],
        function: &str,
    ) -> Result<i32> {
        self.compare(options(self, default_sizes, peers, function)?)
    }

    /// The same, with the number of bytes that each peer prints.
    pub(super) fn run_with_sizes_of_output(
        &self,
        default_sizes: &[ByteSize],
        peers: &[PeerKind],
    ) -> Result<i32> {
        let options = options(self, default_sizes, peers, "")?;
        self.compare(Options { counts_printed: true, ..options })
    }

    fn compare(&self, options: Options) -> Result<i32> {
        let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
        self.results.publish(&whit_bench::render::markdown(&comparison), &comparison)?;
        Ok(if comparison.whit_succeeded() { 0 } else { 1 })
    }
}

fn options(
    args: &ReaderArgs,
    default_sizes: &[ByteSize],
    peers: &[PeerKind],
    function: &str,
) -> Result<Options> {
    let whit = args.whit.clone().map_or_else(installed_whit, Ok)?;
    let sizes = match &args.sizes {
        Some(sizes) => sizes.clone(),
        None if args.files.is_empty() => default_sizes.to_vec(),
        None => Vec::new(),
    };
    if !sizes.is_empty() && !args.workload.exists() {
        bail!(
            "there is no {} to record: build it with `make -C bench/workloads deep` in whit's \
             repository, or name another program with --workload or recordings with --file",
            args.workload.display()
        );
    }
    Ok(Options {
        sizes,
        files: args.files.clone(),
        workload: args.workload.clone(),
        cache: args.cache()?,
        recorder: Recorder { kind: args.recorder, whit, event: args.event.clone() },
        peers: peers.to_vec(),
        function: function.to_owned(),
        counts_printed: false,
        rounds: args.rounds as usize,
        limit: Duration::from_secs(args.timeout),
    })
}
