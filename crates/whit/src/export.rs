//! `whit export`.

use crate::heading;
use crate::input::InputArgs;
use crate::message;
use crate::symbol_args::LoadArgs;
use anyhow::Result;
use profile::SamplesArg;
use std::path::PathBuf;
use whit_export::Format;

mod destination;
mod perf;
mod profile;

/// Options that change profiles; `--perf` writes each record as it is.
const OF_PROFILES: [&str; 15] = [
    "samples",
    "pid",
    "tid",
    "cpu",
    "cgroup",
    "time",
    "max_stack",
    "inline",
    "no_inline",
    "demangle",
    "no_demangle",
    "symfs",
    "vmlinux",
    "kallsyms",
    "threads",
];

/// Arguments of `whit export`.
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("form").args(["format", "perf"]).required(true))]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Write a profile in this format: pprof, firefox, perfetto, perfetto-v57 (for versions before 58),
    /// speedscope, otlp (OpenTelemetry, Alpha) or folded
    #[arg(long, value_name = "FORMAT", help_heading = heading::OUTPUT)]
    format: Option<Format>,
    /// Write a recording for stock perf: not packed, not compressed
    #[arg(long, conflicts_with_all = OF_PROFILES, help_heading = heading::OUTPUT)]
    perf: bool,
    /// Output file, or '-' for standard output; with --perf a directory if the recording is a directory
    #[arg(short = 'o', long, value_name = "FILE", help_heading = heading::OUTPUT)]
    output: PathBuf,
    /// Replace an existing output
    #[arg(short = 'f', long, help_heading = heading::OUTPUT)]
    force: bool,
    /// Write samples with their times (formats with a time line): auto, each or joined
    #[arg(long, value_name = "HOW", default_value = "auto", hide_default_value = true, help_heading = heading::OUTPUT)]
    samples: SamplesArg,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

/// Runs `whit export`.
pub(crate) fn run(args: &ExportArgs) -> Result<u8> {
    let output = &args.output;
    if args.format.is_none() {
        perf::refuse_pipe(output)?;
    }
    let recording = args.input.open()?;
    recording.warnings.iter().for_each(message::error);
    destination::check(&recording, output, args.force)?;
    match args.format {
        Some(format) => profile::run(args, format, &recording, output),
        None => perf::run(&recording, output),
    }
}
