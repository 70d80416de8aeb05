//! A counter's form of an event, and the counters without `-e`.

use crate::event_args::{EventArgs, Wanted};
use crate::failure::bail_usage;
use anyhow::Result;
use std::path::Path;
use whit_events::{PmuTable, ResolvedGroup, SYSFS_PMUS, TYPE_TRACEPOINT};
use whit_host::target::Target;
use whit_stat::counter::{Counter, from_groups};
use whit_types::OutsideText;

/// The events that each `-d` adds: those of `add_default_attributes` in
/// `tools/perf/builtin-stat.c`.
const DETAILS: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// The counters without `-e`, as in perf.
fn defaults(target: &Target) -> String {
    let clock = match target {
        Target::SystemWide(_) => "cpu-clock",
        _ => "task-clock",
    };
    let stalled = ["stalled-cycles-frontend", "stalled-cycles-backend"];
    let is_there = |event: &&str| Path::new(SYSFS_PMUS).join("cpu/events").join(event).exists();
    let stalled: String =
        stalled.into_iter().filter(is_there).map(|event| format!("{event},")).collect();
    format!(
        "{clock},context-switches,cpu-migrations,page-faults,cycles,{stalled}instructions,branches,\
         branch-misses"
    )
}

/// The events of a command line on these PMUs; `details` is the number of `-d`.
pub(super) fn choose(
    args: &EventArgs,
    pmus: &PmuTable,
    target: &Target,
    details: u8,
) -> Result<Vec<Counter>> {
    let mut counters: Vec<Counter> = args.resolve(pmus.clone(), &defaults(target), None)?;
    for list in &DETAILS[..usize::from(details).min(DETAILS.len())] {
        let offset = counters.len();
        let more: Vec<Counter> = EventArgs::default().resolve(pmus.clone(), list, None)?;
        counters.extend(more.into_iter().map(|counter| Counter {
            leader: counter.leader.map(|leader| leader + offset),
            ..counter
        }));
    }
    Ok(counters)
}

impl Wanted for Counter {
    fn from_groups(groups: Vec<ResolvedGroup>) -> Result<Vec<Self>> {
        Ok(from_groups(groups))
    }

    fn name(&self) -> &str {
        &self.event.name
    }

    fn is_tracepoint(&self) -> bool {
        self.event.pmu_type == TYPE_TRACEPOINT
    }

    fn filter(&mut self) -> &mut Option<String> {
        &mut self.filter
    }

    fn leader(&mut self) -> &mut Option<usize> {
        &mut self.leader
    }

    fn set_cgroup(&mut self, name: Option<&str>) {
        self.cgroup = name.map(|name| OutsideText::new(name.into()));
    }

    fn leave_recorder_out(&mut self) -> Result<()> {
        bail_usage!(
            "--exclude-perf is for whit record: a filter leaves processes out of a count \
               (--filter 'common_pid != ..')"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_events_and_details_are_those_of_perf() {
        let names = |target: &Target, details| {
            let pmus = PmuTable::from_sysfs(SYSFS_PMUS.as_ref()).unwrap();
            let counters = choose(&EventArgs::default(), &pmus, target, details).unwrap();
            counters.into_iter().map(|c| c.event.name).collect::<Vec<_>>()
        };
        let all = names(&Target::Command, 3);
        assert_eq!(
            all[..5].join(" "),
            "task-clock context-switches cpu-migrations page-faults cycles"
        );
        assert!(all.contains(&"LLC-load-misses".into()) && all.contains(&"iTLB-loads".into()));
        assert_eq!(all.last().unwrap(), "L1-dcache-prefetch-misses");
        assert_eq!(names(&Target::SystemWide(None), 0)[0], "cpu-clock");
        assert_eq!(names(&Target::Command, 9), all);
    }
}
