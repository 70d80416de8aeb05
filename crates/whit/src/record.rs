//! `whit record`.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod events;
mod options;
mod overhead;
mod parse;

use crate::event_args::EventArgs;
use crate::event_tables::EventTableArgs;
use crate::message;
use crate::output;
use crate::target_args::TargetArgs;
use crate::unsupported_options::{Unsupported, UnsupportedArgs};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::path::PathBuf;
use whit_capture::affinity::{Affinity, ThreadSpec};
use whit_capture::branch::BranchFilter;
use whit_capture::control::ControlSpec;
use whit_capture::notice::{Level, Notice};
use whit_capture::options::{Engine, RingSize, Start, SwitchOutput};
use whit_capture::registers;
use whit_capture::roots::Roots;
use whit_capture::session::{self, Outcome};
use whit_sys::clock::ClockId;
use whit_types::Arch;

/// Arguments of `whit record`: perf's names and meanings.
#[derive(clap::Args, Debug)]
// The last one counts: people add options to what a shell alias already gives.
#[command(args_override_self = true)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    tables: EventTableArgs,
    /// Leave out events that this machine does not have, naming them, and record the rest
    #[arg(long)]
    skip_unsupported: bool,
    /// All events in one group
    #[arg(long, hide = true)]
    group: bool,
    /// Samples a second, or 'max' (default: 4000)
    #[arg(short = 'F', long, visible_alias = "frequency", value_name = "HZ",
          value_parser = parse::frequency)]
    freq: Option<parse::Frequency>,
    /// One sample in so many events
    #[arg(short, long, value_name = "N", value_parser = parse::count)]
    count: Option<u64>,
    /// Refuse a frequency that is above the kernel's limit instead of lowering it
    #[arg(long)]
    strict_freq: bool,
    #[command(flatten)]
    target: TargetArgs,
    /// Processes of this user that run now: name or number
    #[arg(short, long, value_name = "USER")]
    uid: Option<String>,
    /// One ring per thread instead of one per CPU; children are not recorded
    #[arg(long)]
    per_thread: bool,
    /// Leave out children of what is recorded
    #[arg(short = 'i', long)]
    no_inherit: bool,
    /// Record call chains: by frame pointers with --engine=ring
    #[arg(short)]
    g: bool,
    /// Record call chains: fp[,FRAMES], dwarf[,BYTES of stack], or lbr (the CPU's branch records)
    #[arg(long, value_name = "MODE", value_parser = parse::call_graph)]
    call_graph: Option<parse::CallChains>,
    /// Who makes call chains: ring (perf's ways), bpf (unwound in the kernel, without frame
    /// pointers), or auto (bpf where the kernel allows it, else dumps of stacks)
    #[arg(long, value_name = "ENGINE", value_parser = parse::engine)]
    engine: Option<Engine>,
    /// Only the kernel's part of call chains
    #[arg(long)]
    kernel_callchains: bool,
    /// Only user mode's part of call chains
    #[arg(long)]
    user_callchains: bool,
    /// Record the branches that the CPU has taken
    #[arg(short, long)]
    branch_any: bool,
    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, call, stack, ..; in
    /// these modes: u, k, hv
    #[arg(short = 'j', long, value_name = "KIND,..")]
    branch_filter: Option<BranchFilter>,
    /// Registers of user mode; '?' lists them
    #[arg(long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    user_regs: Option<String>,
    /// Registers at the interrupt; '?' lists them
    #[arg(short = 'I', long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "")]
    intr_regs: Option<String>,
    /// Record addresses of data, and mappings of data
    #[arg(short, long)]
    data: bool,
    /// Record physical addresses of data
    #[arg(long)]
    phys_data: bool,
    /// Record page sizes of data addresses
    #[arg(long)]
    data_page_size: bool,
    /// Record page sizes of code addresses
    #[arg(long)]
    code_page_size: bool,
    /// Record weights: latencies of memory accesses
    #[arg(short = 'W', long)]
    weight: bool,
    /// Record flags of transactions
    #[arg(long)]
    transaction: bool,
    /// Record time stamps (always done)
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// Record the period in every sample
    #[arg(short = 'P', long)]
    period: bool,
    /// Record the CPU in every sample
    #[arg(long)]
    sample_cpu: bool,
    /// Record the event's id at the start of every sample
    #[arg(long)]
    sample_identifier: bool,
    /// Record the counts of each thread, when it ends
    #[arg(short, long)]
    stat: bool,
    /// Record no samples, only counts and what processes do
    #[arg(short = 'n', long)]
    no_samples: bool,
    /// Record how long groups that are read (:S) were enabled and running
    #[arg(long)]
    running_time: bool,
    /// Record times of the first and last sample in the header (always done)
    #[arg(long)]
    timestamp_boundary: bool,
    /// Record raw bytes of events that have them
    #[arg(short = 'R', long)]
    raw_samples: bool,
    /// Record context switches
    #[arg(long)]
    switch_events: bool,
    /// Have the BPF engine write switches as perf does, for stock perf to read; otherwise they are packed,
    /// and `whit export --perf` writes them so
    #[arg(long)]
    no_pack: bool,
    /// Record wake-ups as well as context switches: who ended which wait, at which call stack
    #[arg(long)]
    wakeups: bool,
    /// Record cgroups, and that of every sample
    #[arg(long)]
    all_cgroups: bool,
    /// Record namespaces
    #[arg(long)]
    namespaces: bool,
    /// Only user mode, for all events
    #[arg(long, conflicts_with = "all_kernel")]
    all_user: bool,
    /// Only the kernel, for all events
    #[arg(long)]
    all_kernel: bool,
    /// Start measuring so many milliseconds after the program; -1: not before it is asked for;
    /// 10-20,30-40: only within these times
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true,
          value_parser = parse::delay)]
    delay: Option<Start>,
    /// Take commands: fd:CTL[,ACK] or fifo:CTL[,ACK]; there are enable [EVENT], disable [EVENT],
    /// evlist [-v|-g|-F], snapshot, stop and ping
    #[arg(long, value_name = "CHANNEL")]
    control: Option<ControlSpec>,
    /// Clock of the time stamps: monotonic_raw, monotonic, realtime, boottime, tai
    #[arg(short = 'k', long, value_name = "CLOCK", value_parser = parse::clock)]
    clockid: Option<ClockId>,
    /// Size of each ring: pages, or bytes with B, K, M or G
    #[arg(short, long, value_name = "SIZE", value_parser = parse::ring_size)]
    mmap_pages: Option<RingSize>,
    /// Overwrite the oldest samples; take the newest at the end, and at each SIGUSR2
    #[arg(long)]
    overwrite: bool,
    /// Take samples out of the rings one by one
    #[arg(long)]
    no_buffering: bool,
    /// Run the readers as SCHED_FIFO with this priority
    #[arg(short, long, value_name = "PRIORITY", value_parser = parse::realtime)]
    realtime: Option<i32>,
    /// Write while the rings are drained on: blocks per ring that may be under way (1 to 4)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse::async_blocks)]
    aio: Option<usize>,
    /// Where readers run: on the ring's cpu or NUMA node, or anywhere (sys)
    #[arg(long, value_name = "sys|node|cpu", value_parser = parse::affinity)]
    affinity: Option<Affinity>,
    /// Compress with zstd, at a level from 1 to 22 (default: 1)
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse::compression_level)]
    compression_level: Option<parse::CompressionLevel>,
    /// Least that is taken from a ring at once: bytes, or with B, K, M or G
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes)]
    mmap_flush: Option<usize>,
    /// Several readers, each with its own file: one per cpu, core, package or numa node, or as
    /// CPUS/AFFINITY[:..] says
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true,
          default_missing_value = "cpu")]
    threads: Option<ThreadSpec>,
    /// Record into a directory even with one reader
    #[arg(long)]
    dir: bool,
    /// Record into this directory: -o and --dir in one
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    output_dir: Option<PathBuf>,
    /// Run the command without and with recording, in N pairs, and print what recording costs
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = overhead::DEFAULT_PAIRS, value_parser = overhead::parse_pairs)]
    measure_overhead: Option<usize>,
    /// Go on in a new file at each SIGUSR2 (signal), or when a file has this size (BKMG), or each
    /// time (smhd)
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "signal", value_parser = parse::switch_output)]
    switch_output: Option<SwitchOutput>,
    /// Keep only so many files, the newest
    #[arg(long, value_name = "N", requires = "switch_output", value_parser = parse::max_files)]
    switch_max_files: Option<usize>,
    /// Add the time to the name of the output
    #[arg(long)]
    timestamp_filename: bool,
    /// End the recording when it has this size
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes)]
    max_size: Option<usize>,
    /// What existed before: no, or task, mmap, cgroup, all
    #[arg(long, value_name = "WHAT,..", value_parser = parse::synthesis)]
    synth: Option<parse::Synthesized>,
    /// Record what existed before at the end, as it is then
    #[arg(long)]
    tail_synthesize: bool,
    /// Threads that read what existed before
    #[arg(long, value_name = "N", value_parser = parse::positive)]
    num_thread_synthesize: Option<usize>,
    /// Most time for reading the mappings of one process, in milliseconds (default: 10000)
    #[arg(long, value_name = "MS")]
    proc_map_timeout: Option<u64>,
    /// Check the command line and end
    #[arg(long)]
    dry_run: bool,
    /// Do not copy binaries to ~/.debug that nobody will be able to open by their paths
    #[arg(short = 'N', long)]
    no_buildid_cache: bool,
    /// Leave build ids out
    #[arg(short = 'B', long)]
    no_buildid: bool,
    /// Let the kernel record build ids of mappings; disturbs other recorders that run meanwhile
    #[arg(long)]
    buildid_mmap: bool,
    /// Leave BPF programs out
    #[arg(long)]
    no_bpf_event: bool,
    /// Output; '-' is standard output, in the format for pipes (default: perf.data)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfRecord>,
    /// Say more; may be given several times
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// The command to record; options after its name are its own
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Options of `perf record` that whit does not have.
#[derive(Clone, Debug)]
pub(crate) struct OfRecord;

impl Unsupported for OfRecord {
    const SUBCOMMAND: &'static str = "record";
    const OPTIONS: &'static [(&'static str, Option<char>, &'static str)] = &[
        (
            "snapshot",
            Some('S'),
            "the AUX area (Intel PT, CoreSight) is not recorded; snapshots of samples are taken with --overwrite",
        ),
        ("aux-sample", None, "the AUX area (Intel PT, CoreSight) is not recorded"),
        (
            "switch-output-event",
            None,
            "let the program that sees the event send SIGUSR2, or 'snapshot' through --control",
        ),
        (
            "kcore",
            None,
            "whit looks kernel code up in /proc/kallsyms and in vmlinux files, and needs no copy of /proc/kcore",
        ),
        (
            "off-cpu",
            None,
            "record context switches instead: --switch-events, or -e sched:sched_switch with -g",
        ),
        ("buildid-all", None, "--buildid-mmap records the build id of every binary that is mapped"),
        ("clang-path", None, "BPF sources are no events here"),
        ("clang-opt", None, "BPF sources are no events here"),
        (
            "vmlinux",
            None,
            "BPF sources are no events here; 'whit report' finds debug information of the kernel by its build id",
        ),
        (
            "debuginfod",
            None,
            "nothing is copied while recording; 'whit report' looks for debug information",
        ),
    ];
}

/// Records; gives the exit code.
pub(crate) fn run(args: &RecordArgs) -> Result<u8> {
    if args.lists_registers() {
        return list_registers();
    }
    if let Some(pairs) = args.measure_overhead {
        return overhead::measure(&args.command, pairs, args.quiet);
    }
    let mut listener = |notice: Notice| args.print(&notice);
    let roots = Roots::default();
    let options = args.options(&roots, &mut listener)?;
    if args.dry_run {
        return Ok(0);
    }
    let outcome = session::record(&options, &roots, &mut listener)?;
    if !args.quiet {
        message::answer(&outcome.summary);
        outcome.stacks.iter().for_each(message::answer);
        if args.verbose > 0 {
            outcome.stacks.iter().for_each(|stacks| message::answer(stacks.details()));
        }
    }
    Ok(exit_code(&outcome))
}

fn exit_code(outcome: &Outcome) -> u8 {
    u8::try_from(outcome.exit_code()).unwrap_or(u8::MAX)
}

fn list_registers() -> Result<u8> {
    output::line(format_args!("available registers: {}", registers::list(arch()?).join(" ")))?;
    Ok(0)
}

fn arch() -> Result<Arch> {
    Arch::native().context("registers of this architecture cannot be sampled")
}

impl RecordArgs {
    fn print(&self, notice: &Notice) {
        match notice.level() {
            Level::Verbose if self.verbose == 0 || self.quiet => {}
            Level::Warning if self.quiet => {}
            Level::Answer if self.quiet => {}
            level => message::of_level(level, notice),
        }
    }

    /// The command to record, with its arguments.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    fn lists_registers(&self) -> bool {
        [&self.user_regs, &self.intr_regs].into_iter().any(|regs| regs.as_deref() == Some("?"))
    }
}
