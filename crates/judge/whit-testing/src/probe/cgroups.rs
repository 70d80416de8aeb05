//! Cgroups: which hierarchy the kernel counts by, and whether cgroups can be made in it.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::{Kept, Probed, once};
use crate::Skip;

/// A hierarchy of cgroups that is mounted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Whether it is the one of version 2.
    pub is_v2: bool,
}

/// The hierarchy that perf events count by: that of version 1 with the controller `perf_event`, else that
/// of version 2.
pub fn cgroup_hierarchy() -> Result<Hierarchy, Skip> {
    let found = of_perf_events(&mountinfo());
    found.ok_or_else(|| Skip("no hierarchy of cgroups is mounted".to_owned()))
}

/// The hierarchy of version 2.
pub fn cgroups_v2() -> Result<PathBuf, Skip> {
    let found = find(&mountinfo(), "cgroup2", "");
    let mount = found.ok_or_else(|| Skip("cgroups of version 2 are not mounted".to_owned()))?;
    may_make(&mount).map_err(Skip)?;
    Ok(mount)
}

/// The hierarchy of version 1 with this controller, and the mounts of version 2.
pub fn cgroups_v1(controller: &str) -> Result<(PathBuf, Vec<PathBuf>), Skip> {
    let mounts = mountinfo();
    let found = find(&mounts, "cgroup", controller);
    let mount = found.ok_or_else(|| Skip(format!("{controller} is not mounted as version 1")))?;
    may_make(&mount).map_err(Skip)?;
    Ok((mount, mounts.lines().filter_map(|line| find(line, "cgroup2", "")).collect()))
}

/// Whether this user can make cgroups in the hierarchy that perf events count by.
pub fn cgroups() -> Probed {
    static KEPT: Kept = OnceLock::new();
    once(&KEPT, || may_make(&cgroup_hierarchy().map_err(|Skip(reason)| reason)?.mount))
}

fn may_make(mount: &std::path::Path) -> Result<(), String> {
    let made = tempfile::Builder::new().prefix("whit-probe-").tempdir_in(mount);
    let made = made.map_err(|error| format!("no cgroup can be made here: {error}"))?;
    // Files of a cgroup cannot be removed one by one, as the temporary directory would do.
    let path = made.keep();
    fs::remove_dir(&path).map_err(|error| format!("{} stays: {error}", path.display()))
}

fn mountinfo() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

fn of_perf_events(mounts: &str) -> Option<Hierarchy> {
    let v1 = find(mounts, "cgroup", "perf_event").map(|mount| Hierarchy { mount, is_v2: false });
    v1.or_else(|| find(mounts, "cgroup2", "").map(|mount| Hierarchy { mount, is_v2: true }))
}

/// The mount of a file system of this type with this option, of any where that is empty.
fn find(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    let line = mounts.lines().find(|line| {
        let (_, after) = line.split_once(" - ").unwrap_or_default();
        let has = |word: &str| after.split([' ', ',']).any(|other| other == word);
        after.split(' ').next() == Some(kind) && (option.is_empty() || has(option))
    })?;
    line.split(' ').nth(4).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
30 29 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
31 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";
    const OLD: &str = "32 29 0:27 / /sys/fs/cgroup/perf rw - cgroup cgroup rw,perf_event\n";

    #[test]
    fn the_controller_decides_which_hierarchy_counts() {
        let hybrid = of_perf_events(HYBRID).unwrap();
        assert_eq!(hybrid, Hierarchy { mount: "/sys/fs/cgroup/unified".into(), is_v2: true });
        let old = of_perf_events(&format!("{HYBRID}{OLD}")).unwrap();
        assert_eq!(old, Hierarchy { mount: "/sys/fs/cgroup/perf".into(), is_v2: false });
        assert_eq!(of_perf_events("1 2 0:3 / / rw - ext4 /dev/vda rw\n"), None);
    }
}
