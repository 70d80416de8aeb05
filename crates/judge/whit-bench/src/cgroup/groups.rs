//! The cgroups of a run: siblings below a parent.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;

use crate::error::{self, Error};

/// Tries to remove a cgroup whose last task ended just now.
const REMOVALS_MAX: u32 = 1000;

/// Prefix of the names of all parents; the process id of the maker follows.
const PREFIX: &str = "whit-bench-";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A parent with its children, removed when dropped.
#[derive(Debug)]
pub(super) struct Groups {
    /// Its name for `-G`.
    pub(super) parent: String,
    /// Theirs.
    pub(super) children: Vec<String>,
    active: usize,
    directory: PathBuf,
}

impl Groups {
    /// Makes them in the hierarchy that perf events are counted by. The first `active` are meant to have
    /// tasks.
    pub(super) fn make(children: usize, active: usize) -> Result<Groups, Error> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = format!("{PREFIX}{}-{number}", std::process::id());
        let directory = Hierarchy::find(&Roots::default())?.path(&parent);
        fs::create_dir(&directory).map_err(error::file("create the cgroup", &directory))?;
        let mut groups = Groups { parent, children: Vec::new(), active, directory };
        for number in 0..children {
            let path = groups.directory.join(format!("c{number}"));
            fs::create_dir(&path).map_err(error::file("create the cgroup", &path))?;
            groups.children.push(format!("{}/c{number}", groups.parent));
        }
        Ok(groups)
    }

    /// Removes those that runs have left which are no more, with the tasks in them; their names.
    pub(super) fn remove_left() -> Result<Vec<String>, Error> {
        let root = Hierarchy::find(&Roots::default())?.path("");
        let entries = fs::read_dir(&root).map_err(error::file("look into", &root))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let left: Vec<String> = names.filter(|name| is_left(name, &is_running)).collect();
        for name in &left {
            remove_tree(&root.join(name));
        }
        Ok(left)
    }

    /// The parent and the children with tasks.
    pub(super) fn counting(&self) -> impl Iterator<Item = &String> {
        self.children.iter().take(self.active).chain([&self.parent])
    }

    /// The directories of the children with tasks.
    pub(super) fn active_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.directories().take(self.active)
    }

    fn directories(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.children.len()).map(|number| self.directory.join(format!("c{number}")))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.directories().for_each(|child| remove(&child));
        remove(&self.directory);
    }
}

/// Whether a cgroup of this name is of a benchmark whose process has ended.
fn is_left(name: &str, is_running: &dyn Fn(u32) -> bool) -> bool {
    let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse().ok());
    maker.is_some_and(|pid| !is_running(pid))
}

fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn remove_tree(directory: &Path) {
    // Version 2 alone has this, from Linux 5.14 on; elsewhere tasks that still run keep their cgroup.
    let _ = fs::write(directory.join("cgroup.kill"), "1");
    let children = fs::read_dir(directory).into_iter().flatten().flatten();
    children.filter(|entry| entry.path().is_dir()).for_each(|child| remove(&child.path()));
    remove(directory);
}

/// The kernel takes a moment to let go of tasks that have ended.
fn remove(directory: &Path) {
    for _ in 0..REMOVALS_MAX {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(1));
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_runs_that_are_no_more_are_known_by_their_names() {
        let is_left = |name| is_left(name, &|pid| pid == 7);
        assert!(is_left("whit-bench-8-0") && is_left("whit-bench-8-12"));
        assert!(!is_left("whit-bench-7-0") && !is_left("whit-bench-8"));
        assert!(!is_left("whit-bench-x-0") && !is_left("system.slice"));
        assert!(is_running(std::process::id()));
    }
}
