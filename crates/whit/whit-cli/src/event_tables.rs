//! The PMUs of this machine, with the names that vendors' tables give to their events.

use crate::message;
use anyhow::Result;
use std::path::{Path, PathBuf};
use whit_events::{CpuIdentity, EventTable, PmuTable, SYSFS_PMUS};

/// Names the tables where the option does not.
const VARIABLE: &str = "WHIT_EVENT_TABLES";
/// Problems of a table that are shown one by one.
const SHOWN_PROBLEMS: usize = 3;

/// The option `--event-tables`, and the variable behind it.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct EventTableArgs {
    /// Read vendors' event names from a directory of JSON files, as in the Linux sources
    /// (tools/perf/pmu-events/arch/x86) or in perfmon, or from one such file [default:
    /// $WHIT_EVENT_TABLES]
    #[arg(long, value_name = "DIR")]
    event_tables: Option<PathBuf>,
}

impl EventTableArgs {
    /// The PMUs with the names of the table, if one is given. Errors in single events of the table
    /// go to standard error.
    pub(crate) fn pmus(&self) -> Result<PmuTable> {
        let mut pmus = PmuTable::from_sysfs(SYSFS_PMUS.as_ref())?;
        let variable = || std::env::var_os(VARIABLE).filter(|dir| !dir.is_empty());
        let Some(dir) = self.event_tables.clone().or_else(|| variable().map(PathBuf::from)) else {
            return Ok(pmus);
        };
        let cpu = CpuIdentity::read(Path::new("/proc"), Path::new("/sys"));
        let table = EventTable::read(&dir, cpu.as_ref())?;
        for problem in table.problems.iter().take(SHOWN_PROBLEMS) {
            message::error(problem);
        }
        let more = table.problems.len().saturating_sub(SHOWN_PROBLEMS) + table.more_problems;
        if more > 0 {
            message::error(format_args!("{more} more problems in {}", dir.display()));
        }
        let events = table.events.len();
        if pmus.add_events(table.events) == events {
            message::error(format_args!(
                "none of the {events} events in {} belongs to a PMU of this machine",
                dir.display()
            ));
        }
        Ok(pmus)
    }
}
