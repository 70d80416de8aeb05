//! The limit that cgroups set to the memory of this process.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup::Hierarchy;
use crate::roots::Roots;

/// Limits beyond that are none: version 1 has a large number where nothing is limited.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The smallest limit of the process's cgroup and those above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// Memory of all processes in it, that of the kernel for them included.
    pub bytes: u64,
    /// The directory of the cgroup that has the limit.
    pub cgroup: PathBuf,
}

impl MemoryLimit {
    /// `None` where nothing limits the memory of this process.
    pub fn of_self(roots: &Roots) -> Option<MemoryLimit> {
        let own = fs::read_to_string(roots.proc.join("self/cgroup")).ok()?;
        let mounted = Hierarchy::mounted(roots).ok()?;
        let limits = mounted.iter().filter_map(|one| {
            let file = match one.controllers {
                None => "memory.max",
                Some(_) => "memory.limit_in_bytes",
            };
            let own = one.cgroup_of_process(&own, "memory")?;
            Some(limits_above(one.hierarchy.mount(), &own, file))
        });
        limits.flatten().min_by_key(|limit| limit.bytes)
    }

    /// Processes that the kernel ended in the cgroup, since it had no memory left.
    pub fn kills(&self) -> u64 {
        let counts = ["memory.events", "memory.oom_control"];
        let texts = counts.iter().filter_map(|it| fs::read_to_string(self.cgroup.join(it)).ok());
        let count = |text: String| {
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        };
        texts.filter_map(count).max().unwrap_or(0)
    }
}

/// Those of a cgroup and all above it.
fn limits_above(mount: &Path, own: &Path, file: &str) -> Vec<MemoryLimit> {
    let cgroups = own.ancestors().take_while(|cgroup| cgroup.starts_with(mount));
    cgroups
        .filter_map(|cgroup| {
            let text = fs::read_to_string(cgroup.join(file)).ok()?;
            let bytes = text.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT_BYTES)?;
            Some(MemoryLimit { bytes, cgroup: cgroup.to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with a hierarchy, and this process in `a/b` of it.
    fn machine(kind: &str, options: &str, own: &str) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().join("proc"), ..Roots::default() };
        fs::create_dir_all(roots.proc.join("self")).unwrap();
        let mount = dir.path().join("cgroup");
        fs::create_dir_all(mount.join("a/b")).unwrap();
        let line = format!("30 1 0:1 / {} rw - {kind} none rw,{options}\n", mount.display());
        fs::write(roots.proc.join("self/mountinfo"), line).unwrap();
        fs::write(roots.proc.join("self/cgroup"), own).unwrap();
        (dir, roots)
    }

    #[test]
    fn the_smallest_limit_above_counts() {
        let (dir, roots) = machine("cgroup2", "", "0::/a/b\n");
        let put = |path: &str, text: &str| fs::write(dir.path().join("cgroup").join(path), text);
        assert_eq!(MemoryLimit::of_self(&roots), None);
        put("a/b/memory.max", "max\n").unwrap();
        assert_eq!(MemoryLimit::of_self(&roots), None);
        put("a/memory.max", "134217728\n").unwrap();
        put("a/b/memory.max", "268435456\n").unwrap();
        let limit = MemoryLimit::of_self(&roots).unwrap();
        assert_eq!((limit.bytes, &limit.cgroup), (128 << 20, &dir.path().join("cgroup/a")));
        assert_eq!(limit.kills(), 0);
        put("a/memory.events", "low 0\noom 7\noom_kill 3\n").unwrap();
        assert_eq!(limit.kills(), 3);
    }

    #[test]
    fn version_1_has_a_number_where_nothing_is_limited() {
        let own = "9:cpu:/\n4:memory:/a/b\n0::/\n";
        let (dir, roots) = machine("cgroup", "memory", own);
        let put = |path: &str, text: &str| fs::write(dir.path().join("cgroup").join(path), text);
        put("a/b/memory.limit_in_bytes", "9223372036854771712\n").unwrap();
        assert_eq!(MemoryLimit::of_self(&roots), None);
        put("a/b/memory.limit_in_bytes", "1048576\n").unwrap();
        put("a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n").unwrap();
        let limit = MemoryLimit::of_self(&roots).unwrap();
        assert_eq!((limit.bytes, limit.kills()), (1 << 20, 2));
    }

    #[test]
    fn a_container_has_its_own_cgroup_at_the_mount() {
        let (dir, roots) = machine("cgroup2", "", "0::/docker/x\n");
        fs::write(dir.path().join("cgroup/memory.max"), "5000000").unwrap();
        assert_eq!(MemoryLimit::of_self(&roots).map(|it| it.bytes), Some(5_000_000));
    }
}
