//! Cgroups by name: where they are mounted, and the directory that stands for one.
//!
//! The kernel asks for a descriptor of the cgroup's directory in the hierarchy that has the
//! `perf_event` controller: a version 1 mount where there is one, else that of version 2, which
//! always has it (`Documentation/admin-guide/cgroup-v2.rst`, «perf_event»).

mod of_process;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::hash::Hash;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
use whit_sys::{Errno, OpenFlags, PerfEventFd};
use whit_types::SoftwareEvent;

use crate::error::HostError;
use crate::list_cut::{CGROUPS_MAX, DEPTH_MAX, ListCut};
use crate::roots::Roots;

/// Where the hierarchy that knows perf events is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    mount: PathBuf,
}

/// A mounted hierarchy, whatever its controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedHierarchy {
    /// Mount point of the hierarchy.
    pub hierarchy: Hierarchy,
    /// Its controllers; `None` for version 2, whose controllers do not tell it from others.
    pub controllers: Option<Vec<String>>,
}

/// A cgroup as records name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// The kernel's id: its inode.
    pub id: u64,
    /// From the root of the hierarchy, beginning with a slash.
    pub path: String,
}

/// The cgroups of a hierarchy, as far as they could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupList {
    /// Those that were looked at.
    pub listed: Vec<Cgroup>,
    /// Why there may be more: no further one was looked at, or one could not be.
    pub cut: Option<ListCut>,
}

impl CgroupList {
    /// All cgroups.
    ///
    /// # Errors
    ///
    /// Where there may be more than are listed.
    pub fn all(self) -> Result<Vec<Cgroup>, HostError> {
        self.cut.map_or(Ok(self.listed), |cut| Err(HostError::CgroupsCut { cut }))
    }
}

impl MountedHierarchy {
    /// The hierarchy of version 1 that limits CPU time, else that which counts it; `None` where perf events have one of
    /// version 1 of their own. It has the cgroups of containers and services where version 2 has none.
    pub fn of_cpu_time(roots: &Roots) -> Option<MountedHierarchy> {
        let mounted = Hierarchy::mounted(roots).ok()?;
        let with = |name: &str| mounted.iter().find(|one| one.has(name));
        match with("perf_event") {
            Some(_) => None,
            None => with("cpu").or_else(|| with("cpuacct")).cloned(),
        }
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().flatten().any(|name| name == controller)
    }
}

impl Hierarchy {
    /// Finds it in `/proc/self/mountinfo`.
    pub fn find(roots: &Roots) -> Result<Hierarchy, HostError> {
        let text = mountinfo(roots)?;
        let mounts = || text.lines().filter_map(parse);
        let old = mounts().find(|m| m.kind == "cgroup" && m.options.contains(&"perf_event"));
        let mount = old.or_else(|| mounts().find(|m| m.kind == "cgroup2"));
        let mount = mount.ok_or(HostError::NoCgroups)?.point;
        Ok(Hierarchy { mount })
    }

    /// All that are mounted: that of [`Hierarchy::find`] first, then that of version 2, then the others.
    ///
    /// # Errors
    ///
    /// Those of [`Hierarchy::find`].
    pub fn all(roots: &Roots) -> Result<Vec<MountedHierarchy>, HostError> {
        let counting = Hierarchy::find(roots)?;
        let mut all = Hierarchy::mounted(roots)?;
        all.sort_by_key(|one| (one.hierarchy != counting, one.controllers.is_some()));
        Ok(all)
    }

    /// All that are mounted, whether or not one of them knows perf events.
    ///
    /// # Errors
    ///
    /// The mount points cannot be read.
    pub fn mounted(roots: &Roots) -> Result<Vec<MountedHierarchy>, HostError> {
        let text = mountinfo(roots)?;
        let mut all: Vec<MountedHierarchy> = Vec::new();
        for mount in text.lines().filter_map(parse) {
            let hierarchy = Hierarchy { mount: mount.point };
            let is_known = all.iter().any(|known| known.hierarchy == hierarchy);
            let controllers = match mount.kind {
                "cgroup2" => None,
                "cgroup" => {
                    let is_controller = |option: &&&str| !is_mount_option(option);
                    Some(
                        mount
                            .options
                            .iter()
                            .filter(is_controller)
                            .map(|o| (*o).to_owned())
                            .collect(),
                    )
                }
                _ => continue,
            };
            if !is_known {
                all.push(MountedHierarchy { hierarchy, controllers });
            }
        }
        Ok(all)
    }

    /// Where it is mounted.
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The directory of a cgroup.
    pub fn open(&self, name: &str) -> Result<File, HostError> {
        let path = self.path(name);
        File::open(&path).and_then(is_directory).map_err(|source| HostError::Cgroup {
            name: name.to_owned(),
            path,
            mount: self.mount.clone(),
            source,
        })
    }

    /// The directories of cgroups in which events are to be opened.
    ///
    /// # Errors
    ///
    /// Those of [`Hierarchy::open`] and [`Hierarchy::check_states`].
    pub fn open_all<N>(
        &self,
        names: impl Iterator<Item = N> + Clone,
    ) -> Result<HashMap<N, File>, HostError>
    where
        N: AsRef<str> + Eq + Hash,
    {
        self.check_states(names.clone())?;
        let mut all = HashMap::new();
        for name in names {
            if let Entry::Vacant(vacant) = all.entry(name) {
                let directory = self.open(vacant.key().as_ref())?;
                vacant.insert(directory);
            }
        }
        Ok(all)
    }

    /// Whether the kernel counts in these cgroups.
    ///
    /// # Errors
    ///
    /// [`HostError::CgroupsWithoutState`]: in a version 2 hierarchy cgroups get their
    /// `perf_event` state when a first other controller is switched on in its root.
    pub fn check_states(
        &self,
        mut names: impl Iterator<Item = impl AsRef<str>>,
    ) -> Result<(), HostError> {
        // All have it or none, but for the root, which always has.
        let Some(name) = names.find(|name| self.path(name.as_ref()) != self.mount) else {
            return Ok(());
        };
        if !has_state(self.open(name.as_ref())?.as_fd()) {
            // One that has just been removed has none either.
            self.open(name.as_ref())?;
            return Err(HostError::CgroupsWithoutState { mount: self.mount.clone() });
        }
        Ok(())
    }

    /// The cgroup of a name, by its id and the one path that it has.
    pub fn cgroup(&self, name: &str) -> Result<Cgroup, HostError> {
        let error = |source| HostError::Cgroup {
            name: name.to_owned(),
            path: self.path(name),
            mount: self.mount.clone(),
            source,
        };
        let directory = self.open(name)?;
        let id = directory.metadata().map_err(error)?.ino();
        let path = self.path(name).canonicalize().map_err(error)?;
        let mount = self.mount.canonicalize().map_err(error)?;
        let inside =
            path.strip_prefix(&mount).map_err(|_| error(io::ErrorKind::NotFound.into()))?;
        Ok(Cgroup { id, path: format!("/{}", inside.display()) })
    }

    /// Where a cgroup is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        // Names are paths in the hierarchy; the path of the directory itself is understood as well.
        match Path::new(name).strip_prefix(&self.mount) {
            Ok(inside) => self.mount.join(inside),
            Err(_) => self.mount.join(name.trim_start_matches('/')),
        }
    }

    /// The cgroups there are now. Those that go meanwhile are left out.
    pub fn list(&self) -> CgroupList {
        self.list_at_most(CGROUPS_MAX)
    }

    /// Whether there is a cgroup below the root.
    pub fn has_cgroups(&self) -> bool {
        let entries = std::fs::read_dir(&self.mount).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    }

    fn list_at_most(&self, max: usize) -> CgroupList {
        let mut list = CgroupList::default();
        self.collect(&self.mount, 0, max, &mut list);
        list
    }

    fn collect(&self, directory: &Path, depth: usize, max: usize, list: &mut CgroupList) {
        let Ok(metadata) = std::fs::metadata(directory) else { return };
        let inside = directory.strip_prefix(&self.mount).unwrap_or(directory);
        let path = format!("/{}", inside.display());
        list.listed.push(Cgroup { id: metadata.ino(), path });
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            // It is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => return,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                list.cut = list.cut.or(Some(ListCut::Unreadable(errno)));
                return;
            }
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let cut = match (depth < DEPTH_MAX, list.listed.len() < max) {
                (true, true) => {
                    self.collect(&entry.path(), depth + 1, max, list);
                    continue;
                }
                (false, _) => ListCut::Depth,
                (true, false) => ListCut::Number,
            };
            list.cut = list.cut.or(Some(cut));
        }
    }
}

fn is_directory(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() { Ok(file) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

fn mountinfo(roots: &Roots) -> Result<String, HostError> {
    let path = roots.proc.join("self/mountinfo");
    std::fs::read_to_string(&path).map_err(|source| HostError::Read {
        what: "mount points",
        path,
        source,
    })
}

/// Options of a mount of version 1 that are no controllers (`cgroup1_show_options`).
fn is_mount_option(option: &str) -> bool {
    const OPTIONS: [&str; 8] = [
        "rw",
        "ro",
        "noprefix",
        "xattr",
        "cpuset_v2_mode",
        "favordynmods",
        "clone_children",
        "nofavordynmods",
    ];
    OPTIONS.contains(&option) || option.contains('=')
}

/// Whether the kernel keeps a `perf_event` state for the cgroup of this directory, without
/// which it opens no event there. Other reasons for not opening one do not count.
fn has_state(directory: BorrowedFd<'_>) -> bool {
    let attr = Attr {
        pmu_type: pmu_type::SOFTWARE,
        config: SoftwareEvent::Dummy.config(),
        flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    // The cgroup is looked at before the CPU is.
    let flags = OpenFlags { pid_is_cgroup: true };
    let opened = PerfEventFd::open(&attr.to_bytes(), directory.as_raw_fd(), 0, None, flags);
    !matches!(opened, Err(Errno::NOENT))
}

/// The parts of a line of mountinfo.
struct Mount<'a> {
    point: PathBuf,
    kind: &'a str,
    options: Vec<&'a str>,
}

/// Format: `proc_pid_mountinfo(5)`. Fields before ` - ` vary in number.
fn parse(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let point = unescape(before.split(' ').nth(4)?);
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?.split(',').collect());
    Some(Mount { point: point.into(), kind, options })
}

/// Blanks and the like are written as `\` and three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                out.push(char::from(code));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mountinfo: &str) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("self")).unwrap();
        let text = mountinfo.replace("MOUNT", &dir.path().display().to_string());
        std::fs::write(dir.path().join("self/mountinfo"), text).unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        (dir, roots)
    }

    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 31 0:38 / MOUNT/my\\040groups rw,relatime shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_hierarchy_that_knows_perf_events_is_found() {
        let (dir, roots) = machine(HYBRID);
        let mount = dir.path().join("my groups");
        assert_eq!(Hierarchy::find(&roots).unwrap(), Hierarchy { mount });
        let old = "33 31 0:30 / /mnt/perf rw - cgroup cgroup rw,cpuset,perf_event\n";
        let (_dir, roots) = machine(&format!("{HYBRID}{old}"));
        assert_eq!(Hierarchy::find(&roots).unwrap(), Hierarchy { mount: "/mnt/perf".into() });
        let (_dir, roots) = machine("");
        assert!(matches!(Hierarchy::find(&roots), Err(HostError::NoCgroups)));
    }

    #[test]
    fn the_hierarchy_of_cpu_time_counts_where_perf_events_have_none_of_version_1() {
        let found = |lines: &str| {
            let (_dir, roots) = machine(lines);
            MountedHierarchy::of_cpu_time(&roots).map(|one| one.hierarchy.mount)
        };
        assert_eq!(found(HYBRID), Some("/sys/fs/cgroup/cpu".into()));
        let line =
            |mount: &str, names: &str| format!("9 1 0:9 / {mount} rw - cgroup cgroup rw,{names}\n");
        assert_eq!(found(&line("/both", "cpu,cpuacct")), Some("/both".into()));
        assert_eq!(found(&line("/counts", "cpuacct")), Some("/counts".into()));
        let both = line("/counts", "cpuacct") + &line("/limits", "cpu");
        assert_eq!(found(&both), Some("/limits".into()));
        assert_eq!(found(&(both + &line("/perf", "perf_event"))), None);
        assert_eq!(found(&line("/memory", "memory")), None);
    }

    #[test]
    fn all_hierarchies_are_known_with_their_controllers() {
        let named =
            "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n";
        let two = "43 31 0:40 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n";
        let (dir, roots) = machine(&format!("{two}{named}{HYBRID}{two}"));
        let found = Hierarchy::all(&roots).unwrap().into_iter().map(|one| {
            (one.hierarchy.mount().to_owned(), one.controllers.map(|names| names.join(" ")))
        });
        let version_1 = |mount: &str, names: &str| (PathBuf::from(mount), Some(names.to_owned()));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                (dir.path().join("my groups"), None),
                version_1("/sys/fs/cgroup/cpu,cpuacct", "cpu cpuacct"),
                version_1("/sys/fs/cgroup/systemd", ""),
                version_1("/sys/fs/cgroup/cpu", "cpu"),
            ]
        );
    }

    #[test]
    fn cgroups_are_opened_and_listed_by_their_path() {
        let (dir, roots) = machine(HYBRID);
        let mount = dir.path().join("my groups");
        std::fs::create_dir_all(mount.join("a/b")).unwrap();
        std::fs::write(mount.join("cgroup.procs"), "").unwrap();
        let hierarchy = Hierarchy::find(&roots).unwrap();
        for name in ["a/b", "/a/b", &mount.join("a/b").display().to_string()] {
            hierarchy.open(name).unwrap();
        }
        let mut paths: Vec<_> = hierarchy.list().listed.into_iter().map(|c| c.path).collect();
        paths.sort();
        assert_eq!(paths, ["/", "/a", "/a/b"]);
        let found = |name: &str| hierarchy.cgroup(name).map(|cgroup| cgroup.path);
        assert_eq!(found("a/../a/b/").unwrap(), "/a/b");
        assert_eq!(found("/").unwrap(), "/");
        let b = Cgroup { path: "/a/b".into(), ..hierarchy.cgroup("a/b").unwrap() };
        assert!(hierarchy.list().listed.contains(&b), "the id is the same");
        assert!(found("..").is_err(), "it is outside");
        for name in ["nobody", "cgroup.procs"] {
            let error = hierarchy.open(name).unwrap_err().to_string();
            assert!(error.contains(&mount.join(name).display().to_string()), "{error}");
        }
        let opened = |names: &[&'static str]| {
            let mut names: Vec<_> =
                hierarchy.open_all(names.iter().copied())?.into_keys().collect();
            names.sort_unstable();
            Ok::<_, HostError>(names)
        };
        // The kernel refuses these directories, which are of no cgroup: another reason.
        assert_eq!(opened(&["a/b", "/", "a", "a/b"]).unwrap(), ["/", "a", "a/b"]);
        assert!(matches!(opened(&["/", "nobody"]), Err(HostError::Cgroup { .. })));
    }

    #[test]
    fn a_list_that_is_not_complete_says_why() {
        let (dir, roots) = machine(HYBRID);
        let mount = dir.path().join("my groups");
        let deep: PathBuf = (0..DEPTH_MAX).map(|_| "d").collect();
        std::fs::create_dir_all(mount.join(&deep)).unwrap();
        let hierarchy = Hierarchy::find(&roots).unwrap();
        let (nr, cut) = (DEPTH_MAX + 1, |list: &CgroupList| (list.listed.len(), list.cut));
        assert_eq!(cut(&hierarchy.list()), (nr, None));
        assert_eq!(cut(&hierarchy.list_at_most(nr)), (nr, None));
        assert_eq!(cut(&hierarchy.list_at_most(nr - 1)), (nr - 1, Some(ListCut::Number)));
        std::fs::create_dir(mount.join(&deep).join("d")).unwrap();
        assert_eq!(cut(&hierarchy.list()), (nr, Some(ListCut::Depth)));
        let refused = hierarchy.list().all();
        assert!(matches!(refused, Err(HostError::CgroupsCut { cut: ListCut::Depth })));
    }

    #[test]
    fn states_of_cgroups_are_asked_for_below_the_root() {
        let (_dir, roots) = machine(HYBRID);
        let hierarchy = Hierarchy::find(&roots).unwrap();
        let root = hierarchy.path("").display().to_string();
        hierarchy.check_states(["/", "", root.as_str()].into_iter()).unwrap();
        let missing = hierarchy.check_states(["/", "a"].into_iter());
        assert!(matches!(missing, Err(HostError::Cgroup { name, .. }) if name == "a"));
        let error = HostError::CgroupsWithoutState { mount: "/sys/fs/cgroup".into() };
        let way_out = "echo +pids > /sys/fs/cgroup/cgroup.subtree_control";
        assert!(error.to_string().ends_with(way_out), "{error}");
    }
}
