//! The CPU time that cgroups may take: `cpu.max` of version 2, `cpu.cfs_quota_us` of version 1.
//!
//! A cgroup is limited by the least quota of itself and those that it is in
//! (`Documentation/scheduler/sched-bwc.rst`).

use std::path::{Path, PathBuf};

use whit_types::Pid;

use crate::cgroup::{Hierarchy, MountedHierarchy};
use crate::roots::Roots;

/// Processes of a cgroup that are looked at: all of them are in the cgroup, and mostly in the same one of the controller `cpu`.
const PROCESSES_MAX: usize = 64;
/// Cgroups that one is in.
const ANCESTORS_MAX: usize = 64;

/// A cgroup that limits others, or itself.
#[derive(Clone, Debug, PartialEq)]
struct Limit {
    directory: PathBuf,
    cpus: f64,
}

/// CPUs that these processes may use together; `None` where one of them is not limited, or there is none.
pub fn of_processes(roots: &Roots, pids: &[Pid]) -> Option<f64> {
    let mounted = Hierarchy::mounted(roots).unwrap_or_default();
    sum(pids.iter().map(|pid| limit_of_process(roots, &mounted, *pid)))
}

/// CPUs that these cgroups of a hierarchy may use together; `None` where one of them is not limited, or there is none. Where the
/// hierarchy has no controller for CPU time, the processes in a cgroup tell.
pub fn of_cgroups<'a>(
    roots: &Roots,
    hierarchy: &Hierarchy,
    names: impl Iterator<Item = &'a str>,
) -> Option<f64> {
    let mounted = Hierarchy::mounted(roots).unwrap_or_default();
    let limits = names.map(|name| {
        let directory = hierarchy.path(name);
        let direct = limit(hierarchy.mount(), &directory);
        direct.or_else(|| {
            let pids = std::fs::read_to_string(directory.join("cgroup.procs")).ok()?;
            let pids = pids.lines().take(PROCESSES_MAX).filter_map(|pid| pid.parse().ok());
            let found: Option<Vec<_>> =
                pids.map(|pid| limit_of_process(roots, &mounted, Pid(pid))).collect();
            found?.into_iter().max_by(|a, b| a.cpus.total_cmp(&b.cpus))
        })
    });
    sum(limits)
}

fn limit_of_process(roots: &Roots, mounted: &[MountedHierarchy], pid: Pid) -> Option<Limit> {
    let text = std::fs::read_to_string(roots.proc.join(pid.0.to_string()).join("cgroup")).ok()?;
    let limits = mounted
        .iter()
        .filter_map(|one| limit(one.hierarchy.mount(), &one.cgroup_of_process(&text, "cpu")?));
    limits.min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// The least limit of a cgroup and those that it is in.
fn limit(mount: &Path, directory: &Path) -> Option<Limit> {
    let inside = directory.ancestors().take_while(|one| one.starts_with(mount));
    let limits = inside.take(ANCESTORS_MAX).filter_map(|one| {
        let cpus = quota_cpus(one)?;
        Some(Limit { directory: one.to_owned(), cpus })
    });
    limits.min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// The quota of one cgroup.
fn quota_cpus(directory: &Path) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).ok();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|us| *us > 0.0);
    if let Some(text) = read("cpu.max") {
        let (quota, period) = text.trim().split_once(' ')?;
        return Some(number(quota)? / number(period)?);
    }
    Some(number(&read("cpu.cfs_quota_us")?)? / number(&read("cpu.cfs_period_us")?)?)
}

/// Where one cgroup is in another, the outer one counts.
fn sum(limits: impl Iterator<Item = Option<Limit>>) -> Option<f64> {
    let mut all: Vec<Limit> = limits.collect::<Option<_>>()?;
    all.sort_by(|a, b| a.directory.cmp(&b.directory));
    all.dedup_by(|inner, outer| inner.directory.starts_with(&outer.directory));
    (!all.is_empty()).then(|| all.iter().map(|limit| limit.cpus).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mounts of both versions, and processes.
    fn machine(with_version_1: bool) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        let mut mounts = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", at("two").display());
        if with_version_1 {
            let one = at("one").display().to_string();
            mounts += &format!("32 31 0:29 / {one} rw - cgroup cgroup rw,cpu,cpuacct\n");
        }
        write("proc/self/mountinfo", &mounts);
        write("two/a/cpu.max", "150000 100000\n");
        write("two/a/b/cpu.max", "max 100000\n");
        write("two/c/cpu.max", "20000 100000\n");
        write("two/c/d/cpu.max", "90000 100000\n");
        write("two/free/cgroup.procs", "7\n8\n");
        write("one/x/cpu.cfs_quota_us", "25000\n");
        write("one/x/cpu.cfs_period_us", "50000\n");
        write("one/y/cpu.cfs_quota_us", "-1\n");
        write("one/y/cpu.cfs_period_us", "50000\n");
        write("proc/7/cgroup", "3:cpu,cpuacct:/x\n1:name=systemd:/\n0::/free\n");
        write("proc/8/cgroup", "3:cpu,cpuacct:/x\n0::/free\n");
        write("proc/9/cgroup", "3:cpu,cpuacct:/y\n0::/a/b\n");
        write("proc/10/cgroup", "3:cpu,cpuacct:/y\n0::/free\n");
        write("proc/11/cgroup", "3:cpu,cpuacct:/gone\n0::/c/d\n");
        let roots = Roots { proc: at("proc"), ..Roots::default() };
        (dir, roots)
    }

    fn processes(with_version_1: bool, pids: &[i32]) -> Option<f64> {
        let (_dir, roots) = machine(with_version_1);
        of_processes(&roots, &pids.iter().copied().map(Pid).collect::<Vec<_>>())
    }

    fn cgroups(with_version_1: bool, names: &[&str]) -> Option<f64> {
        let (_dir, roots) = machine(with_version_1);
        let hierarchy = Hierarchy::find(&roots).unwrap();
        of_cgroups(&roots, &hierarchy, names.iter().copied())
    }

    #[test]
    fn the_least_quota_on_the_way_up_limits() {
        assert_eq!(cgroups(false, &["a"]), Some(1.5));
        assert_eq!(cgroups(false, &["/a/b"]), Some(1.5));
        assert_eq!(cgroups(false, &["c/d"]), Some(0.2));
        assert_eq!(cgroups(false, &["a", "c/d", "c"]), Some(1.7));
        assert_eq!(cgroups(false, &["a", "free"]), None);
        assert_eq!(cgroups(false, &[]), None);
    }

    #[test]
    fn processes_have_the_quota_of_their_cgroup() {
        assert_eq!(processes(true, &[7]), Some(0.5));
        assert_eq!(processes(true, &[7, 8]), Some(0.5));
        assert_eq!(processes(true, &[7, 9]), Some(2.0));
        assert_eq!(processes(false, &[9, 11]), Some(1.7));
        assert_eq!(processes(true, &[10]), None);
        assert_eq!(processes(true, &[7, 10]), None);
        assert_eq!(processes(true, &[99]), None);
    }

    #[test]
    fn processes_are_asked_where_the_hierarchy_has_no_controller_for_cpu_time() {
        assert_eq!(cgroups(true, &["free"]), Some(0.5));
        assert_eq!(cgroups(true, &["a", "free"]), Some(2.0));
    }
}
