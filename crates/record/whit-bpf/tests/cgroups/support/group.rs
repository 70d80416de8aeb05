//! Cgroups that the tests make, and remove again.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use whit_bpf::cgroup::Cgroup;

use super::{Skip, probe};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A hierarchy: where it is mounted.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy(pub(crate) PathBuf);

impl Hierarchy {
    /// The one that the kernel counts by.
    pub(crate) fn of_perf_events() -> Result<Hierarchy, Skip> {
        probe::cgroups()?;
        Ok(Hierarchy(probe::cgroup_hierarchy()?.mount))
    }

    /// A new cgroup at its top.
    pub(crate) fn make(&self) -> Group {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("whit-bpf-test-{}-{number}", std::process::id());
        fs::create_dir(self.0.join(&name)).expect("make a cgroup");
        Group { mount: self.0.clone(), path: format!("/{name}") }
    }
}

/// A cgroup, removed with all below it in the end.
#[derive(Debug)]
pub(crate) struct Group {
    mount: PathBuf,
    path: String,
}

impl Group {
    pub(crate) fn directory(&self) -> PathBuf {
        self.mount.join(&self.path[1..])
    }

    pub(crate) fn child(&self, name: &str) -> Group {
        let child = Group { mount: self.mount.clone(), path: format!("{}/{name}", self.path) };
        fs::create_dir(child.directory()).expect("make a cgroup");
        child
    }

    /// So many, each in the one before.
    pub(crate) fn nest(&self, depth: usize) -> Vec<Group> {
        let mut nested: Vec<Group> = Vec::new();
        for _ in 0..depth {
            let child = nested.last().unwrap_or(self).child("n");
            nested.push(child);
        }
        nested
    }

    pub(crate) fn watched(&self) -> Cgroup {
        let id = fs::metadata(self.directory()).expect("look at a cgroup").ino();
        Cgroup { id, path: self.path.clone() }
    }

    pub(crate) fn procs(&self) -> PathBuf {
        self.directory().join("cgroup.procs")
    }

    /// Moves a process here.
    pub(crate) fn take(&self, pid: u32) {
        fs::write(self.procs(), pid.to_string()).expect("move a process");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.directory());
    }
}

/// The kernel takes a moment to let go of tasks that have ended.
fn remove(directory: &Path) {
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove(&entry.path());
    }
    let is_busy = |error: std::io::Error| error.kind() == ErrorKind::ResourceBusy;
    whit_testing::wait::is_soon(|| !fs::remove_dir(directory).is_err_and(is_busy));
}
