//! `whit stat --plan`.

use super::{Output, StatArgs};
use anyhow::{Context, Result};
use std::io::Write;
use whit_host::roots::Roots;
use whit_stat::options::{BpfCounters, StatOptions};
use whit_stat::plan::{Machine, forecast};
use whit_stat::{bpf, cgroups};

/// In front of a plan where cgroups take part.
const BY_BPF: &str = "cgroups counted by BPF: each event counts whoever runs \
                      (--bpf-counters=off plans for the kernel's cgroup events)\n";

impl StatArgs {
    /// Prints what will happen to the events on the counters of a PMU. Without -o it is an answer, as
    /// that of `whit list`, and goes to standard output.
    pub(super) fn print_plan(
        &self,
        pmu: &str,
        options: StatOptions,
        roots: &Roots,
        out: &mut Output,
    ) -> Result<()> {
        let machine = Machine::choose(Some(pmu).filter(|name| !name.is_empty()), roots)?;
        let counters = cgroups::expand(options.counters, &options.cgroups, roots)?;
        let is_bpf = match options.bpf_counters {
            BpfCounters::On => true,
            BpfCounters::Auto => whit_sys::bpf::try_load().is_ok(),
            BpfCounters::Off => false,
        };
        let text = match is_bpf.then(|| bpf::shared(&counters)).flatten() {
            Some(shared) => format!("{BY_BPF}{}", forecast(&shared, machine)),
            None => forecast(&counters, machine).to_string(),
        };
        let written = match out {
            Output::Stderr => std::io::stdout().write_all(text.as_bytes()),
            other => other.write_all(text.as_bytes()),
        };
        written.context("cannot write the plan")
    }
}
