//! Options of counts and of the records beside samples.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use super::parse;
use crate::heading;
use std::time::Duration;
use whit_capture::options::{CountPlan, MAPS_TIMEOUT, Synthesis, TrackingPlan};
use whit_host::target::Target;

#[derive(Clone, Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)]
pub(super) struct SidebandArgs {
    /// Record the counts of each thread when it ends
    #[arg(short, long, help_heading = heading::SIDEBAND)]
    stat: bool,
    /// Record counts and sideband, but no samples
    #[arg(short = 'n', long, help_heading = heading::SIDEBAND)]
    no_samples: bool,
    /// Record how long groups with the modifier :S were enabled and running
    #[arg(long, help_heading = heading::SIDEBAND)]
    running_time: bool,
    /// Record context switches, for `whit switches` and `whit report --latency` (perf: --latency)
    #[arg(long, alias = "latency", help_heading = heading::SIDEBAND)]
    switch_events: bool,
    /// Write context switches as perf does, not packed; `whit export --perf` unpacks a recording later
    #[arg(long, help_heading = heading::SIDEBAND)]
    no_pack: bool,
    /// Write waits as samples of 'offcpu-time' when recording ends: for perf, and beside the samples of
    /// CPU time. Takes the BPF engine
    #[arg(long, help_heading = heading::SIDEBAND)]
    pub(super) off_cpu: bool,
    /// Write a sample for each wait of at least so many milliseconds, and one for all shorter waits of a
    /// thread at a call chain [default: 500]
    #[arg(long, value_name = "MS", requires = "off_cpu", help_heading = heading::SIDEBAND)]
    pub(super) off_cpu_thresh: Option<u32>,
    /// Sample waits, one for every N nanoseconds that a thread is off its CPU: in proportion to their
    /// durations, without a record of every switch. Takes the BPF engine and Linux 6.15
    #[arg(long, value_name = "NS", value_parser = parse::off_cpu_period, conflicts_with = "off_cpu",
          help_heading = heading::SIDEBAND)]
    pub(super) off_cpu_period: Option<u64>,
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
    /// Do not record BPF programs
    #[arg(long, help_heading = heading::SIDEBAND)]
    no_bpf_event: bool,
}

impl SidebandArgs {
    pub(super) fn counts(&self) -> CountPlan {
        CountPlan { alone: self.no_samples, by_thread: self.stat, running_time: self.running_time }
    }

    pub(super) fn tracking(&self, target: &Target) -> TrackingPlan {
        TrackingPlan {
            switches: self.switch_events || self.wakeups || self.off_cpu,
            packs_switches: !self.no_pack,
            off_cpu: self.off_cpu,
            off_cpu_period_ns: self.off_cpu_period.unwrap_or(0),
            fallback_off_cpu_period_ns: 0,
            wakeups: self.wakeups,
            cgroups: self.all_cgroups || (target.covers_cpus() && !self.no_all_cgroups),
            namespaces: self.namespaces,
            bpf_events: !self.no_bpf_event,
            kernel_build_ids: false,
        }
    }

    pub(super) fn synthesis(&self) -> Synthesis {
        let what = self.synth.map_or_else(Synthesis::default, |synth| synth.0);
        Synthesis {
            at_end: self.tail_synthesize,
            threads: self.num_thread_synthesize,
            maps_timeout: self.proc_map_timeout.map_or(MAPS_TIMEOUT, Duration::from_millis),
            ..what
        }
    }
}
