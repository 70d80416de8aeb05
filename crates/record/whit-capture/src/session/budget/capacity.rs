//! The CPU time that a recording is measured by.

use std::time::{Duration, Instant};

use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;
use whit_host::target::Target;
use whit_host::{cpu_quota, cpus};
use whit_types::Pid;

use crate::error::CaptureError;
use crate::session::context::SessionContext;

/// Time between two looks at a quota, which somebody may change.
const QUOTA_INTERVAL: Duration = Duration::from_secs(2);
/// Processes whose quota is looked at.
const PROCESSES_MAX: usize = 64;

/// CPUs that are recorded, or the quota of those who are.
#[derive(Debug)]
pub(super) struct Capacity {
    /// CPUs that are recorded as a whole; `None` where single threads are.
    cpus: Option<f64>,
    /// CPUs of the machine.
    all_cpus: f64,
    limited: Limited,
    roots: Roots,
    read_at: Option<Instant>,
    quota: Option<f64>,
}

/// Processes or cgroups that may have a quota.
#[derive(Debug)]
enum Limited {
    NoProcess,
    Processes(Vec<Pid>),
    Cgroups(Hierarchy, Vec<String>),
}

impl Capacity {
    /// The capacity of a recording.
    pub(super) fn of(context: &SessionContext<'_>) -> Result<Capacity, CaptureError> {
        let (target, roots) = (&context.plan.events.target, context.roots);
        let online = cpus::online(roots)?.len();
        let cpus = match target {
            Target::SystemWide(cpus) => Some(cpus.as_ref().map_or(online, Vec::len) as f64),
            _ => None,
        };
        let all_cpus = online.max(1) as f64;
        let limited = Limited::of(context);
        let mut capacity =
            Capacity { cpus, all_cpus, limited, roots: roots.clone(), read_at: None, quota: None };
        capacity.look(Instant::now());
        Ok(capacity)
    }

    /// The least that it is, even if recorded threads use nothing.
    pub(super) fn least(&self) -> f64 {
        let cpus = self.cpus.unwrap_or(self.all_cpus);
        self.quota.map_or(self.cpus.unwrap_or(1.0), |quota| quota.min(cpus))
    }

    /// CPU time in each nanosecond: the quota, or else that of recorded CPUs, or as much as recorded threads `used`, one CPU
    /// at least.
    pub(super) fn at(&mut self, now: Instant, used: f64) -> f64 {
        self.look(now);
        let cpus = self.cpus.unwrap_or_else(|| used.clamp(1.0, self.all_cpus));
        self.quota.map_or(cpus, |quota| quota.min(self.cpus.unwrap_or(self.all_cpus)))
    }

    fn look(&mut self, now: Instant) {
        let is_due = |at| now.saturating_duration_since(at) >= QUOTA_INTERVAL;
        if !self.read_at.is_none_or(is_due) {
            return;
        }
        self.read_at = Some(now);
        self.quota = match &mut self.limited {
            Limited::NoProcess => None,
            Limited::Processes(pids) => {
                let roots = &self.roots;
                pids.retain(|pid| roots.proc.join(pid.0.to_string()).exists());
                if pids.is_empty() {
                    // They have ended: their last quota holds.
                    return;
                }
                cpu_quota::of_processes(roots, pids)
            }
            Limited::Cgroups(hierarchy, names) => {
                cpu_quota::of_cgroups(&self.roots, hierarchy, names.iter().map(String::as_str))
            }
        };
    }
}

impl Limited {
    fn of(context: &SessionContext<'_>) -> Limited {
        let events = &context.plan.events;
        match &events.target {
            Target::SystemWide(_) => Limited::of_events(context),
            Target::Named(chosen, _) => match &chosen.cgroups {
                None => Limited::NoProcess,
                Some(chosen) => {
                    let names = chosen.cgroups.iter().map(|cgroup| cgroup.path.clone()).collect();
                    Limited::Cgroups(chosen.mounted.hierarchy.clone(), names)
                }
            },
            Target::Processes(pids) => Limited::processes(pids.iter().copied()),
            _ => {
                let threads = context.targets.threads.named();
                Limited::processes(threads.iter().map(|tid| Pid(tid.0)))
            }
        }
    }

    /// Where one of too many were left out, it could be one without a quota.
    fn processes(pids: impl ExactSizeIterator<Item = Pid>) -> Limited {
        match pids.len() <= PROCESSES_MAX {
            true => Limited::Processes(pids.collect()),
            false => Limited::NoProcess,
        }
    }

    /// The cgroups of events, where all events have one.
    fn of_events(context: &SessionContext<'_>) -> Limited {
        let specs = context.plan.events.specs.iter();
        let names: Option<Vec<_>> = specs.map(|spec| spec.cgroup.clone()).collect();
        match (names, Hierarchy::find(context.roots)) {
            (Some(mut names), Ok(hierarchy)) if !names.is_empty() => {
                names.sort_unstable();
                names.dedup();
                Limited::Cgroups(hierarchy, names)
            }
            _ => Limited::NoProcess,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(cpus: Option<f64>, quota: Option<f64>) -> Capacity {
        let read_at = Some(Instant::now());
        let (limited, roots) = (Limited::NoProcess, Roots::default());
        Capacity { cpus, all_cpus: 4.0, limited, roots, read_at, quota }
    }

    fn at(cpus: Option<f64>, quota: Option<f64>, used: f64) -> f64 {
        capacity(cpus, quota).at(Instant::now(), used)
    }

    #[test]
    fn a_quota_takes_the_place_of_cpus_and_of_used_time() {
        assert!((at(Some(2.0), None, 0.1) - 2.0).abs() < 1e-9);
        assert!((at(Some(2.0), Some(0.5), 0.1) - 0.5).abs() < 1e-9);
        assert!((at(Some(2.0), Some(9.0), 0.1) - 2.0).abs() < 1e-9);
        assert!((at(None, None, 0.1) - 1.0).abs() < 1e-9);
        assert!((at(None, None, 3.0) - 3.0).abs() < 1e-9);
        assert!((at(None, Some(0.2), 3.0) - 0.2).abs() < 1e-9);
        assert!((at(None, Some(2.5), 0.1) - 2.5).abs() < 1e-9);
        assert!((capacity(None, Some(0.2)).least() - 0.2).abs() < 1e-9);
        assert!((capacity(None, None).least() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_quota_of_ended_processes_holds_on() {
        let mut capacity = capacity(None, Some(0.5));
        (capacity.limited, capacity.read_at) = (Limited::Processes(vec![Pid(i32::MAX)]), None);
        assert!((capacity.at(Instant::now(), 1.0) - 0.5).abs() < 1e-9);
    }
}
