//! The cgroups of a process, for controllers that limit it.

use super::MountedHierarchy;
use std::path::PathBuf;

impl MountedHierarchy {
    /// The directory of a process's cgroup, by the text of its `/proc/PID/cgroup` (`cgroups(7)`). `None` in a hierarchy
    /// of version 1 without the controller.
    pub(crate) fn cgroup_of_process(&self, text: &str, controller: &str) -> Option<PathBuf> {
        if self.controllers.as_deref().is_some_and(|all| all.iter().all(|one| one != controller)) {
            return None;
        }
        let path = text.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            let is_meant = match self.controllers {
                Some(_) => controllers.split(',').any(|one| one == controller),
                None => number == "0" && controllers.is_empty(),
            };
            is_meant.then_some(path)
        })?;
        let mount = self.hierarchy.mount();
        let directory = mount.join(path.trim_start_matches('/'));
        // A mount in a container begins at a cgroup that the path still names.
        Some(if directory.is_dir() { directory } else { mount.to_owned() })
    }
}
