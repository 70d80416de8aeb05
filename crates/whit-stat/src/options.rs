//! What to count and how, as values: the command line without its spelling.

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
}

/// What is done around each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunHooks {
    /// Shell command before.
    pub pre: Option<OsString>,
    /// Shell command after.
    pub post: Option<OsString>,
    /// Write what is cached to the disks before.
    pub sync: bool,
}

/// Whether BPF counts cgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BpfCounters {
    /// Where the kernel allows it; else its cgroup events do.
    #[default]
    Auto,
    /// It must.
    On,
    /// The kernel's cgroup events do.
    Off,
}

/// Everything that counting can be told.
#[derive(Clone, Debug)]
pub struct StatOptions {
    /// The events; none just takes the time.
    pub counters: Vec<Counter>,
    /// In which cgroups, beside those that counters name.
    pub cgroups: CgroupChoice,
    /// By what cgroups are counted.
    pub bpf_counters: BpfCounters,
    /// Whom to count.
    pub target: Target,
    /// The command to run: counted itself, or the measure of how long to count.
    pub command: Vec<OsString>,
    /// Children inherit the events.
    pub inherit: bool,
    /// By what counts are added up.
    pub aggregation: Aggregation,
    /// Estimate what was not seen.
    pub scale: bool,
    /// Add up instances of a PMU.
    pub merge: bool,
    /// When counting begins.
    pub start: Start,
    /// Counts at regular times.
    pub intervals: Option<Intervals>,
    /// End after this time.
    pub timeout: Option<Duration>,
    /// How often.
    pub repeats: Repeats,
    /// Show each run's time.
    pub with_table: bool,
    /// Before and after each run.
    pub around: RunHooks,
    /// Who switches events on and off meanwhile.
    pub control: Option<ControlSpec>,
    /// How counts are printed.
    pub style: Style,
    /// Print counts as they were read, too.
    pub raw_counts: bool,
    /// Whom the heading names: `system wide`.
    pub title: String,
}
