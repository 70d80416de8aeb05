//! `whit stat --plan`.

use super::{Output, StatArgs};
use anyhow::{Context, Result};
use std::io::Write;
use whit_capture::roots::Roots;
use whit_stat::cgroups;
use whit_stat::options::StatOptions;
use whit_stat::plan::{Machine, forecast};

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
        let text = forecast(&counters, machine).to_string();
        let written = match out {
            Output::Stderr => std::io::stdout().write_all(text.as_bytes()),
            other => other.write_all(text.as_bytes()),
        };
        written.context("cannot write the plan")
    }
}
