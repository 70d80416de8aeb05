//! `whit bench`: compares whit with its peers.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use whit_bench::peer::PeerKind;
use whit_bench::recording::{Recorder, RecorderKind};
use whit_bench::report::{Comparison, Options, compare};
use whit_bench::size::ByteSize;

/// Where `make -C bench/workloads` puts the program that is recorded.
const DEFAULT_WORKLOAD: &str = "target/workloads/deep";

/// Compare whit with its peers
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Compare `whit report` with `perf report`, `perf script` and `samply import`
    Report(ReportArgs),
}

#[derive(Args, Debug)]
struct ReportArgs {
    /// Sizes of the recordings to make: K, M, G, separated by commas [default: 50M,500M,2G,
    /// or none with --file]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Option<Vec<ByteSize>>,

    /// A recording to compare on, as it is; may be repeated
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Peers to compare, separated by commas
    #[arg(long, value_name = "PEERS", value_delimiter = ',', default_values_t = PeerKind::ALL)]
    peers: Vec<PeerKind>,

    /// Runs of each peer on each recording
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds after which a run is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,

    /// Program to record; it takes --seconds S
    #[arg(long, value_name = "PROGRAM", default_value = DEFAULT_WORKLOAD)]
    workload: PathBuf,

    /// Directory in which recordings are kept [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Who makes the recordings
    #[arg(long, value_name = "perf|whit", default_value = "perf", value_parser = recorder_kind)]
    recorder: RecorderKind,

    /// Event to record [default: the recorder's]
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    /// Another whit to compare [default: this one]
    #[arg(long, value_name = "PROGRAM")]
    whit: Option<PathBuf>,

    /// Write every run, as JSON, to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Append the result to this Markdown file
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs the command; the exit code is 1 where whit itself did not get through.
pub(crate) fn run(args: BenchArgs) -> Result<i32> {
    let What::Report(args) = args.what;
    let options = options(&args)?;
    let comparison = compare(&options, &mut |text| eprintln!("{text}"))?;
    let text = whit_bench::render::markdown(&comparison);
    print!("{text}");
    if let Some(path) = &args.markdown {
        append(path, &text)?;
    }
    if let Some(path) = &args.json {
        write_json(path, &comparison)?;
    }
    Ok(if comparison.whit_succeeded() { 0 } else { 1 })
}

fn options(args: &ReportArgs) -> Result<Options> {
    let whit = match &args.whit {
        Some(path) => path.clone(),
        None => std::env::current_exe().context("cannot find this program's own file")?,
    };
    let sizes = match &args.sizes {
        Some(sizes) => sizes.clone(),
        None if args.files.is_empty() => {
            vec![ByteSize(50 << 20), ByteSize(500 << 20), ByteSize(2 << 30)]
        }
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
        cache: args.cache.clone().map_or_else(default_cache, Ok)?,
        recorder: Recorder { kind: args.recorder, whit, event: args.event.clone() },
        peers: args.peers.clone(),
        rounds: args.rounds as usize,
        limit: Duration::from_secs(args.timeout),
    })
}

fn recorder_kind(text: &str) -> Result<RecorderKind, String> {
    match text {
        "perf" => Ok(RecorderKind::Perf),
        "whit" => Ok(RecorderKind::Whit),
        _ => Err("there are perf and whit".to_owned()),
    }
}

fn default_cache() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.context("there is no home directory to keep recordings in: use --cache")?;
    Ok(cache.join("whit/bench"))
}

fn append(path: &Path, text: &str) -> Result<()> {
    let open = || OpenOptions::new().append(true).create(true).open(path);
    let write = || open()?.write_all(format!("\n{text}").as_bytes());
    write().with_context(|| format!("cannot append to {}", path.display()))
}

fn write_json(path: &Path, comparison: &Comparison) -> Result<()> {
    let json = serde_json::to_string_pretty(comparison).context("cannot form the JSON")?;
    std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))
}
