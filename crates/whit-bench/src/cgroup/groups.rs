//! The cgroups of a run: siblings below a parent.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use whit_capture::cgroup::Hierarchy;
use whit_capture::roots::Roots;

use crate::Error;

/// Tries to remove a cgroup whose last task ended just now.
const REMOVALS_MAX: u32 = 1000;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A parent with its children, removed when dropped.
#[derive(Debug)]
pub(super) struct Groups {
    /// Its name for `-G`.
    pub(super) parent: String,
    /// Theirs.
    pub(super) children: Vec<String>,
    directory: PathBuf,
}

impl Groups {
    /// Makes them in the hierarchy that perf events are counted by.
    pub(super) fn make(children: usize) -> Result<Groups, Error> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = format!("whit-bench-{}-{number}", std::process::id());
        let directory = Hierarchy::find(&Roots::default())?.path(&parent);
        fs::create_dir(&directory).map_err(Error::file("create the cgroup", &directory))?;
        let mut groups = Groups { parent, children: Vec::new(), directory };
        for number in 0..children {
            let path = groups.directory.join(format!("c{number}"));
            fs::create_dir(&path).map_err(Error::file("create the cgroup", &path))?;
            groups.children.push(format!("{}/c{number}", groups.parent));
        }
        Ok(groups)
    }

    /// The children's directories.
    pub(super) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.children.len()).map(|number| self.directory.join(format!("c{number}")))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.directories().for_each(|child| remove(&child));
        remove(&self.directory);
    }
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
