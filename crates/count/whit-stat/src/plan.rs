//! Predicts the use of the PMU before anything is counted: which events share a counter, which
//! exclude each other, and how much of the time each one counts.
//!
//! The plan is that of [`whit_pmu::sched::plan`], which runs the scheduler itself. This module adds
//! the counters that each of perf's events can use, the other holders of counters, and that events of
//! different cgroups never wait for each other.

mod groups;
mod machine;

use std::fmt;

use whit_pmu::sched::plan::{Plan, PlanGroup, plan};

use crate::counter::Counter;
pub use machine::{Machine, MachineError};
use whit_types::escape;

/// Cgroups that a heading names; of more it says how many.
const NAMED_MAX: usize = 3;

/// The predicted scheduling, wherever situations differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forecast {
    machine: Machine,
    situations: Vec<Situation>,
    elsewhere: Vec<String>,
}

/// Tasks of these cgroups (empty: tasks outside of all of them), and the events that count while
/// they run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Situation {
    cgroups: Vec<String>,
    groups: Vec<PlanGroup>,
    plan: Plan,
}

/// Plans the counters for a machine.
pub fn forecast(counters: &[Counter], machine: Machine) -> Forecast {
    let mut situations: Vec<Situation> = Vec::new();
    for cgroup in groups::cgroups(counters) {
        let mut groups: Vec<_> = machine.watchdog_group().into_iter().collect();
        groups.extend(groups::of_cgroup(counters, cgroup.as_deref(), &machine.model));
        match situations.iter_mut().find(|situation| situation.groups == groups) {
            Some(same) => same.cgroups.extend(cgroup),
            None => {
                let plan = plan(machine.model.counters(), &groups);
                situations.push(Situation { cgroups: cgroup.into_iter().collect(), groups, plan });
            }
        }
    }
    Forecast { machine, situations, elsewhere: groups::elsewhere(counters) }
}

impl Forecast {
    /// Whether every event counts all of the time.
    pub fn fits(&self) -> bool {
        self.situations.iter().all(|situation| situation.plan.fits())
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        for situation in &self.situations {
            writeln!(f)?;
            situation.heading_to(f, self.situations.len() > 1)?;
            if situation.groups.is_empty() {
                writeln!(f, "no event needs a counter")?;
            }
            write!(f, "{}", situation.plan)?;
        }
        if !self.elsewhere.is_empty() {
            writeln!(f, "\nneeds no counter of this PMU: {}", escape(&self.elsewhere.join(", ")))?;
        }
        Ok(())
    }
}

impl Situation {
    fn heading_to(&self, f: &mut fmt::Formatter<'_>, is_one_of_many: bool) -> fmt::Result {
        let named = self.cgroups[..self.cgroups.len().min(NAMED_MAX)].join(", ");
        let named = escape(&named);
        match self.cgroups.len() - self.cgroups.len().min(NAMED_MAX) {
            _ if self.cgroups.is_empty() && !is_one_of_many => Ok(()),
            _ if self.cgroups.is_empty() => {
                writeln!(f, "while tasks outside of these cgroups run:")
            }
            0 => writeln!(f, "while tasks of {named} run:"),
            more => writeln!(f, "while tasks of {named} and {more} more run:"),
        }
    }
}

#[cfg(test)]
mod tests;
