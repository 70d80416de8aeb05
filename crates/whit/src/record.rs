//! `whit record`.

mod overhead;
mod parse;
mod target;

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use whit_capture::affinity::{Affinity, ThreadSpec};
use whit_capture::event::{EventSpec, Rate, from_groups};
use whit_capture::notice::{Level, Notice};
use whit_capture::options::{CallGraph, Output, RecordOptions, RingSize, Start, Streaming};
use whit_capture::registers;
use whit_capture::roots::Roots;
use whit_capture::session::{self, Outcome};
use whit_events::{PmuTable, SYSFS_PMUS, TracefsIds};
use whit_sys::clock::ClockId;
use whit_types::Arch;

/// What is recorded without `-e`.
const DEFAULT_EVENTS: &str = "cycles:P";
/// Where the recording goes without `-o`.
const DEFAULT_OUTPUT: &str = "perf.data";

/// Arguments of `whit record`: perf's names and meanings.
#[derive(clap::Args, Debug)]
// The last one counts: people add options to what a shell alias already gives.
#[command(args_override_self = true)]
#[allow(clippy::struct_excessive_bools)]
pub(crate) struct RecordArgs {
    /// Events to record: names, `cpu/event=0x3c/`, `sched:sched_switch`, {groups}; may be given several times
    #[arg(short, long, value_name = "EVENT,..")]
    event: Vec<String>,
    /// Samples a second, or 'max' (default: 4000)
    #[arg(short = 'F', long, value_name = "HZ", value_parser = parse::frequency)]
    freq: Option<parse::Frequency>,
    /// One sample in so many events
    #[arg(short, long, value_name = "N", value_parser = parse::count)]
    count: Option<u64>,
    /// Refuse a frequency that is above the kernel's limit instead of lowering it
    #[arg(long)]
    strict_freq: bool,
    /// Everything, on all CPUs
    #[arg(short, long)]
    all_cpus: bool,
    /// Everything, on these CPUs
    #[arg(short = 'C', long, value_name = "LIST")]
    cpu: Option<String>,
    /// Running processes
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',')]
    pid: Vec<i32>,
    /// Running threads
    #[arg(short, long, value_name = "TID,..", value_delimiter = ',')]
    tid: Vec<i32>,
    /// One ring per thread instead of one per CPU; children are not recorded
    #[arg(long)]
    per_thread: bool,
    /// Leave out children of what is recorded
    #[arg(short = 'i', long)]
    no_inherit: bool,
    /// Record call chains by frame pointers
    #[arg(short)]
    g: bool,
    /// Record call chains: fp, or dwarf[,BYTES of stack]
    #[arg(long, value_name = "MODE", value_parser = parse::call_graph)]
    call_graph: Option<CallGraph>,
    /// Only the kernel's part of call chains
    #[arg(long)]
    kernel_callchains: bool,
    /// Only user mode's part of call chains
    #[arg(long)]
    user_callchains: bool,
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
    /// Record time stamps (always done)
    #[arg(short = 'T', long)]
    timestamp: bool,
    /// Record the period in every sample
    #[arg(short = 'P', long)]
    period: bool,
    /// Record the CPU in every sample
    #[arg(long)]
    sample_cpu: bool,
    /// Record raw bytes of events that have them
    #[arg(short = 'R', long)]
    raw_samples: bool,
    /// Record context switches
    #[arg(long)]
    switch_events: bool,
    /// Only user mode, for all events
    #[arg(long, conflicts_with = "all_kernel")]
    all_user: bool,
    /// Only the kernel, for all events
    #[arg(long)]
    all_kernel: bool,
    /// Start measuring so many milliseconds after the program; -1: not at all
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true,
          value_parser = parse::delay)]
    delay: Option<Start>,
    /// Clock of the time stamps: monotonic_raw, monotonic, realtime, boottime, tai
    #[arg(short = 'k', long, value_name = "CLOCK", value_parser = parse::clock)]
    clockid: Option<ClockId>,
    /// Size of each ring: pages, or bytes with B, K, M or G
    #[arg(short, long, value_name = "SIZE", value_parser = parse::ring_size)]
    mmap_pages: Option<RingSize>,
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
    /// Do not copy binaries into a cache (whit never does)
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
    let options = args.options(&roots)?;
    let outcome = session::record(&options, &roots, &mut listener)?;
    if !args.quiet {
        eprintln!("{}", outcome.summary);
    }
    Ok(exit_code(&outcome))
}

fn exit_code(outcome: &Outcome) -> u8 {
    u8::try_from(outcome.exit_code()).unwrap_or(u8::MAX)
}

fn list_registers() -> Result<u8> {
    println!("available registers: {}", registers::list(arch()?).join(" "));
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
            Level::Error => eprintln!("whit: {notice}"),
            Level::Warning => eprintln!("whit: warning: {notice}"),
            Level::Verbose => eprintln!("whit: note: {notice}"),
        }
    }

    /// The command to record, with its arguments.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    fn lists_registers(&self) -> bool {
        [&self.user_regs, &self.intr_regs].into_iter().any(|regs| regs.as_deref() == Some("?"))
    }

    fn options(&self, roots: &Roots) -> Result<RecordOptions> {
        if let Some(first) = self.command.first().and_then(|name| name.to_str())
            && first.starts_with('-')
        {
            bail!("unknown option '{first}' (see whit record --help)");
        }
        let (target, overridden) = target::choose(self)?;
        for what in overridden {
            if !self.quiet {
                eprintln!("whit: warning: {what}");
            }
        }
        let output = self.output.as_ref().or(self.output_dir.as_ref());
        let output = output.cloned().unwrap_or_else(|| DEFAULT_OUTPUT.into());
        let output = if output.as_os_str() == "-" { Output::Stdout } else { Output::File(output) };
        Ok(RecordOptions {
            target,
            rate: self.rate(roots)?,
            strict_frequency: self.strict_freq,
            call_graph: self.call_graph.unwrap_or(match self.g {
                true => CallGraph::FramePointer,
                false => CallGraph::None,
            }),
            kernel_callchains_only: self.kernel_callchains,
            user_callchains_only: self.user_callchains,
            user_registers: registers(self.user_regs.as_deref())?,
            interrupt_registers: registers(self.intr_regs.as_deref())?,
            data_addresses: self.data,
            periods: self.period,
            cpus: self.sample_cpu,
            raw: self.raw_samples,
            switch_events: self.switch_events,
            inherit: !self.no_inherit,
            per_thread: self.per_thread,
            start: self.delay.unwrap_or_default(),
            clock: self.clockid,
            ring_size: self.mmap_pages.unwrap_or_default(),
            streaming: self.streaming(),
            build_ids: !self.no_buildid,
            kernel_build_ids: self.buildid_mmap && !self.no_buildid,
            bpf_events: !self.no_bpf_event,
            command_line: command_line(),
            version: format!("whit {}", env!("CARGO_PKG_VERSION")),
            ..RecordOptions::for_command(self.events()?, self.command.clone(), output)
        })
    }

    fn streaming(&self) -> Streaming {
        Streaming {
            async_blocks: self.aio.unwrap_or(0),
            affinity: self.affinity.unwrap_or_default(),
            compression_level: self.compression_level.and_then(|level| level.0),
            flush_bytes: self.mmap_flush.unwrap_or(1),
            threads: self.threads.clone(),
            directory: self.dir || self.output_dir.is_some(),
        }
    }

    fn rate(&self, roots: &Roots) -> Result<Option<Rate>> {
        Ok(match (self.count, self.freq) {
            (Some(count), _) => Some(Rate::Period(count)),
            (None, Some(parse::Frequency::Hz(hz))) => Some(Rate::FrequencyHz(hz)),
            (None, Some(parse::Frequency::Max)) => {
                let hz = whit_capture::configure::max_frequency_hz(roots)
                    .context("cannot read /proc/sys/kernel/perf_event_max_sample_rate")?;
                Some(Rate::FrequencyHz(hz))
            }
            (None, None) => None,
        })
    }

    fn events(&self) -> Result<Vec<EventSpec>> {
        let text = match self.event.is_empty() {
            true => DEFAULT_EVENTS.to_owned(),
            false => self.event.join(","),
        };
        let list = whit_events::parse(&text).with_context(|| format!("bad event list '{text}'"))?;
        let table = PmuTable::from_sysfs(SYSFS_PMUS.as_ref())?;
        let groups = whit_events::resolve(&list, &table, &mut TracefsIds::system())?;
        let mut events = from_groups(&groups)?;
        for event in &mut events {
            event.exclude.user |= self.all_kernel;
            event.exclude.kernel |= self.all_user;
        }
        Ok(events)
    }
}

/// A mask from names; without names, every register.
fn registers(names: Option<&str>) -> Result<u64> {
    match names {
        None => Ok(0),
        Some("") => Ok(registers::all(arch()?)),
        Some(names) => Ok(registers::parse(arch()?, names)?),
    }
}

/// As recordings keep it: the program's full path, then the arguments.
fn command_line() -> Vec<String> {
    let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let arguments = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    program.into_iter().chain(arguments).collect()
}
