//! Processes and threads in `/proc`. A process may vanish between any two reads: every reader
//! here gives `None` or an empty list then, which is no error.

use std::path::Path;

use whit_sys::capability::Capability;
use whit_sys::privilege::{self, Raised};

use crate::roots::Roots;

/// `PROC_PID_INIT_INO` (`include/linux/proc_ns.h`).
const FIRST_NAMESPACE: u32 = 0xEFFF_FFFC;

/// What `/proc/PID/status` says of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Name, with the kernel's escapes undone.
    pub name: Vec<u8>,
    /// Process.
    pub tgid: i32,
    /// Parent process.
    pub parent: i32,
    /// A kernel thread: it has no address space.
    pub is_kernel_thread: bool,
}

impl Status {
    /// Reads the status of a thread of process `pid`.
    pub fn read(roots: &Roots, pid: i32, tid: i32) -> Option<Status> {
        let path = roots.process(pid, "task").join(tid.to_string()).join("status");
        Status::parse(&std::fs::read(path).ok()?)
    }

    /// Reads the status of a thread whose process is not known.
    pub fn of_thread(roots: &Roots, tid: i32) -> Option<Status> {
        let _in_force = see_others();
        Status::parse(&std::fs::read(roots.process(tid, "status")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Status> {
        let field = |name: &[u8]| {
            let mut lines = text.split(|b| *b == b'\n');
            lines.find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii_start)
        };
        let number = |name| std::str::from_utf8(field(name)?).ok()?.trim().parse().ok();
        Some(Status {
            name: unescape(field(b"Name:")?),
            tgid: number(b"Tgid:")?,
            parent: number(b"PPid:")?,
            is_kernel_thread: field(b"VmPeak:").is_none() && field(b"VmSize:").is_none(),
        })
    }
}

/// Lets this thread see processes of other users while the result lives, where whit was lent the
/// right to: their maps, and with `hidepid` that they are there at all. Only for files that the
/// kernel makes.
pub fn see_others() -> Raised {
    privilege::raise(&[Capability::SysPtrace])
}

/// The number of the PID namespace that this process is in; `None` for the first one of the machine, or
/// where it is not said.
pub fn namespace(roots: &Roots) -> Option<u32> {
    let link = std::fs::read_link(roots.proc.join("self/ns/pid")).ok()?;
    let number = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()?;
    Some(number).filter(|number| *number != FIRST_NAMESPACE)
}

/// The ids of all processes, ascending.
pub fn all(roots: &Roots) -> std::io::Result<Vec<i32>> {
    let _in_force = see_others();
    Ok(numbered(std::fs::read_dir(&roots.proc)?))
}

/// The ids of the threads of a process, ascending; empty when it is gone.
pub fn threads(roots: &Roots, pid: i32) -> Vec<i32> {
    let _in_force = see_others();
    std::fs::read_dir(roots.process(pid, "task")).map(numbered).unwrap_or_default()
}

/// The user who owns a process.
pub fn owner(roots: &Roots, pid: i32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(roots.proc.join(pid.to_string())).ok().map(|m| m.uid())
}

/// When a process began, in the kernel's ticks since boot (`proc_pid_stat(5)`, field 22).
pub fn start_ticks(roots: &Roots, pid: i32) -> Option<u64> {
    let text = std::fs::read(roots.process(pid, "stat")).ok()?;
    // The name may hold anything; what follows its last parenthesis begins with field 3.
    let behind_name = &text[text.iter().rposition(|b| *b == b')')? + 1..];
    std::str::from_utf8(behind_name).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether there is a process or thread with this id.
pub fn exists(roots: &Roots, id: i32) -> bool {
    let _in_force = see_others();
    Path::exists(&roots.proc.join(id.to_string()))
}

fn numbered(entries: std::fs::ReadDir) -> Vec<i32> {
    let name = |e: std::io::Result<std::fs::DirEntry>| e.ok()?.file_name().to_str()?.parse().ok();
    let mut ids: Vec<i32> = entries.filter_map(name).collect();
    ids.sort_unstable();
    ids
}

/// The kernel writes `\n` and `\\` in names as two characters each.
fn unescape(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, tail)) = rest.split_first() {
        match (first, tail.first()) {
            (b'\\', Some(b'n')) => out.push(b'\n'),
            (b'\\', Some(b'\\')) => out.push(b'\\'),
            _ => {
                out.push(first);
                rest = tail;
                continue;
            }
        }
        rest = &tail[1..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        for (pid, tid, text) in [
            (10, 10, "Name:\ta b\\\\c\\nd\nTgid:\t10\nPid:\t10\nPPid:\t1\nVmSize:\t 8 kB\n"),
            (10, 12, "Name:\tworker\nTgid:\t10\nPid:\t12\nPPid:\t1\nVmSize:\t 8 kB\n"),
            (2, 2, "Name:\tkthreadd\nTgid:\t2\nPid:\t2\nPPid:\t0\n"),
        ] {
            let task = dir.path().join(format!("{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), text).unwrap();
        }
        std::fs::create_dir(dir.path().join("sys")).unwrap();
        (dir, roots)
    }

    #[test]
    fn processes_threads_and_their_status() {
        let (_dir, roots) = tree();
        assert_eq!(all(&roots).unwrap(), [2, 10]);
        assert_eq!(threads(&roots, 10), [10, 12]);
        let status = Status::read(&roots, 10, 10).unwrap();
        assert_eq!(status.name, b"a b\\c\nd");
        assert_eq!((status.tgid, status.parent, status.is_kernel_thread), (10, 1, false));
        assert!(Status::read(&roots, 2, 2).unwrap().is_kernel_thread);
    }

    #[test]
    fn processes_have_a_time_at_which_they_began() {
        let (dir, roots) = tree();
        let stat = "10 (a) b) S 1 10 10 0 -1 4194560 108 0 0 0 0 0 0 0 20 0 1 0 98765 2985984 250";
        std::fs::write(dir.path().join("10/stat"), stat).unwrap();
        assert_eq!(start_ticks(&roots, 10), Some(98_765));
        assert_eq!(start_ticks(&roots, 99), None);
    }

    #[test]
    fn what_is_gone_is_absent() {
        let (_dir, roots) = tree();
        assert_eq!(threads(&roots, 99), [0i32; 0]);
        assert_eq!(Status::read(&roots, 99, 99), None);
        assert!(!exists(&roots, 99) && exists(&roots, 10));
        assert_eq!(owner(&roots, 99), None);
    }
}
