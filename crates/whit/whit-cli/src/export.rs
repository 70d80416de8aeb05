//! `whit export`.

use crate::heading;
use crate::input::RecordingArgs;
use crate::message;
use crate::query;
use crate::symbol_args::{LoadArgs, SELECTING};
use anyhow::Result;
use profile::SamplesArg;
pub use profile::firefox;
use std::path::PathBuf;
use whit_export::Format;

mod archive;
mod chains;
mod destination;
pub mod parquet;
mod perf;
mod profile;

/// Options by which names are found and shown.
const OF_NAMES: [&str; 12] = [
    "max_stack",
    "inline",
    "no_inline",
    "demangle",
    "no_demangle",
    "symfs",
    "vmlinux",
    "kallsyms",
    "threads",
    "debuginfod",
    "no_debuginfod",
    "debuginfod_limit",
];

/// Options that change profiles; `--perf` writes each record as it is.
fn of_profiles() -> impl Iterator<Item = &'static str> {
    ["samples"].into_iter().chain(SELECTING).chain(OF_NAMES)
}

/// Those by which stack dumps are unwound: where binaries are, and how far and by how many threads.
const OF_CHAINS: [&str; 3] = ["max_stack", "symfs", "threads"];

fn not_of_chains() -> impl Iterator<Item = &'static str> {
    of_profiles().filter(|option| !OF_CHAINS.contains(option))
}

/// Options that leave samples out, or change names: an archive has all.
fn not_of_archives() -> impl Iterator<Item = &'static str> {
    let of_names = ["inline", "no_inline", "demangle", "no_demangle"];
    ["samples"].into_iter().chain(SELECTING).chain(of_names)
}

/// Options that leave samples out, and where one file goes; a dataset has all samples.
fn not_of_datasets() -> impl Iterator<Item = &'static str> {
    ["samples", "output"].into_iter().chain(SELECTING)
}

/// Within 80 columns.
const USAGE: &str = "\
whit export [OPTIONS] <--format <FORMAT>|--perf|--chains|--archive|
                          --parquet <DIR>>";

const EXAMPLES: &str = "\
Examples:
  whit export --format=pprof -o cpu.pb.gz
  whit export --chains -i dumps.data -o small.data
  whit export --archive -o archive.data
  whit export --parquet lake -i monday.data -i tuesday.data
  whit query --dataset lake -c 'SELECT host, samples FROM recording'";

/// Arguments of `whit export`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE, group = clap::ArgGroup::new("form").args(["format", "perf", "chains", "archive", "parquet"]).required(true))]
pub struct ExportArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Write a profile in this format: pprof, firefox, perfetto, perfetto-v57 (for versions before 58),
    /// speedscope, otlp (OpenTelemetry, Alpha) or folded
    #[arg(long, value_name = "FORMAT", help_heading = heading::OUTPUT)]
    format: Option<Format>,
    /// Write a recording for stock perf: not packed, not compressed
    #[arg(long, conflicts_with_all = of_profiles(), help_heading = heading::OUTPUT)]
    perf: bool,
    /// Write a recording for stock perf whose stack dumps are call chains: unwound once, and much smaller
    #[arg(long, conflicts_with_all = not_of_chains(), help_heading = heading::OUTPUT)]
    chains: bool,
    /// Write a recording with the names of its frames, which reads the same without the binaries: for another
    /// machine. Stack dumps are call chains there
    #[arg(long, conflicts_with_all = not_of_archives(), help_heading = heading::OUTPUT)]
    archive: bool,
    /// Add the tables of recordings to this dataset: Parquet files by host and date (docs/tables.md)
    #[arg(long, value_name = "DIR", conflicts_with_all = not_of_datasets(), help_heading = heading::OUTPUT)]
    parquet: Option<PathBuf>,
    /// Output file, or '-' for standard output; with --perf or --chains a directory if the
    /// recording is a directory
    #[arg(short = 'o', long, value_name = "FILE", required_unless_present = "parquet", help_heading = heading::OUTPUT)]
    output: Option<PathBuf>,
    /// Replace an existing output; in a dataset write a recording again that is there
    #[arg(short = 'f', long, help_heading = heading::OUTPUT)]
    pub force: bool,
    /// Write samples with their times (formats with a time line): auto, each or joined
    #[arg(long, value_name = "HOW", help_heading = heading::OUTPUT)]
    samples: Option<SamplesArg>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// Runs `whit export`.
pub(crate) fn run(args: &ExportArgs) -> Result<u8> {
    // Without an output there is a dataset.
    let Some(output) = &args.output else { return query::start_with_subcommand() };
    if args.format.is_none() {
        perf::refuse_pipe(output)?;
    }
    let recording = args.input.open()?;
    recording.warnings.iter().for_each(message::error);
    destination::check(&recording, output, args.force)?;
    match args.format {
        Some(format) => profile::run(args, format, &recording, output),
        None if args.archive => archive::run(args, &recording, output),
        None if args.chains => chains::run(args, &recording, output),
        None => perf::run(&recording, output),
    }
}
