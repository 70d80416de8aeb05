//! Targets by name: cgroups, containers and units, and names of threads.
//!
//! A name of a cgroup means the cgroup with all below it, so that of nested ones the outermost counts. All names of one
//! recording are of one hierarchy: the first in which each name chooses something, beginning with that of perf events.

use std::collections::BTreeSet;

use whit_types::{CgroupPath, OutsideText, short_container_id};

use crate::cgroup::{Cgroup, Hierarchy, MountedHierarchy};
use crate::error::HostError;
use crate::processes::{self, Status};
use crate::roots::Roots;

/// Bytes of a thread's name, without its end; the kernel cuts longer ones (`TASK_COMM_LEN`).
pub const NAME_MAX_BYTES: usize = 15;
/// Names that a message lists.
const NEAR_MAX: usize = 5;
/// A name with more edits than this is not near.
const EDITS_MAX: usize = 3;

/// Names as the user gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Paths, or the name of any cgroup, container, pod or unit.
    pub cgroups: Vec<String>,
    /// Containers, by their ids.
    pub containers: Vec<String>,
    /// systemd's units.
    pub units: Vec<String>,
    /// Threads.
    pub comms: Vec<String>,
}

/// Those that are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Threads in these cgroups and below; `None` for threads in any.
    pub cgroups: Option<ChosenCgroups>,
    /// Threads with these names, and those of processes with these names; empty for threads with any.
    pub comms: Vec<OutsideText>,
}

/// Cgroups of one hierarchy, none below another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenCgroups {
    /// The hierarchy that has all of them.
    pub mounted: MountedHierarchy,
    /// The chosen cgroups; none is below another.
    pub cgroups: Vec<Cgroup>,
}

/// Something about a name that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameNote {
    /// Several cgroups go by it.
    Several {
        /// The name as it was given.
        name: OutsideText,
        /// Their paths.
        paths: Vec<OutsideText>,
    },
    /// No thread has it yet.
    NoneYet {
        /// The name as the kernel keeps it.
        name: OutsideText,
        /// Names that threads have.
        near: Vec<String>,
    },
}

/// The part of a cgroup's path that a name is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cgroup,
    Container,
    Unit,
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Kind::Cgroup => "--cgroup",
            Kind::Container => "--container",
            Kind::Unit => "--unit",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Kind::Cgroup => "cgroup",
            Kind::Container => "container",
            Kind::Unit => "unit",
        }
    }

    fn is_named(self, path: &str, name: &str) -> bool {
        match self {
            Kind::Cgroup => CgroupPath(path).is_within(name),
            Kind::Container => CgroupPath(path).is_container(name),
            Kind::Unit => CgroupPath(path).is_unit(name),
        }
    }

    /// The names that would have chosen this cgroup.
    fn names_of(self, path: &str) -> Vec<&str> {
        match self {
            Kind::Cgroup => path.rsplit('/').next().into_iter().chain([path]).collect(),
            Kind::Container => {
                CgroupPath(path).container().map(short_container_id).into_iter().collect()
            }
            Kind::Unit => CgroupPath(path).unit().into_iter().collect(),
        }
    }
}

impl Chosen {
    /// How many cgroups and names of threads there are.
    pub fn count(&self) -> u64 {
        let cgroups = self.cgroups.as_ref().map_or(0, |chosen| chosen.cgroups.len());
        (cgroups + self.comms.len()) as u64
    }
}

impl Names {
    /// Whether none is given.
    pub fn is_empty(&self) -> bool {
        let Names { cgroups, containers, units, comms } = self;
        [cgroups, containers, units, comms].iter().all(|names| names.is_empty())
    }

    fn of_cgroups(&self) -> Vec<(Kind, &str)> {
        let lists = [
            (Kind::Cgroup, &self.cgroups),
            (Kind::Container, &self.containers),
            (Kind::Unit, &self.units),
        ];
        let each = lists
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| (kind, name.as_str())));
        each.collect()
    }

    /// Finds those that go by the names now.
    ///
    /// # Errors
    ///
    /// Where a name of a cgroup chooses nothing, or nothing that can be recorded with the others.
    pub fn resolve(&self, roots: &Roots) -> Result<(Chosen, Vec<NameNote>), HostError> {
        let mut notes = Vec::new();
        let names = self.of_cgroups();
        let cgroups = match names.is_empty() {
            true => None,
            false => Some(find_cgroups(&names, roots, &mut notes)?),
        };
        let comms = self.comms.iter().map(|name| cut(name)).collect::<BTreeSet<_>>();
        let comms: Vec<_> = comms.into_iter().map(OutsideText::from).collect();
        notes.extend(unknown_comms(&comms, roots)?);
        Ok((Chosen { cgroups, comms }, notes))
    }
}

/// A name as the kernel keeps it.
fn cut(name: &str) -> String {
    let mut end = name.len().min(NAME_MAX_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// The cgroups of one hierarchy that these names choose.
fn find_cgroups(
    names: &[(Kind, &str)],
    roots: &Roots,
    notes: &mut Vec<NameNote>,
) -> Result<ChosenCgroups, HostError> {
    let mut known = BTreeSet::new();
    // The hierarchy in which the most names choose something, and the first name that does not.
    let mut best: Option<(usize, MountedHierarchy)> = None;
    for mounted in Hierarchy::all(roots)? {
        let list = mounted.hierarchy.list().listed;
        let found: Vec<_> = names
            .iter()
            .map(|(kind, name)| chosen(&mounted.hierarchy, &list, *kind, name))
            .collect();
        let first_missing = found.iter().position(Vec::is_empty);
        let is_filterable = mounted.controllers.as_ref().is_none_or(|names| !names.is_empty());
        match first_missing {
            None if is_filterable => {
                notes.extend(names.iter().zip(&found).filter_map(several));
                return Ok(ChosenCgroups { mounted, cgroups: outermost(found.concat()) });
            }
            missing => {
                let count = missing.unwrap_or(names.len());
                if best.as_ref().is_none_or(|(most, _)| count > *most) {
                    best = Some((count, mounted));
                }
            }
        }
        known.extend(list.into_iter().map(|cgroup| cgroup.path));
    }
    let (count, mounted) = best.unwrap_or((0, Hierarchy::all(roots)?.remove(0)));
    let mount = mounted.hierarchy.mount().to_owned();
    let name = |number: usize| OutsideText::from(names[number].1.to_owned());
    Err(match count {
        all if all == names.len() => HostError::NotFilterable { name: name(0), mount },
        missing if is_somewhere(names[missing], roots)? => {
            HostError::SeveralHierarchies { first: name(0), second: name(missing), mount }
        }
        missing => {
            let (kind, name) = names[missing];
            let candidates = known.iter().flat_map(|path| kind.names_of(path));
            HostError::NothingNamed {
                option: kind.option(),
                name: OutsideText::from(name.to_owned()),
                what: kind.what(),
                near: near(name, candidates),
                mount,
            }
        }
    })
}

fn is_somewhere((kind, name): (Kind, &str), roots: &Roots) -> Result<bool, HostError> {
    let all = Hierarchy::all(roots)?;
    Ok(all
        .iter()
        .any(|one| !chosen(&one.hierarchy, &one.hierarchy.list().listed, kind, name).is_empty()))
}

/// The cgroups that a name chooses, the outermost only.
fn chosen(hierarchy: &Hierarchy, list: &[Cgroup], kind: Kind, name: &str) -> Vec<Cgroup> {
    // With a slash it is a path, as perf has it.
    if kind == Kind::Cgroup && name.contains('/') {
        return hierarchy.cgroup(name).into_iter().collect();
    }
    let named = list.iter().filter(|cgroup| kind.is_named(&cgroup.path, name));
    outermost(named.cloned().collect())
}

/// Without those that are below another.
fn outermost(mut cgroups: Vec<Cgroup>) -> Vec<Cgroup> {
    cgroups.sort_by(|a, b| a.path.cmp(&b.path));
    cgroups.dedup();
    let mut kept: Vec<Cgroup> = Vec::new();
    for cgroup in cgroups {
        if !kept.iter().any(|around| CgroupPath(&cgroup.path).is_within(&around.path)) {
            kept.push(cgroup);
        }
    }
    kept
}

fn several(((_, name), found): (&(Kind, &str), &Vec<Cgroup>)) -> Option<NameNote> {
    let paths = || found.iter().map(|cgroup| OutsideText::from(cgroup.path.clone())).collect();
    let name = || OutsideText::from((*name).to_owned());
    (found.len() > 1).then(|| NameNote::Several { name: name(), paths: paths() })
}

/// Names that no thread has now.
fn unknown_comms(comms: &[OutsideText], roots: &Roots) -> Result<Vec<NameNote>, HostError> {
    if comms.is_empty() {
        return Ok(Vec::new());
    }
    let mut running = BTreeSet::new();
    for pid in processes::all(roots)? {
        for tid in processes::threads(roots, pid) {
            let status = Status::read(roots, pid, tid);
            running.extend(status.map(|s| String::from_utf8_lossy(&s.name).into_owned()));
        }
    }
    let unknown = comms.iter().filter(|name| !running.contains(name.exact()));
    let note = |name: &OutsideText| NameNote::NoneYet {
        name: name.clone(),
        near: near(name.exact(), running.iter().map(String::as_str)),
    };
    Ok(unknown.map(note).collect())
}

/// Names that are like this one, escaped, the nearest first.
pub(crate) fn near<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Vec<String> {
    let lowered = name.to_lowercase();
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let is_part = lowered.len() >= EDITS_MAX && candidate.contains(&lowered);
        if is_part { 0 } else { strsim::osa_distance(&lowered, &candidate) }
    };
    let limit = EDITS_MAX.min(name.chars().count().div_ceil(3));
    let found = candidates.filter(|candidate| !candidate.is_empty());
    let found: BTreeSet<_> = found.map(|candidate| (distance(candidate), candidate)).collect();
    let found = found.into_iter().filter(|(edits, _)| *edits <= limit).take(NEAR_MAX);
    found.map(|(_, name)| OutsideText::from(name).to_string()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ID: &str = "3f1c8a0d9be24756a1c0ffee5eed0badcafe0123456789abcdef0123456789ab";

    /// Version 2 without a state of its own, a controller of version 1, and systemd's own hierarchy.
    fn machine() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let mount = |name: &str| dir.path().join(name).display().to_string();
        let mounts = format!(
            "41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n32 31 0:29 / {} rw - cgroup cgroup rw,cpu\n\
             40 31 0:37 / {} rw - cgroup cgroup rw,name=systemd\n",
            mount("unified"),
            mount("cpu"),
            mount("systemd"),
        );
        let make = |path: &str| std::fs::create_dir_all(dir.path().join(path)).unwrap();
        for path in [
            "unified/system.slice/nginx.service/worker",
            "unified/system.slice/redis.service",
            "unified/batch/nginx.service",
            &format!("unified/docker/{ID}/init"),
            "cpu/quota/inner",
            "systemd/only-here",
        ] {
            make(path);
        }
        make("self");
        std::fs::write(dir.path().join("self/mountinfo"), mounts).unwrap();
        make("7/task/7");
        std::fs::write(dir.path().join("7/task/7/status"), "Name:\tnginx\nTgid:\t7\nPPid:\t1\n")
            .unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        (dir, roots)
    }

    fn cgroups(names: &[&str]) -> Names {
        Names { cgroups: names.iter().map(|name| (*name).to_owned()).collect(), ..Names::default() }
    }

    /// The last component of the mount, and the paths.
    fn found(names: &Names) -> Result<(String, Vec<String>), String> {
        let (_dir, roots) = machine();
        let chosen = names.resolve(&roots).map_err(|error| error.to_string())?.0;
        let ChosenCgroups { mounted, cgroups } = chosen.cgroups.expect("cgroups");
        let mount = mounted.hierarchy.mount().file_name().unwrap().to_string_lossy().into_owned();
        Ok((mount, cgroups.into_iter().map(|cgroup| cgroup.path).collect()))
    }

    fn of(mount: &str, paths: &[&str]) -> Result<(String, Vec<String>), String> {
        Ok((mount.to_owned(), paths.iter().map(|path| (*path).to_owned()).collect()))
    }

    #[test]
    fn a_name_chooses_the_outermost_cgroups_that_go_by_it() {
        let both = ["/batch/nginx.service", "/system.slice/nginx.service"];
        assert_eq!(found(&cgroups(&["nginx.service"])), of("unified", &both));
        assert_eq!(found(&cgroups(&["system.slice/nginx.service"])), of("unified", &both[1..]));
        assert_eq!(found(&cgroups(&["/"])), of("unified", &["/"]));
        let nested = cgroups(&["system.slice", "worker"]);
        assert_eq!(found(&nested), of("unified", &["/system.slice"]));
        let container = Names { containers: vec![ID[..12].to_owned()], ..Names::default() };
        assert_eq!(found(&container), of("unified", &[&format!("/docker/{ID}")]));
        let unit = Names { units: vec!["redis".to_owned()], ..Names::default() };
        assert_eq!(found(&unit), of("unified", &["/system.slice/redis.service"]));
    }

    #[test]
    fn other_hierarchies_come_after_that_of_perf_events() {
        assert_eq!(found(&cgroups(&["quota"])), of("cpu", &["/quota"]));
        let refused = found(&cgroups(&["quota", "system.slice"])).unwrap_err();
        assert!(refused.contains("name cgroups of one hierarchy"), "{refused}");
        let refused = found(&cgroups(&["only-here"])).unwrap_err();
        assert!(refused.contains("a hierarchy without controllers"), "{refused}");
    }

    #[test]
    fn a_name_that_chooses_nothing_is_answered_with_near_ones() {
        let refused = found(&cgroups(&["ngnix.service"])).unwrap_err();
        assert!(
            refused.contains("no such cgroup here; near names: nginx.service; to list"),
            "{refused}"
        );
        let unit = Names { units: vec!["rediss".to_owned()], ..Names::default() };
        let refused = found(&unit).unwrap_err();
        assert!(refused.starts_with("--unit rediss: there is no such unit"), "{refused}");
        assert!(refused.ends_with("here; to list units: systemctl list-units --all"), "{refused}");
        let refused = found(&cgroups(&["zzzzzz"])).unwrap_err();
        let start = "--cgroup zzzzzz: there is no such cgroup here; to list cgroups: find /";
        assert!(refused.starts_with(start) && refused.ends_with(" -type d"), "{refused}");
    }

    #[test]
    fn several_cgroups_and_unknown_names_are_said() {
        let (_dir, roots) = machine();
        let mut names = cgroups(&["nginx.service"]);
        names.comms = ["nginx", "nginy", "a-name-of-twenty-one"].map(str::to_owned).to_vec();
        let (chosen, notes) = names.resolve(&roots).unwrap();
        let comms: Vec<_> = chosen.comms.iter().map(OutsideText::exact).collect();
        assert_eq!(comms, ["a-name-of-twent", "nginx", "nginy"]);
        let [
            NameNote::Several { paths, .. },
            NameNote::NoneYet { .. },
            NameNote::NoneYet { near, .. },
        ] = &notes[..]
        else {
            panic!("{notes:?}")
        };
        assert_eq!((paths.len(), &near[..]), (2, &["nginx".to_owned()][..]));
    }

    #[test]
    fn the_path_of_the_directory_is_a_name() {
        let (dir, roots) = machine();
        let directory = dir.path().join("cpu/quota");
        let names = cgroups(&[&directory.display().to_string()]);
        let chosen = names.resolve(&roots).unwrap().0.cgroups.unwrap();
        assert_eq!(chosen.cgroups[0].path, "/quota");
        assert_eq!(chosen.mounted.hierarchy.mount(), Path::new(&dir.path().join("cpu")));
    }
}
