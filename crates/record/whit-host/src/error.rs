//! Reasons why a requested target cannot be found on this machine.

use std::io;
use std::path::{Path, PathBuf};

use whit_types::{OutsideText, Pid, Tid};

use crate::list_cut::ListCut;

/// A target that cannot be found, with the remedy.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum HostError {
    /// Neither a command nor a target.
    #[error("nothing to record: give a command, or -a, -p, -t or -C")]
    NothingToRecord,
    /// `-p` names nobody.
    #[error("there is no process {}", pid.0)]
    NoSuchProcess { pid: Pid },
    /// `-p` has a name that no process has.
    #[error("there is no process with the name {name}{}", near_list(.near))]
    NoProcessNamed { name: OutsideText, near: Vec<String> },
    /// `-p` has a name that several processes have.
    #[error(
        "{count} processes have the name {name}: {}{}; give an ID with -p, or record all of them with --comm {name}",
        .listed.join(", "),
        if *.count > .listed.len() { ", …" } else { "" }
    )]
    SeveralProcessesNamed { name: OutsideText, count: usize, listed: Vec<String> },
    /// `-t` names nobody.
    #[error("there is no thread {}", tid.0)]
    NoSuchThread { tid: Tid },
    /// `-C` names CPUs that do not run.
    #[error("CPU {wanted} is not online; online are {online}")]
    CpusNotOnline { wanted: String, online: String },
    /// `-u` names a user without processes.
    #[error("user {uid} has no process that could be recorded")]
    NoProcessOfUser { uid: u32 },
    /// No cgroup hierarchy.
    #[error("no cgroup file system is mounted (mount one: mount -t cgroup2 none /sys/fs/cgroup)")]
    NoCgroups,
    /// A name that chooses nobody.
    #[error(
        "{option} {name}: there is no such {what} here{}; {}",
        near_list(.near),
        list_command(.what, .mount)
    )]
    NothingNamed {
        option: &'static str,
        name: OutsideText,
        what: &'static str,
        near: Vec<String>,
        mount: PathBuf,
    },
    /// Names in hierarchies that have nothing in common.
    #[error(
        "{first} is a cgroup below {}, and {second} is none there: name cgroups of one hierarchy, or make two recordings",
        mount.display()
    )]
    SeveralHierarchies { first: OutsideText, second: OutsideText, mount: PathBuf },
    /// A hierarchy without a controller.
    #[error(
        "{name} is a cgroup below {}, a hierarchy without controllers, to which neither perf events nor BPF programs can be \
         limited: name a cgroup of another hierarchy, or record processes (-p)",
        mount.display()
    )]
    NotFilterable { name: OutsideText, mount: PathBuf },
    /// A cgroup that is not there.
    #[error("cannot open cgroup '{name}': looked for {} ({})", path.display(), list_cgroups(.mount))]
    Cgroup { name: String, path: PathBuf, mount: PathBuf, source: io::Error },
    /// The kernel counts in no cgroup of the hierarchy.
    #[error(
        "the kernel counts in no cgroup below {mount} before a first controller is switched on \
         there: echo +pids > {mount}/cgroup.subtree_control", mount = mount.display()
    )]
    CgroupsWithoutState { mount: PathBuf },
    /// Patterns that choose cgroups may miss some.
    #[error("not all cgroups are known that a pattern may choose: {cut}")]
    CgroupsCut { cut: ListCut },
    /// A file of the kernel cannot be read.
    #[error("cannot read {what} from {}", path.display())]
    Read { what: &'static str, path: PathBuf, source: io::Error },
}

fn list_cgroups(mount: &Path) -> String {
    format!("to list cgroups: find {} -type d", mount.display())
}

/// The command that lists the things of this kind.
fn list_command(kind: &str, mount: &Path) -> String {
    match kind {
        "unit" => "to list units: systemctl list-units --all".to_owned(),
        _ => list_cgroups(mount),
    }
}

fn near_list(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; near names: {}", names.join(", ")),
    }
}

impl HostError {
    /// Whether the command line is at fault, whatever the machine.
    pub fn is_wrong_usage(&self) -> bool {
        matches!(self, HostError::NothingToRecord)
    }
}
