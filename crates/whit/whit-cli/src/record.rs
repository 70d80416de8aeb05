//! `whit record`.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod all_events;
mod embed;
mod events;
mod names;
mod off_cpu;
mod one_frame;
mod options;
mod overhead;
mod parse;

pub(crate) use parse::overhead as parse_overhead;

use crate::event_args::EventArgs;
use crate::event_tables::EventTableArgs;
use crate::heading;
use crate::message;
use crate::output;
use crate::own_names::Extent;
use crate::target_args::TargetArgs;
use crate::unsupported_options::{Unsupported, UnsupportedArgs};
use all_events::AllEventsArgs;
use anyhow::{Context, Result};
use embed::Embedded;
use names::NameArgs;
use one_frame::FirstChains;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use whit_capture::affinity::{Affinity, ThreadSpec};
use whit_capture::branch::BranchFilter;
use whit_capture::notice::{Listener, Notice};
use whit_capture::options::{Engine, RingSize, Start, SwitchOutput};
use whit_capture::registers;
use whit_capture::session::{self, Outcome};
use whit_host::control::ControlSpec;
use whit_host::level::Level;
use whit_host::roots::Roots;
use whit_sys::clock::ClockId;
use whit_types::Arch;

/// Shells add this to the number of a signal that ended a program.
const SIGNAL_BASE: u8 = 128;

/// An example for each group of options.
const EXAMPLES: &str = "\
Examples:
  Events                  whit record -e cycles:u,page-faults -F 999 -- ./bench
  Target                  whit record --container 3f1c8a0d9be2 -- sleep 10
  Call chains             whit record --call-graph dwarf -- ./server
  Contents of samples     whit record -d --phys-data -p 1234
  Switches and sideband   whit record --engine=bpf --wakeups -- ./server
  Time and control        whit record -D 1000 --control fifo:ctl -p 1234
  Rings and readers       whit record -a --threads --aio -z -- ./bench
  Output                  whit record -a --switch-output=1G --switch-max-files 5
  General                 whit record --measure-overhead -- ./bench";

/// Arguments of `whit record`: perf's names and meanings.
#[derive(clap::Args, Debug)]
// The last one of repeated options counts: people add options to those of a shell alias.
#[command(args_override_self = true, after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct RecordArgs {
    #[command(flatten, next_help_heading = heading::EVENTS)]
    events: EventArgs,
    #[command(flatten, next_help_heading = heading::EVENTS)]
    tables: EventTableArgs,
    /// Skip events that this machine does not have, name each of them, and record the rest
    #[arg(long, help_heading = heading::EVENTS)]
    skip_unsupported: bool,
    /// All events in one group
    #[arg(long, hide = true)]
    group: bool,
    /// Take N samples a second [default: 4000]; 'max' for the highest rate that the kernel allows
    ///
    #[arg(short = 'F', long, visible_alias = "frequency", value_name = "HZ",
          value_parser = parse::frequency, help_heading = heading::EVENTS)]
    freq: Option<parse::Frequency>,
    /// Sample every N events
    #[arg(short, long, value_name = "N", value_parser = parse::count, help_heading = heading::EVENTS)]
    count: Option<u64>,
    /// Fail if the frequency is above the kernel's limit, instead of lowering it
    #[arg(long, help_heading = heading::EVENTS)]
    strict_freq: bool,
    /// Keep the time between samples of cpu-clock and task-clock fixed, instead of drawing it anew all
    /// the time; fixed times may keep step with the recorded program
    #[arg(long, help_heading = heading::EVENTS)]
    fixed_periods: bool,
    #[command(flatten, next_help_heading = heading::TARGET)]
    target: TargetArgs,
    /// Record the running processes of this user (name or number)
    #[arg(short, long, value_name = "USER", help_heading = heading::TARGET)]
    uid: Option<String>,
    #[command(flatten, next_help_heading = heading::TARGET)]
    names: NameArgs,
    /// Use one ring for each thread instead of one for each CPU; do not record children
    #[arg(long, help_heading = heading::TARGET)]
    per_thread: bool,
    /// Do not record child processes and threads
    #[arg(short = 'i', long, help_heading = heading::TARGET)]
    no_inherit: bool,
    /// Record call chains, also with options that the BPF engine does not take: from dumps of stacks then (with
    /// --engine=ring: by frame pointers)
    #[arg(short, help_heading = heading::CHAINS)]
    g: bool,
    /// Record call chains by this method: fp[,FRAMES][,defer] (frame pointers; with defer the kernel
    /// reads the user's stack at the return to user mode), dwarf[,BYTES] (stack dumps), or lbr (the
    /// CPU's branch records)
    #[arg(long, value_name = "MODE", value_parser = parse::call_graph, help_heading = heading::CHAINS)]
    call_graph: Option<parse::CallChains>,
    /// Choose what takes call chains: ring (the kernel's own ways), bpf (unwinds in the kernel without
    /// frame pointers), or auto (bpf where the kernel allows it, otherwise stack dumps) [default: auto; with
    /// --call-graph, and for tracepoints without -g: ring]
    #[arg(long, value_name = "ENGINE", value_parser = parse::engine, help_heading = heading::CHAINS)]
    engine: Option<Engine>,
    /// Record only the kernel part of call chains
    #[arg(long, help_heading = heading::CHAINS)]
    kernel_callchains: bool,
    /// Record only the user part of call chains
    #[arg(long, help_heading = heading::CHAINS)]
    user_callchains: bool,
    /// Record the latest branches that the CPU took
    #[arg(short, long, help_heading = heading::CHAINS)]
    branch_any: bool,
    /// Record branches of these kinds: any, any_call, any_ret, ind_call, cond, call, stack, ..; in
    /// these modes: u, k, hv
    #[arg(short = 'j', long, value_name = "KIND,..", help_heading = heading::CHAINS)]
    branch_filter: Option<BranchFilter>,
    /// Record user-mode registers; '?' lists the names
    #[arg(long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "", help_heading = heading::SAMPLES)]
    user_regs: Option<String>,
    /// Record the registers at the interrupt; '?' lists the names
    #[arg(short = 'I', long, value_name = "NAME,..", num_args = 0..=1, require_equals = true,
          default_missing_value = "", help_heading = heading::SAMPLES)]
    intr_regs: Option<String>,
    /// Record the data address of each sample, and mappings of data
    #[arg(short, long, help_heading = heading::SAMPLES)]
    data: bool,
    /// Record physical data addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    phys_data: bool,
    /// Record the page sizes of data addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    data_page_size: bool,
    /// Record the page sizes of code addresses
    #[arg(long, help_heading = heading::SAMPLES)]
    code_page_size: bool,
    /// Record the weight (the latency of a memory access)
    #[arg(short = 'W', long, help_heading = heading::SAMPLES)]
    weight: bool,
    /// Record the flags of hardware transactions
    #[arg(long, help_heading = heading::SAMPLES)]
    transaction: bool,
    /// Record time stamps (always on)
    #[arg(short = 'T', long, help_heading = heading::SAMPLES)]
    timestamp: bool,
    /// Record the period in each sample
    #[arg(short = 'P', long, help_heading = heading::SAMPLES)]
    period: bool,
    /// Record the CPU in each sample
    #[arg(long, help_heading = heading::SAMPLES)]
    sample_cpu: bool,
    /// Record the event's id at the start of each sample
    #[arg(long, help_heading = heading::SAMPLES)]
    sample_identifier: bool,
    /// Record the counts of each thread when it ends
    #[arg(short, long, help_heading = heading::SIDEBAND)]
    stat: bool,
    /// Record counts and sideband, but no samples
    #[arg(short = 'n', long, help_heading = heading::SIDEBAND)]
    no_samples: bool,
    /// Record how long groups with the modifier :S were enabled and running
    #[arg(long, help_heading = heading::SIDEBAND)]
    running_time: bool,
    /// Record the times of the first and the last sample in the header (always on)
    #[arg(long, help_heading = heading::SAMPLES)]
    timestamp_boundary: bool,
    /// Record the raw data of tracepoints
    #[arg(short = 'R', long, help_heading = heading::SAMPLES)]
    raw_samples: bool,
    /// Record context switches, for `whit switches` and `whit report --latency` (perf: --latency)
    #[arg(long, alias = "latency", help_heading = heading::SIDEBAND)]
    switch_events: bool,
    /// Write context switches as perf does, not packed; `whit export --perf` unpacks a recording later
    #[arg(long, help_heading = heading::SIDEBAND)]
    no_pack: bool,
    /// Write waits as samples of 'offcpu-time' when recording ends: for perf, and beside the samples of
    /// CPU time. Takes the BPF engine
    #[arg(long, help_heading = heading::SIDEBAND)]
    off_cpu: bool,
    /// Write a sample for each wait of at least so many milliseconds, and one for all shorter waits of a
    /// thread at a call chain [default: 500]
    #[arg(long, value_name = "MS", requires = "off_cpu", help_heading = heading::SIDEBAND)]
    off_cpu_thresh: Option<u32>,
    /// Sample waits, one for every N nanoseconds that a thread is off its CPU: in proportion to their
    /// durations, without a record of every switch. Takes the BPF engine and Linux 6.15
    #[arg(long, value_name = "NS", value_parser = parse::off_cpu_period, conflicts_with = "off_cpu",
          help_heading = heading::SIDEBAND)]
    off_cpu_period: Option<u64>,
    /// Record context switches and wake-ups: which thread ended which wait, with its call chain
    #[arg(long, help_heading = heading::SIDEBAND)]
    wakeups: bool,
    /// Record cgroups, and the cgroup of each sample (the default with -a and -C)
    #[arg(long, overrides_with = "no_all_cgroups", help_heading = heading::SIDEBAND)]
    all_cgroups: bool,
    /// Do not record cgroups
    #[arg(long, help_heading = heading::SIDEBAND)]
    no_all_cgroups: bool,
    /// Record namespaces
    #[arg(long, help_heading = heading::SIDEBAND)]
    namespaces: bool,
    #[command(flatten)]
    all_events: AllEventsArgs,
    /// Start measuring N milliseconds after the command; -1: only when the control channel says so;
    /// 10-20,30-40: only in these ranges
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true,
          value_parser = parse::delay, help_heading = heading::TIME)]
    delay: Option<Start>,
    /// Read commands from a channel: fd:CTL[,ACK] or fifo:CTL[,ACK]. Commands: enable [EVENT], disable
    /// [EVENT], evlist [-v|-g|-F], snapshot, drain [N], stop, ping
    #[arg(long, value_name = "CHANNEL", help_heading = heading::TIME)]
    control: Option<ControlSpec>,
    /// Clock of the time stamps: monotonic_raw, monotonic, realtime, boottime, tai
    #[arg(short = 'k', long, value_name = "CLOCK", value_parser = parse::clock, help_heading = heading::TIME)]
    clockid: Option<ClockId>,
    /// Size of each ring: pages, or bytes with the suffix B, K, M or G
    #[arg(short, long, value_name = "SIZE", value_parser = parse::ring_size, help_heading = heading::RINGS)]
    mmap_pages: Option<RingSize>,
    /// Overwrite the oldest samples; write out the newest at the end and at each SIGUSR2
    #[arg(long, help_heading = heading::RINGS)]
    overwrite: bool,
    /// Read each sample from its ring as soon as it arrives
    #[arg(long, help_heading = heading::RINGS)]
    no_buffering: bool,
    /// Run the reader threads as SCHED_FIFO with this priority
    #[arg(short, long, value_name = "PRIORITY", value_parser = parse::realtime, help_heading = heading::RINGS)]
    realtime: Option<i32>,
    /// Write asynchronously, with up to N blocks in flight for each ring (1 to 4)
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse::async_blocks, help_heading = heading::RINGS)]
    aio: Option<usize>,
    /// Bind the reader threads to the CPU of their ring (cpu), to its NUMA node (node), or not at all
    /// (sys)
    #[arg(long, value_name = "sys|node|cpu", value_parser = parse::affinity, help_heading = heading::RINGS)]
    affinity: Option<Affinity>,
    /// Compress the recording with zstd at this level (1 to 22) [default: 1]
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = parse::compression_level, help_heading = heading::RINGS)]
    compression_level: Option<parse::CompressionLevel>,
    /// Minimum bytes to read from a ring at a time; suffix B, K, M or G
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes, help_heading = heading::RINGS)]
    mmap_flush: Option<usize>,
    /// Run several reader threads, each with its own file: one for each cpu, core, package or numa
    /// node, or as CPUS/AFFINITY[:..] says
    #[arg(long, value_name = "SPEC", num_args = 0..=1, require_equals = true,
          default_missing_value = "cpu", help_heading = heading::RINGS)]
    threads: Option<ThreadSpec>,
    /// Record into a directory, even with one reader thread
    #[arg(long, help_heading = heading::OUTPUT)]
    dir: bool,
    /// Record into this directory (-o and --dir in one)
    #[arg(long, value_name = "DIR", conflicts_with = "output", help_heading = heading::OUTPUT)]
    output_dir: Option<PathBuf>,
    /// Record less while the recording would cost more than PERCENT of the recorded CPUs: fewer samples first, then
    /// fewer context switches, then nothing for a while. Samples keep their weights, and reports name each reduction
    #[arg(long, value_name = "PERCENT", value_parser = parse::overhead, help_heading = heading::GENERAL)]
    max_overhead: Option<u32>,
    /// Run the command N times without and N times with recording, and print the cost of recording
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
          default_missing_value = overhead::DEFAULT_PAIRS, value_parser = overhead::parse_pairs, help_heading = heading::GENERAL)]
    measure_overhead: Option<usize>,
    /// Continue in a new file: at each SIGUSR2 (signal), at this size (suffix B, K, M or G), or after
    /// this time (suffix s, m, h or d)
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "signal", value_parser = parse::switch_output, help_heading = heading::OUTPUT)]
    switch_output: Option<SwitchOutput>,
    /// Keep only the newest N files
    #[arg(long, value_name = "N", requires = "switch_output", value_parser = parse::max_files, help_heading = heading::OUTPUT)]
    switch_max_files: Option<usize>,
    /// Append the time to the name of the output
    #[arg(long, help_heading = heading::OUTPUT)]
    timestamp_filename: bool,
    /// End the recording at this size
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes, help_heading = heading::OUTPUT)]
    max_size: Option<usize>,
    /// Record the state before the recording began: no, or a list of task, mmap, cgroup; or all
    #[arg(long, value_name = "WHAT,..", value_parser = parse::synthesis, help_heading = heading::SIDEBAND)]
    synth: Option<parse::Synthesized>,
    /// Record that state at the end of the recording, as it is then
    #[arg(long, help_heading = heading::SIDEBAND)]
    tail_synthesize: bool,
    /// Read that state with N threads
    #[arg(long, value_name = "N", value_parser = parse::positive, help_heading = heading::SIDEBAND)]
    num_thread_synthesize: Option<usize>,
    /// Spend at most this time on the mappings of one process, in milliseconds [default: 10000]
    #[arg(long, value_name = "MS", help_heading = heading::SIDEBAND)]
    proc_map_timeout: Option<u64>,
    /// Check the command line, and exit
    #[arg(long, help_heading = heading::GENERAL)]
    dry_run: bool,
    /// Do not copy binaries to ~/.debug, which keeps their names when they have changed
    #[arg(short = 'N', long, help_heading = heading::OUTPUT)]
    no_buildid_cache: bool,
    /// Remove the copies that were not used for the longest time when all have more bytes [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = parse::bytes, help_heading = heading::OUTPUT)]
    buildid_cache_size: Option<usize>,
    /// When recording has ended, write the names of sampled functions and lines into the recording, which
    /// reads the same without the binaries: of the sampled addresses (hot), or with the code of the functions
    /// (all). Stack dumps become call chains
    #[arg(long, value_name = "hot|all", num_args = 0..=1, require_equals = true,
          default_missing_value = "hot", hide_possible_values = true, conflicts_with = "switch_output",
          help_heading = heading::OUTPUT)]
    embed_symbols: Option<Extent>,
    /// When recording ends, have the recorded Java virtual machines (JDK 17) that still run write the names of
    /// their functions, as jcmd PID Compiler.perfmap does
    #[arg(long, conflicts_with = "no_buildid", help_heading = heading::OUTPUT)]
    perf_map: bool,
    /// Do not record build ids
    #[arg(short = 'B', long, help_heading = heading::OUTPUT)]
    no_buildid: bool,
    /// Let the kernel record the build ids of mappings; this disturbs other recorders that run at the
    /// same time
    #[arg(long, help_heading = heading::OUTPUT)]
    buildid_mmap: bool,
    /// Do not record BPF programs
    #[arg(long, help_heading = heading::SIDEBAND)]
    no_bpf_event: bool,
    /// Output file; '-' is standard output, in the format for pipes [default: perf.data]
    #[arg(short, long, value_name = "FILE", help_heading = heading::OUTPUT)]
    output: Option<PathBuf>,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfRecord>,
    /// Print more messages; may be repeated
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = heading::GENERAL)]
    verbose: u8,
    /// Print only errors
    #[arg(short, long, help_heading = heading::GENERAL)]
    quiet: bool,
    /// Command to record; the options after its name belong to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND", help_heading = heading::TARGET)]
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
    // Unwind tables are made from buffers of many megabytes.
    whit_sys::memory::return_large_buffers();
    if let Some(pairs) = args.measure_overhead {
        return overhead::measure(&args.command, pairs, args.quiet);
    }
    let mut listener = Notices(args);
    let roots = Roots::default();
    let options = args.options(&roots, &mut listener)?;
    if args.dry_run {
        return Ok(0);
    }
    let outcome = session::record(&options, &roots, &mut listener)?;
    let waits = args.off_cpu.then(|| off_cpu::append(&options.output, args.off_cpu_threshold()));
    let waits = waits.transpose()?;
    let names = args.embed_symbols.map(|extent| embed::embed(&outcome, extent));
    if !args.quiet {
        message::answer(&outcome.summary);
        // With these options the output has another name, or is one of several.
        let has_its_name = args.switch_output.is_none() && !args.timestamp_filename;
        if has_its_name && outcome.stacks.is_none() {
            FirstChains::cut(&options.output).iter().for_each(message::warning);
        }
        outcome.stacks.iter().for_each(message::answer);
        waits.iter().for_each(message::answer);
        if let Some(Embedded::Written(names)) = &names {
            message::answer(names);
        }
        if args.verbose > 0 {
            outcome.stacks.iter().for_each(|stacks| message::answer(stacks.details()));
        }
    }
    Ok(match names {
        Some(Embedded::Stopped(signal)) => SIGNAL_BASE + signal.number() as u8,
        _ => exit_code(&outcome),
    })
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

/// Prints notices as the options ask.
struct Notices<'a>(&'a RecordArgs);

impl Listener for Notices<'_> {
    fn notice(&mut self, notice: Notice) {
        self.0.print(&notice);
    }

    fn when_set_up_is_slow(&mut self) -> Box<dyn FnOnce() + Send> {
        let is_shown = !self.0.quiet && io::stderr().is_terminal();
        Box::new(move || {
            if is_shown {
                message::answer("preparing; Ctrl-C ends it");
            }
        })
    }
}

impl RecordArgs {
    fn print(&self, notice: &Notice) {
        // On a terminal there is someone to press the keys.
        let has_no_reader = matches!(notice, Notice::Recording) && !io::stderr().is_terminal();
        match notice.level() {
            _ if has_no_reader => {}
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
