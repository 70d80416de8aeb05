//! `whit record`.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod all_events;
mod chains;
mod embed;
mod events;
mod go_code;
mod goroutines;
mod names;
mod off_cpu;
mod one_frame;
mod overhead;
mod parse;
mod probes;
mod rates;
mod requests;
mod run;
mod samples;
mod sideband;

pub(crate) use parse::overhead as parse_overhead;
pub(crate) use run::run;

use crate::event_args::{EventArgs, Skipped};
use crate::event_tables::EventTableArgs;
use crate::failure::bail_usage;
use crate::heading;
use crate::message;
use crate::own_names::Extent;
use crate::perf_cache;
use crate::short_options;
use crate::target_args::TargetArgs;
use crate::unsupported_options::{Unsupported, UnsupportedArgs};
use all_events::AllEventsArgs;
use anyhow::Result;
use chains::ChainArgs;
use names::NameArgs;
use probes::Probes;
use rates::RateArgs;
use requests::RequestSpec;
use samples::SampleArgs;
use sideband::SidebandArgs;
use std::ffi::OsString;
use std::path::PathBuf;
use whit_capture::affinity::{Affinity, ThreadSpec};
use whit_capture::event::EventSpec;
use whit_capture::notice::{Listener, Notice};
use whit_capture::options::{
    CallGraph, Choices, Engine, EventPlan, Files, KEPT_FILES_MAX_BYTES, KeptFilesPlan, LoaderPaths,
    Output, RecordOptions, RingSize, Start, Streaming, SwitchOutput, TrackingPlan,
};
use whit_host::control::ControlSpec;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_sys::clock::ClockId;

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
    /// Record the calls of a function as requests, for `whit requests`, or with BEGIN..END in place of FUNCTION
    /// what lies between two probes of the program. A key may follow: ,key=%di, ,key=+0(%di):string, and of probes
    /// ,key=arg1. NAME=tcp:PORT and NAME=unix:PATH record what a server receives and answers by a socket. Records
    /// context switches and wake-ups too
    #[arg(long, value_name = "NAME=BINARY:FUNCTION", help_heading = heading::EVENTS)]
    request: Vec<RequestSpec>,
    /// Record the waits of the goroutines of a Go program (a command or -p), for `whit goroutines`: reason, call chain,
    /// and the goroutine that ends the wait. Each park and each resumption costs some microseconds
    #[arg(long, help_heading = heading::EVENTS)]
    goroutines: bool,
    /// Skip events that this machine does not have, name each of them, and record the rest
    #[arg(long, help_heading = heading::EVENTS)]
    skip_unsupported: bool,
    /// All events in one group
    #[arg(long, hide = true)]
    group: bool,
    #[command(flatten)]
    rates: RateArgs,
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
    #[command(flatten)]
    chains: ChainArgs,
    #[command(flatten)]
    samples: SampleArgs,
    #[command(flatten)]
    sideband: SidebandArgs,
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

/// Where the recording goes without `-o`.
const DEFAULT_OUTPUT: &str = "perf.data";

/// Where unwind tables are kept; nowhere without a home directory.
fn table_cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("whit/unwind"))
}

/// Where the system looks for commands and libraries.
fn loader_paths() -> LoaderPaths {
    let list = |name| {
        let value = std::env::var_os(name).unwrap_or_default();
        std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
    };
    let mut loader = LoaderPaths {
        commands: list("PATH"),
        libraries: list("LD_LIBRARY_PATH"),
        preloaded: list("LD_PRELOAD"),
    };
    // Names without a directory are looked for as libraries are, which is not worth it here.
    loader.preloaded.retain(|path| path.is_absolute());
    loader
}

impl RecordArgs {
    fn options(
        &self,
        roots: &Roots,
        probes: &mut Probes,
        listener: &mut dyn Listener,
    ) -> Result<RecordOptions> {
        if let Some(first) = self.command.first().and_then(|name| name.to_str())
            && first.starts_with('-')
        {
            bail_usage!("unknown option '{first}'{}", short_options::similar("record", first));
        }
        self.check_mode_of_g()?;
        self.check_level_of_z()?;
        self.check_off_cpu()?;
        let has_command = !self.command.is_empty();
        let (target, event_args) = self.target(has_command, roots, listener)?;
        let of_sideband = self.sideband.tracking(&target);
        let has_requests = !self.request.is_empty();
        let tracking = TrackingPlan {
            switches: of_sideband.switches || has_requests,
            wakeups: of_sideband.wakeups || has_requests,
            kernel_build_ids: self.buildid_mmap && !self.no_buildid,
            ..of_sideband
        };
        let output = self.output.as_ref().or(self.output_dir.as_ref());
        let output = output.cloned().unwrap_or_else(|| DEFAULT_OUTPUT.into());
        let output = if output.as_os_str() == "-" { Output::Stdout } else { Output::File(output) };
        self.check_embedding(&output)?;
        let mut specs = self.events(&event_args, listener)?;
        let requests = requests::events(&self.request, roots, probes)?;
        specs.extend(requests.events);
        let of_target = self.goroutines.then(|| goroutines::program(&target, &self.command));
        let go_program = goroutines::the_program(of_target.transpose()?, &requests.go_programs)?;
        let mut chains = self.chains.plan();
        if go_program.is_some() && self.chains.call_graph.is_none() {
            // As with -g: without them a wait has no place.
            chains.call_graph = CallGraph::FramePointer;
        }
        let goroutines =
            go_program.map(|path| goroutines::watch(&path, roots, probes)).transpose()?;
        let (of_goroutines, wait_reasons) =
            goroutines.map(|it| (it.events, it.reasons)).unwrap_or_default();
        specs.extend(of_goroutines);
        let events = EventPlan {
            target,
            rate: self.rates.plan(roots)?,
            chains,
            fields: self.samples.plan()?,
            counts: self.sideband.counts(),
            tracking,
            inherit: !self.no_inherit,
            per_thread: self.per_thread,
            overwrite: self.overwrite,
            clock: self.clockid,
            skip_unsupported: self.skip_unsupported,
            ..EventPlan::for_command(specs)
        };
        Ok(RecordOptions {
            engine: self.engine_of_waits().unwrap_or(Engine::Unset),
            choices: Choices {
                is_call_graph_given: self.chains.call_graph.is_some(),
                unbuffered: self.no_buffering,
                build_ids: !self.no_buildid,
                room_for_names: self.embed_symbols.is_some(),
                java_maps: self.perf_map,
            },
            table_cache: table_cache(),
            loader: loader_paths(),
            start: self.delay.clone().unwrap_or_default(),
            ring_size: self.mmap_pages.unwrap_or_default(),
            max_overhead_ppm: self.max_overhead_ppm()?,
            streaming: self.streaming(),
            files: Files {
                switch: self.switch_output,
                max_files: self.switch_max_files,
                timestamp: self.timestamp_filename,
                max_bytes: self.max_size.map(|bytes| bytes as u64),
            },
            control: self.control.clone(),
            realtime_priority: self.realtime,
            synthesis: self.sideband.synthesis(),
            kept_files: self.kept_files(),
            command_line: command_line(),
            version: format!("whit {}", env!("CARGO_PKG_VERSION")),
            wait_reasons,
            ..RecordOptions::new(events, self.command.clone(), output)
        })
    }

    /// The target, and the options of events that are left for the events.
    fn target(
        &self,
        has_command: bool,
        roots: &Roots,
        listener: &mut dyn Listener,
    ) -> Result<(Target, EventArgs)> {
        // With -a or -C cgroups are dealt to single events, as by perf.
        let (events, cgroups) = match self.target.covers_cpus() {
            true => (self.events.clone(), Vec::new()),
            false => self.events.without_cgroups(),
        };
        let (names, user) = (self.names.with_cgroups(cgroups), self.uid.as_deref());
        let are_given =
            self.names.are_given() || (self.events.has_cgroups() && !self.target.covers_cpus());
        if are_given && names.is_empty() {
            bail_usage!("--cgroup, --container, --unit and --comm take names: none is given");
        }
        if names.is_empty() {
            let (target, overridden) = self.target.choose(user, has_command, roots)?;
            for what in overridden.into_iter().filter(|_| !self.quiet) {
                message::warning(what);
            }
            return Ok((target, events));
        }
        let (target, notes) = self.target.choose_by_name(user, &names, roots)?;
        notes.into_iter().for_each(|note| listener.notice(Notice::Name(note)));
        Ok((target, events))
    }

    /// Rings that are overwritten hold samples of before and after a change.
    fn max_overhead_ppm(&self) -> Result<Option<u32>> {
        if self.max_overhead.is_some() && self.overwrite {
            bail_usage!(
                "--max-overhead changes the time between samples, and --overwrite keeps samples of before and after \
                 in one ring: leave one of them out"
            );
        }
        Ok(self.max_overhead)
    }

    /// perf's cache of binaries.
    fn kept_files(&self) -> Option<KeptFilesPlan> {
        let directory =
            perf_cache::directory().filter(|_| !self.no_buildid && !self.no_buildid_cache)?;
        let max_bytes = self.buildid_cache_size.map_or(KEPT_FILES_MAX_BYTES, |bytes| bytes as u64);
        (max_bytes > 0).then_some(KeptFilesPlan { directory, max_bytes })
    }

    /// `-g` takes no mode; the word behind it is the command. It is refused if it is a mode, as in `-g
    /// dwarf PROGRAM`, which older perfs took.
    fn check_mode_of_g(&self) -> Result<()> {
        let mode = self.command.first().and_then(|name| name.to_str()).unwrap_or_default();
        if self.chains.g && parse::call_graph(mode).is_ok() && !has_separator(self.command.len()) {
            bail_usage!(
                "-g takes no mode: did you mean --call-graph {mode}? (to run a program called \
                 '{mode}', write -- before it)"
            );
        }
        Ok(())
    }

    /// `-z` takes its level with '='; a number behind it would be the command.
    fn check_level_of_z(&self) -> Result<()> {
        let level = self.command.first().and_then(|word| word.to_str()).unwrap_or_default();
        let is_level = level.parse::<u32>().is_ok() && !has_separator(self.command.len());
        if self.compression_level.is_some() && is_level {
            bail_usage!(
                "-z takes its level with '=': did you mean --compression-level={level}? (to run a program called \
                 '{level}', write -- before it)"
            );
        }
        Ok(())
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

    fn events(&self, args: &EventArgs, listener: &mut dyn Listener) -> Result<Vec<EventSpec>> {
        let mut skipped = |event, why| listener.notice(Notice::EventLeftOut { event, why });
        let skipped: Option<Skipped<'_>> =
            if self.skip_unsupported { Some(&mut skipped) } else { None };
        let mut events: Vec<EventSpec> =
            args.resolve(self.tables.pmus()?, events::DEFAULT, skipped)?;
        let is_group = self.group && events.len() > 1;
        for event in &mut events {
            self.all_events.apply(event);
            if is_group {
                event.leader = Some(0);
            }
        }
        Ok(events)
    }

    /// The command to record, with its arguments.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }
}

/// Whether `--` stands before a command of so many words.
fn has_separator(words: usize) -> bool {
    let own = std::env::args_os().len() - words;
    own.checked_sub(1).and_then(|last| std::env::args_os().nth(last)).is_some_and(|arg| arg == "--")
}

/// As recordings keep it: the program's full path, then the arguments.
fn command_line() -> Vec<String> {
    let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let arguments = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    program.into_iter().chain(arguments).collect()
}
