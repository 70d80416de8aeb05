//! Cgroups of our own.

use super::support::{Skip, probe};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A cgroup that is removed again, with all below it.
pub(crate) struct Cgroup {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl Cgroup {
    /// A new one at the top, with these in it.
    pub(crate) fn make(test: &str, below: &[&str]) -> Result<Cgroup, Skip> {
        probe::cgroup_events()?;
        // Asked anew each time: a test of the machine mounts another hierarchy.
        let mount = probe::cgroup_hierarchy()?.mount;
        probe::cgroups()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("whit-stat-{}-{number}-{test}", std::process::id());
        let path = mount.join(&name);
        fs::create_dir(&path).expect("make a cgroup");
        let group = Cgroup { path, name };
        below.iter().for_each(|child| drop(group.child(child)));
        Ok(group)
    }

    /// Makes one in it; gives its name.
    pub(crate) fn child(&self, name: &str) -> String {
        fs::create_dir(self.path.join(name)).expect("make a cgroup in a cgroup of ours");
        self.of(name)
    }

    /// The name of one in it.
    pub(crate) fn of(&self, child: &str) -> String {
        format!("{}/{child}", self.name)
    }

    /// A line of a shell that moves the shell to a child.
    pub(crate) fn go_to(&self, child: &str) -> String {
        format!("echo $$ > {}/cgroup.procs", self.path.join(child).display())
    }

    /// A shell command that works in a child of this cgroup.
    pub(crate) fn work_in(&self, child: &str) -> String {
        let dd = "dd if=/dev/zero of=/dev/null bs=1M count=20 status=none";
        format!("sh -c '{}; {dd}; {dd}'", self.go_to(child))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The kernel takes a moment to let go of tasks that have ended.
fn remove(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let is_busy = |error: std::io::Error| error.kind() == ErrorKind::ResourceBusy;
    whit_testing::wait::is_soon(|| !fs::remove_dir(directory).is_err_and(is_busy));
}
