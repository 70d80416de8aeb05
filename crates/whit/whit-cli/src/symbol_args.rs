//! Options on symbols that `report` and `script` share.

use crate::debuginfod::DebuginfodArgs;
use crate::failure::bail_usage;
use crate::heading;
use crate::perf_cache;
use crate::request_args::RequestArgs;
use anyhow::{Result, bail};
use std::path::PathBuf;
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;
use whit_profile::time_filter::TimeFilter;
use whit_profile::{NameSources, ReadOptions, Reading, Selection, ThisMachine};
use whit_symbolize::{DebugDirs, RunningList, SymbolizerConfig};
use whit_types::{CpuId, CpuListError, Pid, Tid, parse_cpu_list};

/// Frames of a call chain without `--max-stack`, as by perf.
const DEFAULT_MAX_STACK: usize = 127;

/// The options of [`LoadArgs`] that choose samples.
pub(crate) const SELECTING: [&str; 8] =
    ["pid", "tid", "cpu", "cgroup", "time", "request", "request_longer_than", "request_key"];

/// Which samples, and where symbols come from.
#[derive(clap::Args, Debug)]
pub(crate) struct LoadArgs {
    /// Use only samples of these processes
    #[arg(long, value_name = "PID,..", value_delimiter = ',', value_parser = process_id, help_heading = heading::FILTER)]
    pid: Vec<i32>,
    /// Use only samples of these threads, by their ids or by handles such as t-1234
    #[arg(long, value_name = "TID,..", value_delimiter = ',', value_parser = thread_id, help_heading = heading::FILTER)]
    tid: Vec<i32>,
    /// Use only samples on these CPUs: 0,2-3
    #[arg(short = 'C', long, value_name = "LIST", value_parser = cpu_list, help_heading = heading::FILTER)]
    cpu: Option<CpuList>,
    /// Use only samples in these cgroups and those below: a path, or the name of any cgroup, container,
    /// pod or unit in the path
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER)]
    cgroup: Vec<String>,
    /// Use only these parts of the recorded time: START,STOP in seconds, 10%-20%, 10%/2, or 10%/1,10%/10
    #[arg(long, value_name = "RANGE", value_parser = TimeFilter::parse, allow_hyphen_values = true, help_heading = heading::FILTER)]
    time: Option<TimeFilter>,
    #[command(flatten)]
    requests: RequestArgs,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

/// How call chains are made and named.
#[derive(clap::Args, Clone, Debug)]
pub struct SymbolArgs {
    /// Cut call chains after N frames
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_MAX_STACK, help_heading = heading::SYMBOLS)]
    max_stack: usize,
    /// Show inlined functions (the default)
    #[arg(long, overrides_with = "no_inline", help_heading = heading::SYMBOLS)]
    inline: bool,
    /// Do not show inlined functions
    #[arg(long, help_heading = heading::SYMBOLS)]
    no_inline: bool,
    /// Print C++ and Rust names as in the source (the default)
    #[arg(long, overrides_with = "no_demangle", help_heading = heading::SYMBOLS)]
    demangle: bool,
    /// Print names as the linker has them
    #[arg(long, help_heading = heading::SYMBOLS)]
    no_demangle: bool,
    /// Look for binaries below this directory
    #[arg(long, value_name = "FOLDER", help_heading = heading::SYMBOLS)]
    symfs: Option<PathBuf>,
    /// Read kernel symbols from this image
    #[arg(short = 'k', long, value_name = "FILE", help_heading = heading::SYMBOLS)]
    vmlinux: Option<PathBuf>,
    /// Read kernel symbols from this list [default: /proc/kallsyms]
    #[arg(long, value_name = "FILE", help_heading = heading::SYMBOLS)]
    kallsyms: Option<PathBuf>,
    #[command(flatten)]
    debuginfod: DebuginfodArgs,
    /// Decode with N threads [default: one for each CPU]
    #[arg(long, value_name = "N", help_heading = heading::SYMBOLS)]
    threads: Option<usize>,
    /// The running kernel's symbols, opened while whit had more rights than it has by now
    #[arg(skip)]
    pub(crate) running_list: Option<RunningList>,
}

/// Refuses a recording whose samples have no cgroups.
pub(crate) fn needs_cgroups(recording: &Recording, option: &str) -> Result<()> {
    if !whit_profile::has_cgroups(recording) {
        bail!(
            "{option} needs the cgroups of samples, and {} has none: record again with --all-cgroups",
            recording.path.display()
        );
    }
    Ok(())
}

pub(crate) fn process_id(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "an ID of a process is a number".to_owned())
}

/// A thread's id, or its handle.
pub(crate) fn thread_id(text: &str) -> Result<i32, String> {
    let id = text.strip_prefix("t-").unwrap_or(text).parse();
    id.map_err(|_| "an ID of a thread is a number".to_owned())
}

/// CPUs in perf's form.
#[derive(Clone, Debug)]
struct CpuList(Vec<CpuId>);

fn cpu_list(text: &str) -> Result<CpuList, CpuListError> {
    parse_cpu_list(text).map(CpuList)
}

impl LoadArgs {
    /// True unless inlined functions are switched off.
    pub(crate) fn inline(&self) -> bool {
        self.symbols.inline()
    }

    /// Threads that read the recording.
    pub(crate) fn threads(&self) -> usize {
        self.symbols.threads()
    }

    /// True where samples are chosen by their CPU.
    pub(crate) fn chooses_cpus(&self) -> bool {
        self.cpu.is_some()
    }

    /// True where samples are chosen by their cgroup.
    pub(crate) fn chooses_cgroups(&self) -> bool {
        !self.cgroup.is_empty()
    }

    /// As a reading takes them.
    ///
    /// # Errors
    /// A filter by cgroup where samples have none, or by request where the recording has no such one.
    pub(crate) fn options(&self, recording: &Recording) -> Result<ReadOptions> {
        if !self.cgroup.is_empty() {
            needs_cgroups(recording, "--cgroup")?;
        }
        let options = self.symbols.options(recording)?;
        let selection = Selection {
            calls: self.requests.times(Reading::open(recording, &options))?,
            time: self.time.clone(),
            pids: self.pid.iter().copied().map(Pid).collect(),
            without_pids: Vec::new(),
            tids: self.tid.iter().copied().map(Tid).collect(),
            cpus: self.cpu.clone().map_or_else(Vec::new, |list| list.0),
            cgroups: self.cgroup.clone(),
        };
        Ok(ReadOptions { selection, ..options })
    }
}

impl SymbolArgs {
    /// Without any option, and without servers.
    pub(crate) fn of_this_machine(running_list: Option<RunningList>) -> SymbolArgs {
        SymbolArgs {
            max_stack: DEFAULT_MAX_STACK,
            inline: false,
            no_inline: false,
            demangle: false,
            no_demangle: false,
            symfs: None,
            vmlinux: None,
            kallsyms: None,
            debuginfod: DebuginfodArgs::none(),
            threads: None,
            running_list,
        }
    }

    /// True unless switched off.
    pub(crate) fn inline(&self) -> bool {
        !self.no_inline
    }

    /// # Errors
    /// The user asks for fetches, which the command does not make.
    pub(crate) fn refuse_fetches(&self, why: &str) -> Result<()> {
        if self.debuginfod.is_given() {
            bail_usage!("--debuginfod fetches nothing here: {why}");
        }
        Ok(())
    }

    /// As a reading takes them: all samples.
    ///
    /// # Errors
    /// Servers are to be asked, and none is named.
    pub fn options(&self, recording: &Recording) -> Result<ReadOptions> {
        let mut debug_dirs = DebugDirs::with_cache(perf_cache::directory());
        debug_dirs.symfs.clone_from(&self.symfs);
        let (companions, fetched) = self.debuginfod.companions(true)?;
        debug_dirs.fetched = fetched;
        let mut symbols = SymbolizerConfig::new(debug_dirs);
        symbols.inlines = self.inline();
        symbols.demangle = !self.no_demangle;
        symbols.kernel.vmlinux.clone_from(&self.vmlinux);
        symbols.kernel.kallsyms.clone_from(&self.kallsyms);
        symbols.kernel.running_list.clone_from(&self.running_list);
        // The running kernel's symbols and our own vdso are the recorded ones if the kernel is;
        // where the recording does not say which it was, it may be.
        let recorded = recording.features.string(Feature::OSRELEASE);
        let running = whit_sys::system::uname().release;
        symbols.kernel.other_release =
            recorded.filter(|release| !release.is_empty() && *release != running);
        if symbols.kernel.other_release.is_none() {
            symbols.vdso = whit_elf::own_vdso().ok();
        }
        let machine = ThisMachine { hostname: whit_sys::system::uname().hostname, is_live: false };
        Ok(ReadOptions {
            selection: Selection::default(),
            names: NameSources { symbols, machine: Some(machine), kept_symbols: None, companions },
            threads: self.threads().max(1),
            max_stack: self.max_stack,
        })
    }

    /// Threads that read the recording.
    pub(crate) fn threads(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(cpus)
    }
}
