//! The options of a count as values: the command line without its spelling.

use std::ffi::OsString;
use std::time::Duration;

use whit_host::control::ControlSpec;
use whit_host::target::Target;

use crate::cgroups::CgroupChoice;
use crate::counter::Counter;
use crate::show::Style;
use crate::table::Aggregation;

/// When counting begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At once; with a command, at its exec.
    #[default]
    AtOnce,
    /// After this time.
    After(Duration),
    /// Not before it is asked for.
    Disabled,
}

/// How often a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// So many times.
    Times(u32),
    /// Until a signal comes, each run being printed by itself.
    Forever,
}

/// Counts at regular times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// Between two of them.
    pub length: Duration,
    /// End after so many.
    pub count: Option<u64>,
    /// Clear the screen before each.
    pub clear: bool,
    /// Print all of them together at the end.
    pub summary: bool,
    /// Reading and printing may cost so many millionths of the counted CPUs; intervals become longer otherwise.
    pub max_overhead_ppm: Option<u32>,
}

/// Actions before and after each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHooks {
    /// Shell command before.
    pub pre: Option<OsString>,
    /// Shell command after.
    pub post: Option<OsString>,
    /// Write cached file data to the disks before each run (`--sync`).
    pub sync: bool,
}

/// Whether BPF counts cgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BpfCounters {
    /// Where the kernel allows it; else its cgroup events do.
    #[default]
    Auto,
    /// BPF counts cgroups, or the command fails.
    On,
    /// The kernel's cgroup events do.
    Off,
}

/// All options of a count.
#[derive(Clone, Debug)]
pub struct StatOptions {
    /// The events; none just takes the time.
    pub counters: Vec<Counter>,
    /// In which cgroups, beside those that counters name.
    pub cgroups: CgroupChoice,
    /// Which cgroups BPF counts and which the kernel's events count.
    pub bpf_counters: BpfCounters,
    /// The CPUs, processes or threads to count.
    pub target: Target,
    /// The command to run: counted itself, or the measure of how long to count.
    pub command: Vec<OsString>,
    /// Children inherit the events.
    pub inherit: bool,
    /// The places that one row sums up.
    pub aggregation: Aggregation,
    /// Scale counts of multiplexed events to the whole time.
    pub scale: bool,
    /// Add up instances of a PMU.
    pub merge: bool,
    /// When counting begins.
    pub start: Start,
    /// Counts at regular times.
    pub intervals: Option<Intervals>,
    /// End after this time.
    pub timeout: Option<Duration>,
    /// Number of runs, and the cases in which they are repeated.
    pub repeats: Repeats,
    /// Show each run's time.
    pub with_table: bool,
    /// Before and after each run.
    pub around: RunHooks,
    /// The channel by which another program switches events on and off.
    pub control: Option<ControlSpec>,
    /// How counts are printed.
    pub style: Style,
    /// Print counts as they were read, too.
    pub raw_counts: bool,
    /// The target in the heading: `system wide`.
    pub title: String,
}
